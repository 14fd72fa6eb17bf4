"""Errors as providers and routers word them, and what each must come to; with a status, and within status 200."""

import json
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from dubito.llm.request import Api
from tests.llm.kit import YES, reply_body


class Wrong(NamedTuple):
    """An answer with an error, and what it comes to: how a try fails, or who has to mend it."""

    status: int
    body: Any
    meaning: str  # a kind of TryFailed, or who has to mend it; `stray`: tried again before it is
    wait: float | None = None  # seconds that it asks for


def openai(code: str | None, message: str, kind: str | None = "invalid_request_error", **more: Any) -> dict[str, Any]:
    return {"error": {"message": message, "type": kind, "param": None, "code": code, **more}}


def anthropic(kind: str, message: str, **more: Any) -> dict[str, Any]:
    return {"type": "error", "error": {"type": kind, "message": message, **more}, "request_id": "req_011C"}


def router(code: int, message: str, **metadata: Any) -> dict[str, Any]:
    return {"error": {"code": code, "message": message, **({"metadata": metadata} if metadata else {})}}


_QUOTA: Final = (
    "You exceeded your current quota, please check your plan and billing details. For more information on this error, "
    "head to: https://ai.google.dev/gemini-api/docs/rate-limits."
)


def gemini(*quotas: str, delay: str | None = None, message: str = _QUOTA) -> list[dict[str, Any]]:
    """A 429 as Gemini's OpenAI-compatible server says it: in a list, with the quotas that were exceeded."""
    type_of = "type.googleapis.com/google.rpc."
    details: list[dict[str, Any]] = [{"@type": f"{type_of}Help", "links": [{"url": "https://ai.google.dev"}]}]
    if quotas:
        violations = [{"quotaMetric": "generativelanguage.googleapis.com/x", "quotaId": quota} for quota in quotas]
        details.append({"@type": f"{type_of}QuotaFailure", "violations": violations})
    if delay:
        details.append({"@type": f"{type_of}RetryInfo", "retryDelay": delay})
    error = {"code": 429, "message": message, "status": "RESOURCE_EXHAUSTED", "details": details}
    return [{"error": error}]


_AZURE: Final = "The response was filtered due to the prompt triggering Azure OpenAI's content management policy."
_FLAGGED: Final = "Invalid prompt: your prompt was flagged as potentially violating our usage policy."
_MINUTE: Final = "GenerateRequestsPerMinutePerProjectPerModel-FreeTier"
_DAY: Final = "GenerateRequestsPerDayPerProjectPerModel-FreeTier"
_BLOCKED: Final = "Output blocked by content filtering policy"
_DAYS: Final = "Rate limit reached for gpt-4o in organization org-1 on requests per day (RPD): Limit 200, Used "
_AGAIN: Final = "Please try again in 7m12s. Visit https://platform.openai.com/account/rate-limits to learn more."
_RATE: Final = "Rate limit reached for gpt-6-sol in organization org-1 on requests per min (RPM): Limit 3, Used 3. "

