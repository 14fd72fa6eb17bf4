"""Chat Completions: OpenAI's older API, and what most other servers speak (Ollama, vLLM, llama.cpp, OpenRouter).

Others than OpenAI know fewer parameters, and some refuse what they do not know: they are sent no more than all know.
"""

from collections.abc import Mapping
from typing import Any, Final

from dubito.llm.protocols.bodies import Exchange, joined, mapping, objects, usage_of
from dubito.llm.settings import ModelSettings, asks_provider, is_house
from dubito.llm.wire import Finish, Request, Usage

_FINISHES: Final[Mapping[str, Finish]] = {"stop": "stop", "length": "length", "content_filter": "refusal"}


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
    if settings.response_format == "json_schema":
        schema = {"name": "answer", "strict": True, "schema": exchange.schema}
        body["response_format"] = {"type": "json_schema", "json_schema": schema}
    elif settings.response_format == "json_object":
        body["response_format"] = {"type": "json_object"}
    return Request("chat", "/chat/completions", body | settings.parameters)


def read(body: Mapping[str, Any]) -> tuple[str | None, Finish]:
    """What was said in the first choice, and how it ended. What was thought beside it is passed over."""
    choice = next(iter(objects(body.get("choices"))), {})
    message = mapping(choice.get("message"))
    content = message.get("content")
    text = content if isinstance(content, str) else joined(objects(content), "text")
    if message.get("refusal"):
        return text or str(message["refusal"]), "refusal"
    reason = choice.get("finish_reason")
    finish = _FINISHES.get(reason, "other") if isinstance(reason, str) else "other"
    return (None, finish) if finish == "other" else (text or None, finish)


def usage(counts: Mapping[str, Any]) -> Usage | None:
    """OpenAI counts cached tokens within the input; what other servers leave out or leave null is none."""
    into, out = mapping(counts.get("prompt_tokens_details")), mapping(counts.get("completion_tokens_details"))
    return usage_of(
        counts.get("prompt_tokens"),
        into.get("cached_tokens") or 0,
        into.get("cache_write_tokens") or 0,
        counts.get("completion_tokens"),
        out.get("reasoning_tokens") or 0,
    )
