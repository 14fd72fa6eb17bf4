"""OpenAI's Chat Completions, as much of it as the house speaks; other servers speak it too."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from dubito.house import fields
from dubito.house.openai_wire import OpenAIWire, named_schema, prompt_of
from dubito.house.refusal import Refusal
from dubito.house.request import HeardRequest, JsonBody
from dubito.house.wire_base import CREATED, ModelOutput, ReadPrompt

_PARAMETERS: Final = (
    "audio frequency_penalty function_call functions logit_bias logprobs max_completion_tokens max_tokens messages"
    " metadata modalities model moderation n parallel_tool_calls prediction presence_penalty prompt_cache_key"
    " prompt_cache_options prompt_cache_retention reasoning_effort response_format safety_identifier seed"
    " service_tier stop store stream stream_options temperature tool_choice tools top_logprobs top_p user verbosity"
    " web_search_options"
)
_UNSUPPORTED: Final = (
    "audio function_call functions logprobs parallel_tool_calls prediction stream tool_choice tools top_logprobs"
    " web_search_options"
)
_ROLES: Final = ("developer", "system", "user", "assistant")
_FORMATS: Final = ("text", "json_object", "json_schema")
_FINISHES: Final = {"length": "length", "filtered": "content_filter"}


class ChatWire(OpenAIWire):
    """POST /v1/chat/completions."""

    name = "chat"
    unsupported = frozenset(_UNSUPPORTED.split())
    parameters = frozenset(_PARAMETERS.split())

    def read(self, body: JsonBody) -> ReadPrompt:
        """The messages. `max_tokens` is the old name of `max_completion_tokens`."""
        self.check_parameters(body)
        model = fields.model_of(body)
        if body.get("messages") is None:
            raise Refusal("missing", name="messages")
        if body.get("n") not in (None, 1):
            raise Refusal("unsupported", name="n")
        limits = [fields.limit_of(body, name, 1) for name in ("max_completion_tokens", "max_tokens")]
        if None not in limits:
            raise Refusal("unsupported", name="max_tokens")
        prompt = prompt_of(model, list(_said(body["messages"])), _schema(body), limits[0] or limits[1])
        if _format(body) == "json_object" and "json" not in prompt.text.lower():
            raise Refusal("bad_value", name="messages", expected="the word 'json' in them to use 'json_object'")
        return prompt

    def reply(self, asked: HeardRequest, body: JsonBody, prompt: ReadPrompt, written: ModelOutput) -> JsonBody:
        """A chat completion object. Thoughts stand where servers other than OpenAI's put them."""
        refused = written.end == "refused"
        message: JsonBody = {
            "role": "assistant",
            "content": None if refused else written.text,
            "refusal": written.text if refused else None,
            "annotations": [],
        }
        if written.thoughts is not None:
            message["reasoning_content"] = written.thoughts
        finish = _FINISHES.get(written.end, "stop")
        return {
            "id": f"chatcmpl-{asked.digest_for('reply')[:29]}",
            "object": "chat.completion",
            "created": CREATED,
            "model": prompt.model,
            "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": finish}],
            "usage": _usage(prompt, written),
            "service_tier": "default",
            "system_fingerprint": None,
        }


def _said(given: object) -> Iterator[tuple[str, str]]:
    """Role and text of all texts in the messages. Raises Refusal."""
    messages = fields.blocks(given, "messages")
    if not messages:
        raise Refusal("bad_value", name="messages", expected="at least one message")
    for place, message in enumerate(messages):
        role, content = message.get("role"), message.get("content")
        if role not in _ROLES:
            raise Refusal("bad_value", name=f"messages[{place}].role", expected=f"one of {', '.join(_ROLES)}")
        if role == "assistant" and content is None:  # what it refused to say
            continue
        for text in fields.texts(content, f"messages[{place}].content"):
            yield role, text


def _format(body: JsonBody) -> str:
    form = fields.section(body, "response_format").get("type", "text")
    if form not in _FORMATS:
        raise Refusal("bad_value", name="response_format.type", expected=f"one of {', '.join(_FORMATS)}")
    return str(form)


def _schema(body: JsonBody) -> Mapping[str, Any] | None:
    """The schema of the reply, None if it is free text or any JSON object."""
    if _format(body) != "json_schema":
        return None
    form = fields.section(fields.section(body, "response_format"), "json_schema")
    return named_schema(form, "response_format.json_schema")


def _usage(prompt: ReadPrompt, written: ModelOutput) -> JsonBody:
    """Cached tokens are part of the prompt's tokens, thoughts of the completion's."""
    return {
        "prompt_tokens": prompt.tokens,
        "completion_tokens": written.tokens,
        "total_tokens": prompt.tokens + written.tokens,
        "prompt_tokens_details": {"cached_tokens": prompt.cached, "cache_write_tokens": 0, "audio_tokens": 0},
        "completion_tokens_details": {
            "reasoning_tokens": written.thought_tokens,
            "audio_tokens": 0,
            "accepted_prediction_tokens": 0,
            "rejected_prediction_tokens": 0,
        },
    }