STATUSES: Final[Mapping[str, Wrong]] = {
    # a filter that declined this prompt
    "OpenAI invalid_prompt": Wrong(400, openai("invalid_prompt", _FLAGGED), "refused"),
    "OpenAI moderation_blocked": Wrong(400, openai("moderation_blocked", "Rejected by the safety system."), "refused"),
    "Azure content_filter": Wrong(400, openai("content_filter", _AZURE, None, status=400), "refused"),
    "Azure, handed on in words": Wrong(400, openai("400", f"AzureException - {_AZURE}", None), "refused"),
    "Anthropic's output filter": Wrong(400, anthropic("invalid_request_error", _BLOCKED, details=None), "refused"),
    "Xiaomi": Wrong(400, openai("421", "Moderation Block", "content_filter"), "refused"),
    "xAI": Wrong(403, {"code": "forbidden", "error": "Content violates usage guidelines. Failed check."}, "refused"),
    "OpenRouter's moderation": Wrong(
        403, router(403, "Input was flagged", reasons=["harassment"], flagged_input="...", provider_name="X"), "refused"
    ),
    "a filter's 422": Wrong(422, openai("content_filter", _AZURE), "refused"),
    "413 of Anthropic": Wrong(413, anthropic("request_too_large", "Request exceeds the maximum size"), "too_long"),
    "OpenAI's window": Wrong(
        400, openai("context_length_exceeded", "Your input exceeds the context window of this model."), "too_long"
    ),
    "Anthropic's prompt": Wrong(
        400, anthropic("invalid_request_error", "prompt is too long: 213462 tokens > 200000 maximum"), "too_long"
    ),
    "Gemini's count": Wrong(
        400,
        [{"error": {"code": 400, "message": "The input token count (9) exceeds the maximum number of tokens"}}],
        "too_long",
    ),
    "OpenRouter, of another": Wrong(
        400,
        router(400, "Provider returned error", raw=json.dumps(openai("context_length_exceeded", "no")), provider="X"),
        "too_long",
    ),
    # money and quota
    "OpenAI's quota": Wrong(429, openai("insufficient_quota", _QUOTA, "insufficient_quota"), "money"),
    "Gemini's day": Wrong(429, gemini(_DAY, delay="34s"), "quota"),
    "Gemini's plan": Wrong(429, gemini(), "money"),
    "Gemini without a free quota": Wrong(
        429,
        gemini(delay="45s", message=f"{_QUOTA}\n* Quota exceeded for metric: x, limit: 0, model: gemini-3-pro"),
        "money",
    ),
    "OpenRouter's credits": Wrong(402, router(402, "Insufficient credits. Add more using .../credits"), "money"),
    "Anthropic's balance": Wrong(
        400, anthropic("invalid_request_error", "Your credit balance is too low to access the Anthropic API."), "money"
    ),
    **{
        code: Wrong(429, anthropic("rate_limit_error", "No.", details={"error_code": code}), "money")
        for code in ("enforced_spend_limit_reached", "contract_spend_limit_reached")
    },
    "linked_organization_spend_limit_reached": Wrong(
        402,
        anthropic("billing_error", "No.", details={"error_code": "linked_organization_spend_limit_reached"}),
        "money",
    ),
    "DeepSeek's balance": Wrong(402, openai("invalid_request_error", "Insufficient Balance"), "money"),
    "xAI's credits": Wrong(
        429,
        {"code": "exhausted", "error": "Your team has either used all available credits or reached its limit."},
        "money",
    ),
    # limits that pass
    "OpenAI's minute": Wrong(
        429, openai("rate_limit_exceeded", f"{_RATE}Please try again in 20s.", "requests"), "rate_limit", 20
    ),
    "OpenAI's minutes": Wrong(
        429, openai("rate_limit_exceeded", f"{_RATE}Please try again in 6m0s."), "rate_limit", 360
    ),
    "OpenAI's moment": Wrong(
        429, openai("rate_limit_exceeded", f"{_RATE}Please try again in 350ms."), "rate_limit", 0.35
    ),
    "Azure's minute": Wrong(
        429,
        openai("429", "exceeded token rate limit of your tier. Please retry after 59 seconds.", None),
        "rate_limit",
        59,
    ),
    "Gemini's minute": Wrong(429, gemini(_MINUTE, delay="34.074824224s"), "rate_limit", 34.074824224),
    "Gemini's minute, no delay": Wrong(429, gemini(_MINUTE), "rate_limit"),
    "Gemini's words": Wrong(429, gemini(message=f"{_QUOTA} Please retry in 45.5s."), "rate_limit", 45.5),
    "Gemini, short": Wrong(
        429, [{"error": {"code": 429, "message": "Resource has been exhausted (e.g. check quota)."}}], "rate_limit"
    ),
    "OpenRouter's minute": Wrong(429, router(429, "Rate limit exceeded: free-models-per-min."), "rate_limit"),
    "Anthropic's minute": Wrong(
        429, anthropic("rate_limit_error", "This request would exceed your account's rate limit."), "rate_limit"
    ),
    "ramp_limit_exceeded": Wrong(
        429, anthropic("rate_limit_error", "Too fast.", details={"error_code": "ramp_limit_exceeded"}), "rate_limit"
    ),
    # limits of a day and longer
    "OpenAI's day": Wrong(429, openai("rate_limit_exceeded", f"{_DAYS}200, Requested 1. {_AGAIN}"), "quota", 432),
    "OpenAI's day, of tokens": Wrong(
        429,
        openai("rate_limit_exceeded", "Rate limit reached for m on tokens per day (TPD): Limit 5, Used 5."),
        "quota",
    ),
    "Groq's day": Wrong(
        429, openai("rate_limit_exceeded", "on tokens per day (TPD). Please try again in 1h2m3.5s."), "quota", 3723.5
    ),
    "OpenRouter's day": Wrong(429, router(429, "Rate limit exceeded: free-models-per-day. Add 10 credits"), "quota"),
    "OpenRouter's richer day": Wrong(
        429, router(429, "Rate limit exceeded: free-models-per-day-high-balance. "), "quota"
    ),
    "a week": Wrong(429, {"detail": "Weekly token limit exceeded, please retry after 2 days"}, "quota"),
    "a month": Wrong(429, openai(None, "You have used all 1000 requests per month of this plan."), "quota"),
    "a day, by a gateway": Wrong(403, {"message": "Daily request limit exceeded for this key"}, "quota"),
    "Cohere's month": Wrong(
        429,
        {"message": "You are using a Trial key, which is limited to 1000 API calls / month. You can go on"},
        "quota",
    ),
    "Cohere's minute": Wrong(
        429, {"message": "You are using a Trial key, which is limited to 20 API calls / minute."}, "rate_limit"
    ),
    "GitHub's day": Wrong(
        429,
        openai("RateLimitReached", "Rate limit of 50 per 86400s exceeded for ByDay. Please wait 4434 seconds"),
        "quota",
        4434,
    ),
    "GitHub's minute": Wrong(
        429,
        {"error": {"message": "Rate limit of 10 per 60s exceeded for UserByModelByMinute. Please wait 42 seconds"}},
        "rate_limit",
    ),
    "the day": Wrong(429, {"detail": "Quota exceeded for the day"}, "quota"),
    "a minute, beside a day": Wrong(
        429, {"detail": "Limited to 60 requests/minute (daily quota: 1000, used: 12)"}, "rate_limit"
    ),
    # more than the account may have at all
    "a size, asked after": Wrong(
        429, {"detail": "Request exceeds the limit of 10,000 tokens per minute: 12,500 tokens requested"}, "size"
    ),
    "a size that fits": Wrong(
        429, {"detail": "Limit of 10,000 tokens per minute reached, 9,500 used: 2,500 tokens requested"}, "rate_limit"
    ),
    "Groq's size": Wrong(
        413,
        openai(
            "rate_limit_exceeded",
            "Request too large for model `m` on tokens per minute (TPM): Limit 6000, Requested 14,368, please reduce",
        ),
        "size",
    ),
    "a size told by its numbers": Wrong(
        429, openai("rate_limit_exceeded", "tokens per min (TPM): Limit 10,000, Used 0, Requested 12,500."), "size"
    ),
    "no size, but a minute's end": Wrong(
        429,
        openai(
            "rate_limit_exceeded",
            "on tokens per min (TPM): Limit 6000, Used 5034, Requested 1443. Please try again in 4.77s.",
        ),
        "rate_limit",
        4.77,
    ),
    # servers, keys, and what is left
    "too early": Wrong(425, "", "server"),
    "overloaded": Wrong(529, anthropic("overloaded_error", "Overloaded"), "server"),
    "a timeout": Wrong(408, router(408, "Your request timed out"), "server"),
    "a conflict": Wrong(409, openai(None, "Try again in 5 seconds."), "server", 5),
    "a wrong key": Wrong(401, openai("invalid_api_key", "Incorrect API key provided."), "key"),
    "a country": Wrong(403, openai("unsupported_country_region_territory", "Country not supported"), "key"),
    "a data policy": Wrong(404, router(404, "No endpoints found matching your data policy"), "model"),
    "a parameter": Wrong(400, openai("unsupported_parameter", "Unsupported parameter: 'max_tokens'"), "request"),
    "a stray 400": Wrong(400, openai("bad_request", "Bad request"), "stray"),
}


