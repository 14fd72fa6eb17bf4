"""OpenAI's Responses API, as much of it as the house speaks."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from dubito.house import fields
from dubito.house.asked import Asked, Body
from dubito.house.refusal import Kind, Refusal
from dubito.house.structured import check_schema
from dubito.house.wire import CREATED, Problem, Prompt, Wire, Written

_CACHED_FROM: Final = 1024  # tokens from which OpenAI's cache works by itself
_LEAST_OUTPUT: Final = 16
_INVALID: Final = "invalid_request_error"
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

_PROBLEMS: Final[Mapping[Kind, Problem]] = {
    "no_key": Problem(401, _INVALID, None, "You didn't provide an API key in an Authorization header."),
    "wrong_key": Problem(401, _INVALID, "invalid_api_key", "Incorrect API key provided."),
    "no_money": Problem(
        429,
        "insufficient_quota",
        "insufficient_quota",
        "You exceeded your current quota, please check your plan and billing details.",
    ),
    "malformed": Problem(400, _INVALID, None, "We could not parse the JSON body of your request."),
    "missing": Problem(400, _INVALID, "missing_required_parameter", "Missing required parameter: '{name}'."),
    "unknown_parameter": Problem(400, _INVALID, "unknown_parameter", "Unknown parameter: '{name}'."),
    "unsupported": Problem(
        400,
        _INVALID,
        "unsupported_parameter",
        "Unsupported parameter: '{name}' is not supported with this model.",
    ),
    "bad_value": Problem(400, _INVALID, "invalid_value", "Invalid value for '{name}': expected {expected}."),
    "bad_schema": Problem(400, _INVALID, "invalid_json_schema", "Invalid schema for '{name}': {reason}."),
    "too_long": Problem(
        400,
        _INVALID,
        "context_length_exceeded",
        "Your input exceeds the context window of this model. Please adjust your input and try again.",
    ),
    "unknown_model": Problem(
        404,
        _INVALID,
        "model_not_found",
        "The model `{model}` does not exist or you do not have access to it.",
    ),
    "unknown_path": Problem(404, _INVALID, None, "Invalid URL ({method} {path})"),
    "wrong_method": Problem(405, _INVALID, "method_not_supported", "Not allowed to {method} on {path}."),
    "rate_limit": Problem(
        429, "requests", "rate_limit_exceeded", "Rate limit reached. Please try again in {retry_after:g}s."
    ),
    "server_error": Problem(
        500, "server_error", None, "The server had an error while processing your request. Sorry about that!"
    ),
    "overloaded": Problem(503, "service_unavailable_error", None, "The server is overloaded."),
}


class OpenAIWire(Wire):
    """POST /v1/responses and its errors."""

    name = "responses"
    base = "/v1"
    server_errors = ("server_error",)
    rejected = frozenset[str]()
    unsupported = frozenset({"background", "conversation", "previous_response_id", "prompt", "stream"})
    parameters = frozenset(_PARAMETERS.split())
    problems = _PROBLEMS

    def key(self, headers: Mapping[str, str]) -> str:
        """From `Authorization: Bearer KEY`."""
        return headers.get("authorization", "").removeprefix("Bearer ").strip()

    def read(self, body: Body) -> Prompt:
        """Instructions and input. Instructions and system messages at the start are what a cache would hold."""
        self.check_parameters(body)
        model = fields.model_of(body)
        if body.get("input") is None:
            raise Refusal("missing", name="input")
        stable = [] if body.get("instructions") is None else list(fields.texts(body["instructions"], "instructions"))
        rest: list[str] = []
        for role, text in _messages(body["input"]):
            (stable if role in ("system", "developer") and not rest else rest).append(text)
        cached = fields.tokens("\n".join(stable))
        return Prompt(
            model=model,
            text="\n".join(stable + rest),
            cached=cached if cached >= _CACHED_FROM else 0,
            schema=_schema(fields.section(body, "text")),
            max_output=fields.limit_of(body, "max_output_tokens", _LEAST_OUTPUT),
        )

    def reply(self, asked: Asked, body: Body, prompt: Prompt, written: Written) -> Body:
        """A response object."""
        status = "completed" if written.whole else "incomplete"
        content = {"type": "output_text", "annotations": [], "logprobs": [], "text": written.text}
        message = {
            "id": f"msg_{asked.digest_for('message')[:48]}",
            "type": "message",
            "status": status,
            "role": "assistant",
            "content": [content],
        }
        said = {name: value for name, value in body.items() if name in _DEFAULTS and value is not None}
        return {
            **_DEFAULTS,
            **said,
            "id": f"resp_{asked.digest_for('reply')[:48]}",
            "object": "response",
            "created_at": CREATED,
            "completed_at": CREATED if written.whole else None,
            "status": status,
            "error": None,
            "incomplete_details": None if written.whole else {"reason": "max_output_tokens"},
            "model": prompt.model,
            "output": [message],
            "service_tier": "default",
            "text": {"format": {"type": "text"}, "verbosity": "medium", **fields.section(body, "text")},
            "usage": _usage(prompt, written),
        }

    def error(self, refusal: Refusal, request_id: str) -> Body:
        """`{"error": {message, type, param, code}}`."""
        problem, message = self.problem(refusal)
        param = refusal.facts.get("name")
        return {"error": {"message": message, "type": problem.type, "param": param, "code": problem.code}}

    def headers(self, request_id: str, limited: bool) -> dict[str, str]:
        """Request id and rate limits; the limits never move, the house counts nothing."""
        return {
            "x-request-id": request_id,
            "openai-version": "2020-10-01",
            "x-ratelimit-limit-requests": "10000",
            "x-ratelimit-remaining-requests": "0" if limited else "9999",
            "x-ratelimit-reset-requests": "6ms",
            "x-ratelimit-limit-tokens": "30000000",
            "x-ratelimit-remaining-tokens": "29999000",
            "x-ratelimit-reset-tokens": "2ms",
        }

    def model(self, name: str) -> Body:
        """A model object."""
        return {"id": name, "object": "model", "created": CREATED, "owned_by": "dubito"}

    def models(self, names: Sequence[str]) -> Body:
        """A list object."""
        return {"object": "list", "data": [self.model(name) for name in names]}


def _messages(given: object) -> list[tuple[str, str]]:
    """Role and text of all texts in the input, which is a text or a list of items, some of them messages."""
    if isinstance(given, str):
        return [("user", given)]
    found = []
    for place, item in enumerate(fields.blocks(given, "input")):
        for text in fields.texts(item.get("content") or [], f"input[{place}].content"):
            found.append((str(item.get("role")), text))  # noqa: PERF401
    return found


def _schema(text: Body) -> Mapping[str, Any] | None:
    """The schema in `text`, None if the reply is free text."""
    form = fields.section(text, "format")
    if form.get("type") != "json_schema":
        return None
    if not isinstance(form.get("name"), str):
        raise Refusal("missing", name="text.format.name")
    return check_schema(form.get("schema"), "text.format.schema", every_required=form.get("strict") is True)


def _usage(prompt: Prompt, written: Written) -> Body:
    """Cached tokens are part of the input tokens."""
    return {
        "input_tokens": prompt.tokens,
        "input_tokens_details": {"cached_tokens": prompt.cached, "cache_write_tokens": 0},
        "output_tokens": written.tokens,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": prompt.tokens + written.tokens,
    }
