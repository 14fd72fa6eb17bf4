"""OpenAI's Decisions API."""

import json
from collections.abc import Mapping
from typing import Any, ClassVar, Final

from dubito.llm.protocols.openai import OpenAIFormat
from dubito.llm.protocols.wire import Content, Exchange, as_objects, find_error, service_modes
from dubito.llm.request import Charges, NonReply, Request
from dubito.model_settings import ModelSettings


class Decisions(OpenAIFormat):
    """Its replies have answers instead of text, and the JSON of these is used as text."""

    label: ClassVar[str] = "the Decisions API"
    reply_label: ClassVar[str] = "Decisions API answer"
    path: ClassVar[str] = "/decisions"
    answer_field: ClassVar[str] = "answers"
    writes_text: ClassVar[bool] = False

    @classmethod
    def build_request(cls, settings: ModelSettings, exchange: Exchange, cache_key: str) -> Request:
        body: dict[str, Any] = {
            "model": settings.model,
            "input": [*exchange.system_message("developer"), *exchange.other_messages()],
            "questions": (exchange.schema or {})["questions"],
            "prompt_cache_key": cache_key,
        }
        return Request("decisions", cls.path, body | settings.parameters)

    @staticmethod
    def parse_error(body: Mapping[str, Any]) -> NonReply | None:
        error, answers = find_error(body), body.get("answers")
        return NonReply(error, None if "answers" in body else False) if error and not as_objects(answers) else None

    @staticmethod
    def parse_text(body: Mapping[str, Any]) -> Content:
        if find_error(body):
            return Content(None, "other", "it has an error beside its answers")
        return Content(json.dumps(body["answers"], sort_keys=True), "stop")

    @staticmethod
    def parse_charges(body: Mapping[str, Any]) -> Charges:
        return Charges(service_modes(body))


WIRE: Final = Decisions
