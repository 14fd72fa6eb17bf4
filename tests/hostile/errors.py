"""Error bodies of providers and routers with the expected verdicts. Some have status 200."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from dubito.files import read_yaml
from dubito.model_settings import Api
from tests.llm.kit import YES, reply_body


class ErrorCase(NamedTuple):
    """A response with an error, and its verdict: how the try fails, or who has to fix it."""

    status: int
    body: Any
    meaning: str  # a kind of TryFailed, or who has to fix it; `stray` is retried first
    wait: float | None = None  # requested wait in seconds


def openai(code: str | None, message: str, kind: str | None = "invalid_request_error", **more: Any) -> dict[str, Any]:
    return {"error": {"message": message, "type": kind, "param": None, "code": code, **more}}


_TABLES: Final = read_yaml(Path(__file__).with_name("errors.yaml"))
STATUSES: Final[Mapping[str, ErrorCase]] = {name: ErrorCase(**row) for name, row in _TABLES["with_status"].items()}
_ALONE: Final[Mapping[str, ErrorCase]] = {name: ErrorCase(**row) for name, row in _TABLES["alone"].items()}


def failed_body(code: str, message: str = "Something happened.", **more: Any) -> dict[str, Any]:
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
RESPONSE_ERRORS: Final[Mapping[str, str]] = {  # each code in the SDK's ResponseError
    **dict.fromkeys(("server_error", "vector_store_timeout", "failed_to_download_image"), "server"),
    "rate_limit_exceeded": "rate_limit",
    **dict.fromkeys(("invalid_prompt", "bio_policy", "misalignment_policy_violation"), "refused"),
    "image_content_policy_violation": "refused",
    **dict.fromkeys((*_IMAGES, "data_residency_mismatch"), "stray"),
}

BODIES: Final[Mapping[Api, Mapping[str, ErrorCase]]] = {
    "responses": {
        **_ALONE,
        **{f"failed, {code}": ErrorCase(200, failed_body(code), meaning) for code, meaning in RESPONSE_ERRORS.items()},
        "failed, an unknown code": ErrorCase(200, failed_body("solar_flare"), "server"),
        "failed, no error": ErrorCase(200, reply_body("responses", None, status="failed"), "server"),
        "failed beside an answer": ErrorCase(
            200, failed_body("server_error", output=reply_body("responses")["output"]), "server"
        ),
        "failed, too long": ErrorCase(200, failed_body("context_length_exceeded"), "too_long"),
        "cancelled": ErrorCase(200, reply_body("responses", status="cancelled"), "server"),
        "queued": ErrorCase(200, reply_body("responses", None, status="queued"), "server"),
        "in progress": ErrorCase(200, reply_body("responses", status="in_progress"), "server"),
    },
    "chat": {
        **_ALONE,
        "in the choice, 502": ErrorCase(200, choice({"code": 502, "message": "Upstream"}, "I thi"), "server"),
        "in the choice, 429": ErrorCase(200, choice({"code": 429, "message": "Slow down"}), "rate_limit"),
        "in the choice, 403": ErrorCase(
            200, choice({"code": 403, "message": "Flagged: requires moderation"}), "refused"
        ),
        "in the choice, 402": ErrorCase(200, choice({"code": 402, "message": "Insufficient credits"}), "money"),
        "in the choice, no finish": ErrorCase(200, choice({"code": 502, "message": "Upstream"}, finish=None), "server"),
        "finish_reason error": ErrorCase(200, choice(None, YES), "server"),
    },
    "messages": _ALONE,
}


def _message(text: str = YES, **more: Any) -> dict[str, Any]:
    return {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}], **more}


def _chat_body(message: Mapping[str, Any], **more: Any) -> dict[str, Any]:
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
        "two choices": {"choices": 2 * _chat_body({})["choices"]},
        "an error beside it": {"error": _ERROR},
        "an error in the choice": _chat_body({}, error={"code": 502, "message": "but then"}),
        "a call beside it": _chat_body({"tool_calls": [{"id": "1", "type": "function", "function": {"name": "f"}}]}),
        "an old call beside it": _chat_body({"function_call": {"name": "f", "arguments": YES}}),
        "the user's": _chat_body({"role": "user"}),
        "a tool's": _chat_body({"role": "tool"}),
        "text and refusal": _chat_body({"refusal": "No."}),
        "text and refusal in parts": _chat_body(
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
