"""OpenAI's Responses API, as much of it as the house speaks."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from dubito.house import fields
from dubito.house.openai_wire import OpenAIWire, named_schema, prompt_of
from dubito.house.refusal import Refusal
from dubito.house.request import HeardRequest, JsonBody
from dubito.house.wire_base import CREATED, ModelOutput, ReadPrompt

_LEAST_OUTPUT: Final = 16
_PARAMETERS: Final = (
    "access_programs background background_options context_management conversation image include input"
    " instructions max_output_tokens max_tool_calls metadata model moderation parallel_tool_calls"
    " previous_response_id prompt prompt_cache_key prompt_cache_options prompt_cache_retention reasoning"
    " safety_identifier service_tier store stream stream_options temperature text tool_choice tools"
    " top_logprobs top_p truncation user"
)

_DEFAULTS: Final[Mapping[str, Any]] = {  # what a reply repeats of its request, and says if that said nothing
    "background": False,
    "instructions": None,
    "max_output_tokens": None,
    "max_tool_calls": None,
    "metadata": {},
    "parallel_tool_calls": True,
    "previous_response_id": None,
    "prompt_cache_key": None,
    "reasoning": {"effort": None, "summary": None},
    "safety_identifier": None,
    "store": True,
    "temperature": 1.0,
    "tool_choice": "auto",
    "tools": [],
    "top_logprobs": 0,
    "top_p": 1.0,
    "truncation": "disabled",
    "user": None,
}
_REASONS: Final = {"length": "max_output_tokens", "filtered": "content_filter"}  # why a reply is not complete


class ResponsesWire(OpenAIWire):
    """POST /v1/responses."""

    name = "responses"
    unsupported = frozenset({"background", "conversation", "previous_response_id", "prompt", "stream"})
    parameters = frozenset(_PARAMETERS.split())

    def read(self, body: JsonBody) -> ReadPrompt:
        """Instructions and input."""
        self.check_parameters(body)
        model = fields.model_of(body)
        if body.get("input") is None:
            raise Refusal("missing", name="input")
        form = fields.section(fields.section(body, "text"), "format")
        return prompt_of(
            model,
            list(_said(body)),
            named_schema(form, "text.format") if form.get("type") == "json_schema" else None,
            fields.limit_of(body, "max_output_tokens", _LEAST_OUTPUT),
        )

    def reply(self, asked: HeardRequest, body: JsonBody, prompt: ReadPrompt, written: ModelOutput) -> JsonBody:
        """A response object."""
        reason = _REASONS.get(written.end)
        status = "incomplete" if reason else "completed"
        said = {name: value for name, value in body.items() if name in _DEFAULTS and value is not None}
        return {
            **_DEFAULTS,
            **said,
            "id": f"resp_{asked.digest_for('reply')[:48]}",
            "object": "response",
            "created_at": CREATED,
            "completed_at": None if reason else CREATED,
            "status": status,
            "error": None,
            "incomplete_details": {"reason": reason} if reason else None,
            "model": prompt.model,
            "output": _output(asked, written, status),
            "service_tier": "default",
            "text": {"format": {"type": "text"}, "verbosity": "medium", **fields.section(body, "text")},
            "usage": _usage(prompt, written),
        }


def _said(body: JsonBody) -> Iterator[tuple[str, str]]:
    """Role and text of all texts; the input is a text or a list of items, some of them messages."""
    if body.get("instructions") is not None:
        for text in fields.texts(body["instructions"], "instructions"):
            yield "developer", text
    if isinstance(body["input"], str):
        yield "user", body["input"]
        return
    for place, item in enumerate(fields.blocks(body["input"], "input")):
        for text in fields.texts(item.get("content") or [], f"input[{place}].content"):
            yield str(item.get("role")), text


def _output(asked: HeardRequest, written: ModelOutput, status: str) -> list[JsonBody]:
    """The items: thoughts, and the message that holds the text."""
    items: list[JsonBody] = []
    if written.thoughts is not None:
        summary = [{"type": "summary_text", "text": written.thoughts}]
        items.append({"id": f"rs_{asked.digest_for('thoughts')[:48]}", "type": "reasoning", "summary": summary})
    if written.text is not None:
        content: JsonBody = {"type": "output_text", "annotations": [], "logprobs": [], "text": written.text}
        if written.end == "refused":
            content = {"type": "refusal", "refusal": written.text}
        message = {"type": "message", "status": status, "role": "assistant", "content": [content]}
        items.append({"id": f"msg_{asked.digest_for('message')[:48]}", **message})
    return items


def _usage(prompt: ReadPrompt, written: ModelOutput) -> JsonBody:
    """Cached tokens are part of the input tokens, thoughts of the output tokens."""
    return {
        "input_tokens": prompt.tokens,
        "input_tokens_details": {"cached_tokens": prompt.cached, "cache_write_tokens": 0},
        "output_tokens": written.tokens,
        "output_tokens_details": {"reasoning_tokens": written.thought_tokens},
        "total_tokens": prompt.tokens + written.tokens,
    }