def failed(code: str, message: str = "Something happened.", **more: Any) -> dict[str, Any]:
    changes: dict[str, Any] = {"output": [], "usage": None, **more}
    return reply_body("responses", status="failed", error={"code": code, "message": message}, **changes)


def choice(error: Any, text: str = "", finish: str | None = "error") -> dict[str, Any]:
    one = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": finish, "error": error}
    return {"object": "chat.completion", "choices": [one]}


_IMAGES: Final = (
    *("invalid_image", "invalid_image_format", "invalid_base64_image", "invalid_image_url", "image_too_large"),
    *("image_too_small", "image_parse_error", "invalid_image_mode", "image_file_too_large"),
    *("unsupported_image_media_type", "empty_image_file", "image_file_not_found"),
)
RESPONSE_ERRORS: Final[Mapping[str, str]] = {  # each code of the SDK's ResponseError
    **dict.fromkeys(("server_error", "vector_store_timeout", "failed_to_download_image"), "server"),
    "rate_limit_exceeded": "rate_limit",
    **dict.fromkeys(("invalid_prompt", "bio_policy", "misalignment_policy_violation"), "refused"),
    "image_content_policy_violation": "refused",
    **dict.fromkeys((*_IMAGES, "data_residency_mismatch"), "stray"),
}

