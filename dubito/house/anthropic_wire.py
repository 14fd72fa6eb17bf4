"""Anthropic's Messages API, as much of it as the house speaks."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from dubito.house import fields
from dubito.house.refusal import Refusal, RefusalKind
from dubito.house.request import HeardRequest, JsonBody
from dubito.house.structured import check_schema
from dubito.house.wire_base import CREATED_TEXT, End, ModelOutput, Problem, ReadPrompt, Wire

_INVALID: Final = "invalid_request_error"
_PARAMETERS: Final = (
    "cache_control container diagnostics inference_geo max_tokens messages metadata model output_config"
    " service_tier speed stop_sequences stream system thinking tool_choice tools"
)
_LIMITS: Final[Mapping[str, int]] = {"requests": 4_000, "input-tokens": 4_000_000, "output-tokens": 800_000}

_STOP_REASONS: Final[Mapping[End, str]] = {
    "stop": "end_turn",
    "length": "max_tokens",
    "refused": "refusal",
    "filtered": "refusal",
}

_PROBLEMS: Final[Mapping[RefusalKind, Problem]] = {
    "no_key": Problem(401, "authentication_error", "x-api-key header is required"),
    "wrong_key": Problem(401, "authentication_error", "invalid x-api-key"),
    "no_money": Problem(
        402,
        "billing_error",
        "Your credit balance is too low to access the Anthropic API."
        " Please go to Plans & Billing to upgrade or purchase credits.",
    ),
    "malformed": Problem(400, _INVALID, "The request body is not valid JSON."),
    "missing": Problem(400, _INVALID, "{name}: Field required"),
    "unknown_parameter": Problem(400, _INVALID, "{name}: Extra inputs are not permitted"),
    "unsupported": Problem(400, _INVALID, "`{name}` is not supported with this model."),
    "bad_value": Problem(400, _INVALID, "{name}: Input should be {expected}"),
    "bad_schema": Problem(400, _INVALID, "{name}: {reason}"),
    "too_long": Problem(400, _INVALID, "prompt is too long: {tokens} tokens > {limit} maximum"),
    "unknown_model": Problem(404, "not_found_error", "model: {model}. The house has {known}."),
    "unknown_path": Problem(404, "not_found_error", "Not found"),
    "wrong_method": Problem(405, _INVALID, "Method Not Allowed"),
    "rate_limit": Problem(
        429, "rate_limit_error", "This request would exceed your account's rate limit. Please try again later."
    ),
    "server_error": Problem(500, "api_error", "Internal server error"),
    "bad_gateway": Problem(502, "api_error", "Bad gateway"),
    "unavailable": Problem(503, "api_error", "Service unavailable"),
    "overloaded": Problem(529, "overloaded_error", "Overloaded"),
}


class AnthropicWire(Wire):
    """POST /v1/messages and its errors."""

    name = "messages"
    base = ""
    rejected = frozenset({"temperature", "top_k", "top_p"})
    unsupported = frozenset({"container", "stream"})
    parameters = frozenset(_PARAMETERS.split())
    problems = _PROBLEMS

    def admit(self, headers: Mapping[str, str]) -> None:
        """Also asks for the version of the protocol, as the provider does."""
        super().admit(headers)
        if "anthropic-version" not in headers:
            raise Refusal("missing", name="anthropic-version")

    def key(self, headers: Mapping[str, str]) -> str:
        """From `Authorization: Bearer KEY` (the SDK) or `x-api-key: KEY` (most other clients)."""
        return headers.get("x-api-key") or headers.get("authorization", "").removeprefix("Bearer ").strip()

    def read(self, body: JsonBody) -> ReadPrompt:
        """System and messages. What the cache would hold: the system part up to its last `cache_control`; where a block
        of a message has one, all before that block, assuming that an earlier request marked it.
        """
        self.check_parameters(body)
        model = fields.model_of(body)
        for name in ("max_tokens", "messages"):
            if body.get(name) is None:
                raise Refusal("missing", name=name)
        messages = fields.blocks(body["messages"], "messages")
        if not messages:
            raise Refusal("bad_value", name="messages", expected="at least one message")
        said: list[str] = []
        held = 0  # texts before the last mark
        for place, message in enumerate(messages):
            content, name = message.get("content"), f"messages.{place}.content"
            for block in fields.blocks(content, name) if isinstance(content, list) else []:
                held = len(said) if block.get("cache_control") is not None else held
                said += fields.texts([block], name)
            said += fields.texts(content, name) if not isinstance(content, list) else []
        system = [] if body.get("system") is None else list(fields.texts(body["system"], "system"))
        cached = system + said[:held] if held else _marked(body, system)
        return ReadPrompt(
            model=model,
            text="\n".join(system + said),
            cached=fields.tokens("\n".join(cached)),
            schema=_schema(fields.section(body, "output_config")),
            max_output=fields.limit_of(body, "max_tokens", 1),
        )

    def reply(self, asked: HeardRequest, body: JsonBody, prompt: ReadPrompt, written: ModelOutput) -> JsonBody:
        """A message object."""
        declined = written.end in ("refused", "filtered")
        details = {"type": "refusal", "category": None, "explanation": None}
        return {
            "id": f"msg_01{asked.digest_for('reply')[:22]}",
            "type": "message",
            "role": "assistant",
            "model": prompt.model,
            "content": _content(asked, written),
            "stop_reason": _STOP_REASONS[written.end],
            "stop_sequence": None,
            "stop_details": details if declined else None,
            "container": None,
            "usage": _usage(prompt, written),
        }

    def error(self, refusal: Refusal, request_id: str) -> JsonBody:
        """`{"type": "error", "error": {type, message}, "request_id"}`."""
        problem, message = self.problem(refusal)
        return {"type": "error", "error": {"type": problem.type, "message": message}, "request_id": request_id}

    def headers(self, request_id: str, limited: bool) -> dict[str, str]:
        """Request id and rate limits; the limits never move, the house counts nothing."""
        headers = {"request-id": request_id, "anthropic-organization-id": "00000000-0000-0000-0000-000000000000"}
        for name, limit in _LIMITS.items():
            headers[f"anthropic-ratelimit-{name}-limit"] = str(limit)
            headers[f"anthropic-ratelimit-{name}-remaining"] = "0" if limited else str(limit - limit // 1000)
            headers[f"anthropic-ratelimit-{name}-reset"] = CREATED_TEXT
        return headers

    def model(self, name: str) -> JsonBody:
        """A model object."""
        return {
            "id": name,
            "type": "model",
            "display_name": name,
            "created_at": CREATED_TEXT,
            "lifecycle": "active",
            "deprecated_at": None,
            "retires_at": None,
            "line": None,
        }

    def models(self, names: Sequence[str]) -> JsonBody:
        """A page, the only one."""
        return {
            "data": [self.model(name) for name in names],
            "has_more": False,
            "first_id": names[0],
            "last_id": names[-1],
        }


def _marked(body: JsonBody, system: list[str]) -> list[str]:
    """The texts of the system part that are marked as cacheable: up to the last mark, all by a mark on the request."""
    if body.get("cache_control") is not None:
        return system
    if not isinstance(body.get("system"), list):
        return []
    given = fields.blocks(body["system"], "system")
    marks = [place for place, block in enumerate(given) if block.get("cache_control") is not None]
    return list(fields.texts(given[: marks[-1] + 1], "system")) if marks else []


def _schema(output: JsonBody) -> Mapping[str, Any] | None:
    """The schema in `output_config`, None if the reply is free text."""
    form = fields.section(output, "format")
    if form.get("type") != "json_schema":
        return None
    return check_schema(form.get("schema"), "output_config.format.schema", every_required=False)


def _content(asked: HeardRequest, written: ModelOutput) -> list[JsonBody]:
    """The blocks: none for a refusal; after a filter, the text up to where it was stopped."""
    blocks: list[JsonBody] = []
    if written.thoughts is not None:
        signature = asked.digest_for("thoughts")
        blocks.append({"type": "thinking", "thinking": written.thoughts, "signature": signature})
    if written.text is not None and written.end != "refused":
        blocks.append({"type": "text", "text": written.text, "citations": None})
    return blocks


def _usage(prompt: ReadPrompt, written: ModelOutput) -> JsonBody:
    """Cached tokens are not part of the input tokens."""
    return {
        "input_tokens": prompt.tokens - prompt.cached,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": prompt.cached,
        "cache_creation": {"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": 0},
        "output_tokens": written.tokens,
        "output_tokens_details": {"thinking_tokens": written.thought_tokens},
        "service_tier": "standard",
    }
