"""What OpenAI's two protocols share: key, errors, headers, the list of models, and how a cache would hold a prompt."""

from abc import ABC
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from dubito.house import fields
from dubito.house.refusal import Refusal, RefusalKind
from dubito.house.request import JsonBody
from dubito.house.structured import check_schema
from dubito.house.wire_base import CREATED, Problem, ReadPrompt, Wire

_CACHED_FROM: Final = 1024  # tokens from which OpenAI's cache works by itself
_INVALID: Final = "invalid_request_error"

_PROBLEMS: Final[Mapping[RefusalKind, Problem]] = {
    "no_key": Problem(401, _INVALID, "You didn't provide an API key in an Authorization header."),
    "wrong_key": Problem(401, _INVALID, "Incorrect API key provided.", "invalid_api_key"),
    "no_money": Problem(
        429,
        "insufficient_quota",
        "You exceeded your current quota, please check your plan and billing details.",
        "insufficient_quota",
    ),
    "malformed": Problem(400, _INVALID, "We could not parse the JSON body of your request."),
    "missing": Problem(400, _INVALID, "Missing required parameter: '{name}'.", "missing_required_parameter"),
    "unknown_parameter": Problem(400, _INVALID, "Unknown parameter: '{name}'.", "unknown_parameter"),
    "unsupported": Problem(
        400, _INVALID, "Unsupported parameter: '{name}' is not supported with this model.", "unsupported_parameter"
    ),
    "bad_value": Problem(400, _INVALID, "Invalid value for '{name}': expected {expected}.", "invalid_value"),
    "bad_schema": Problem(400, _INVALID, "Invalid schema for '{name}': {reason}.", "invalid_json_schema"),
    "too_long": Problem(
        400,
        _INVALID,
        "Your input exceeds the context window of this model. Please adjust your input and try again.",
        "context_length_exceeded",
    ),
    "unknown_model": Problem(
        404,
        _INVALID,
        "The model `{model}` does not exist or you do not have access to it. The house has {known}.",
        "model_not_found",
    ),
    "unknown_path": Problem(404, _INVALID, "Invalid URL ({method} {path})"),
    "wrong_method": Problem(405, _INVALID, "Not allowed to {method} on {path}.", "method_not_supported"),
    "rate_limit": Problem(
        429,
        "requests",
        "Rate limit reached for requests. Visit https://platform.openai.com/account/rate-limits to learn more.",
        "rate_limit_exceeded",
    ),
    "server_error": Problem(
        500, "server_error", "The server had an error while processing your request. Sorry about that!"
    ),
    "bad_gateway": Problem(502, "server_error", "Bad gateway."),
    "unavailable": Problem(503, "service_unavailable_error", "The service is temporarily unavailable."),
    "overloaded": Problem(529, "service_unavailable_error", "The server is overloaded."),
}


class OpenAIWire(Wire, ABC):
    """Whatever is not the request's and the reply's own shape."""

    base = "/v1"
    rejected = frozenset[str]()
    problems = _PROBLEMS

    def key(self, headers: Mapping[str, str]) -> str:
        """From `Authorization: Bearer KEY`."""
        return headers.get("authorization", "").removeprefix("Bearer ").strip()

    def error(self, refusal: Refusal, request_id: str) -> JsonBody:
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

    def model(self, name: str) -> JsonBody:
        """A model object."""
        return {"id": name, "object": "model", "created": CREATED, "owned_by": "dubito"}

    def models(self, names: Sequence[str]) -> JsonBody:
        """A list object."""
        return {"object": "list", "data": [self.model(name) for name in names]}


def prompt_of(
    model: str, said: Iterable[tuple[str, str]], schema: Mapping[str, Any] | None, max_output: int | None
) -> ReadPrompt:
    """The prompt of (role, text) pairs. System messages at the start are what a cache would hold."""
    stable: list[str] = []
    rest: list[str] = []
    for role, text in said:
        (stable if role in ("system", "developer") and not rest else rest).append(text)
    cached = fields.tokens("\n".join(stable))
    return ReadPrompt(model, "\n".join(stable + rest), cached if cached >= _CACHED_FROM else 0, schema, max_output)


def named_schema(form: JsonBody, name: str) -> Mapping[str, Any]:
    """The schema of a `json_schema` format, whose fields stand under `name`. Raises Refusal."""
    if not isinstance(form.get("name"), str):
        raise Refusal("missing", name=f"{name}.name")
    return check_schema(form.get("schema"), f"{name}.schema", every_required=form.get("strict") is True)