_ALONE: Final[Mapping[str, Wrong]] = {  # nothing but an error: the same in every protocol
    "OpenRouter 402": Wrong(200, router(402, "Insufficient credits"), "money"),
    "OpenRouter 429": Wrong(200, router(429, "Rate limit exceeded: please try again in 7s"), "rate_limit", 7),
    **{f"OpenRouter {code}": Wrong(200, router(code, "Provider error"), "server") for code in (500, 502, 503, 504)},
    "OpenRouter 502 in words": Wrong(200, {"error": {"code": "502", "message": "Bad gateway"}}, "server"),
    "OpenAI's shape": Wrong(200, openai("server_error", "overloaded", "server_error"), "server"),
    "a text": Wrong(200, {"error": "upstream connect error"}, "server"),
    "vLLM's shape": Wrong(
        200, {"object": "error", "message": "no", "type": "InternalServerError", "code": 500}, "server"
    ),
    "overloaded_error": Wrong(200, anthropic("overloaded_error", "Overloaded"), "server"),
    "billing_error": Wrong(200, anthropic("billing_error", "Pay"), "money"),
    "authentication_error": Wrong(200, anthropic("authentication_error", "Who?"), "key"),
    "OpenRouter's day": Wrong(200, router(429, "Rate limit exceeded: free-models-per-day"), "quota"),
    "Anthropic's filter": Wrong(200, anthropic("invalid_request_error", _BLOCKED), "refused"),
    "an unknown kind": Wrong(200, anthropic("novel_error", "New"), "server"),
}
BODIES: Final[Mapping[Api, Mapping[str, Wrong]]] = {
    "responses": {
        **_ALONE,
        **{f"failed, {code}": Wrong(200, failed(code), meaning) for code, meaning in RESPONSE_ERRORS.items()},
        "failed, an unknown code": Wrong(200, failed("solar_flare"), "server"),
        "failed, no error": Wrong(200, reply_body("responses", None, status="failed"), "server"),
        "failed beside an answer": Wrong(
            200, failed("server_error", output=reply_body("responses")["output"]), "server"
        ),
        "failed, too long": Wrong(200, failed("context_length_exceeded"), "too_long"),
        "cancelled": Wrong(200, reply_body("responses", status="cancelled"), "server"),
        "queued": Wrong(200, reply_body("responses", None, status="queued"), "server"),
        "in progress": Wrong(200, reply_body("responses", status="in_progress"), "server"),
    },
    "chat": {
        **_ALONE,
        "in the choice, 502": Wrong(200, choice({"code": 502, "message": "Upstream"}, "I thi"), "server"),
        "in the choice, 429": Wrong(200, choice({"code": 429, "message": "Slow down"}), "rate_limit"),
        "in the choice, 403": Wrong(200, choice({"code": 403, "message": "Flagged: requires moderation"}), "refused"),
        "in the choice, 402": Wrong(200, choice({"code": 402, "message": "Insufficient credits"}), "money"),
        "in the choice, no finish": Wrong(200, choice({"code": 502, "message": "Upstream"}, finish=None), "server"),
        "finish_reason error": Wrong(200, choice(None, YES), "server"),
    },
    "messages": _ALONE,
}


