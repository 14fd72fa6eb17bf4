"""Chat Completions: OpenAI's older API, and what most other servers speak (Ollama, vLLM, llama.cpp, OpenRouter).

Others than OpenAI know fewer parameters, and some refuse what they do not know: they are sent no more than all know.
"""

from collections.abc import Mapping
from typing import Any

from dubito.llm.protocols.bodies import (
    Exchange,
    by_assistant,
    count_of,
    error_of,
    finish_of,
    joined,
    mapping,
    modes_of,
    objects,
    openai_usage,
)
from dubito.llm.request import Charges, Failure, Finish, Request, Usage
from dubito.llm.settings import ModelSettings, asks_provider, is_house


def build(settings: ModelSettings, exchange: Exchange, cache_key: str) -> Request:
    """The request of an attempt."""
    body: dict[str, Any] = {
        "model": settings.model,
        "messages": [{"role": "system", "content": exchange.system}, *exchange.turns()],
    }
    newer = asks_provider(settings) or is_house(settings.base_url or "")
    body[settings.output_limit or ("max_completion_tokens" if newer else "max_tokens")] = settings.max_output
    if newer:
        body |= {"prompt_cache_key": cache_key, "store": False}
    if asks_provider(settings):
        body["service_tier"] = "default"  # left out, the project's own settings decide, at another price
    if settings.response_format == "json_schema":
        schema = {"name": "answer", "strict": True, "schema": exchange.schema}
        body["response_format"] = {"type": "json_schema", "json_schema": schema}
    elif settings.response_format == "json_object":
        body["response_format"] = {"type": "json_object"}
    return Request("chat", "/chat/completions", body | settings.parameters)


def is_reply(body: Mapping[str, Any]) -> bool:
    """Whether it has the shape of a completion: choices with a message each."""
    choices = body.get("choices")
    return isinstance(choices, list) and all(isinstance(mapping(each).get("message"), dict) for each in choices)


def failure(body: Mapping[str, Any]) -> Failure | None:
    """The error that stands in a reply's place, at the top or in the choice; beside an answer it is a contradiction."""
    choice = next(iter(objects(body.get("choices"))), {})
    text, refusal = _said(mapping(choice.get("message")))
    error, finish = error_of(body) or choice.get("error"), choice.get("finish_reason")
    if finish == "error" or (error and not text and not refusal):
        return Failure(error or "finish_reason: error", True if text else None if choice else False)
    return None


def read(body: Mapping[str, Any]) -> tuple[str | None, Finish]:
    """What was said in the only choice, and how it ended. Thoughts beside it are ignored."""
    choices = objects(body.get("choices"))
    choice = next(iter(choices), {})
    message = mapping(choice.get("message"))
    text, refusal = _said(message)
    beside = (error_of(body), choice.get("error"), message.get("tool_calls"), message.get("function_call"))
    if len(choices) > 1 or any(beside) or (text and refusal) or not by_assistant(message):
        return None, "other"  # it contradicts itself
    if refusal:
        return refusal, "refusal"
    finish = finish_of(choice.get("finish_reason"))
    return (None, "other") if finish is None else (text or None, finish)


def _said(message: Mapping[str, Any]) -> tuple[str | None, str | None]:
    """Text and refusal of a message."""
    content = message.get("content")
    parts = objects(content)
    text = content if isinstance(content, str) else joined(parts, "text")
    refusals = [message.get("refusal"), *(part.get("refusal") for part in parts if part.get("type") == "refusal")]
    return text, next((str(each) for each in refusals if each), None)


def charges(body: Mapping[str, Any]) -> Charges:
    """The tier that served, and the server's own tools."""
    tools = mapping(mapping(body.get("usage")).get("server_tool_use"))
    return Charges(modes_of(body), tool_calls=sum(map(count_of, tools.values())))


def usage(counts: Mapping[str, Any]) -> Usage | None:
    """In Chat Completions' names."""
    return openai_usage(counts, "prompt", "completion")