def _message(text: str = YES, **more: Any) -> dict[str, Any]:
    return {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}], **more}


def _said(message: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    one = {"index": 0, "message": {"role": "assistant", "content": YES, **message}, "finish_reason": "stop", **more}
    return {"choices": [one]}


_ERROR: Final = {"code": "server_error", "message": "but then"}
_CALL: Final = {"type": "function_call", "call_id": "1", "name": "f", "arguments": YES}
CONTRADICTIONS: Final[Mapping[Api, Mapping[str, dict[str, Any]]]] = {  # changes of a good reply
    "responses": {
        "two final answers": {"output": [_message(phase="final_answer"), _message(phase="final_answer")]},
        "an answer over two messages": {"output": [_message('{"answer": '), _message("true}")]},
        "a final answer and one without a phase": {"output": [_message(phase="final_answer"), _message()]},
        "an error beside it": {"error": _ERROR},
        "a call beside it": {"output": [_message(), _CALL]},
        "a call of another tool": {"output": [{"type": "custom_tool_call", "input": "x"}, _message()]},
        "an approval is waited for": {"output": [_message(), {"type": "mcp_approval_request"}]},
        "the user's": {"output": [_message(role="user")]},
        "a tool's beside it": {"output": [_message(), _message(role="tool", phase="commentary")]},
        "incomplete without a reason": {"status": "incomplete"},
        "an incomplete message": {"output": [_message(status="incomplete")]},
        "text and refusal": {
            "output": [_message() | {"content": [*_message()["content"], {"type": "refusal", "refusal": "No."}]}]
        },
        "only commentary": {"output": [_message(phase="commentary")]},
    },
    "chat": {
        "two choices": {"choices": 2 * _said({})["choices"]},
        "an error beside it": {"error": _ERROR},
        "an error in the choice": _said({}, error={"code": 502, "message": "but then"}),
        "a call beside it": _said({"tool_calls": [{"id": "1", "type": "function", "function": {"name": "f"}}]}),
        "an old call beside it": _said({"function_call": {"name": "f", "arguments": YES}}),
        "the user's": _said({"role": "user"}),
        "a tool's": _said({"role": "tool"}),
        "text and refusal": _said({"refusal": "No."}),
        "text and refusal in parts": _said(
            {"content": [{"type": "text", "text": YES}, {"type": "refusal", "refusal": "No."}]}
        ),
    },
    "messages": {
        "an error beside it": {"error": _ERROR},
        "an error's type": {"type": "error", "error": _ERROR},
        "a call beside it": {"content": [{"type": "text", "text": YES}, {"type": "tool_use", "id": "1", "name": "f"}]},
        "the user's": {"role": "user"},
    },
}
