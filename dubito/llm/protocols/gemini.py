"""Google's Gemini API: `models.generateContent`.

The body follows https://ai.google.dev/api/generate-content. The path names the model, so the body does not. Replies are
not streamed, since another path does that.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final
from urllib.parse import quote

from dubito.llm.protocols.openai import OpenAIFormat
from dubito.llm.protocols.wire import (
    DECLINED,
    FILTERED,
    Content,
    Exchange,
    as_mapping,
    as_objects,
    describe_missing_text,
    find_contradiction,
    find_error,
    parse_usage,
)
from dubito.llm.request import Charges, Finish, Request, Usage
from dubito.model_settings import ModelSettings

if TYPE_CHECKING:
    import httpx2

_ROLES: Final = {"assistant": "model", "user": "user"}
_FINISHES: Final[Mapping[str, Finish]] = {
    "STOP": "stop",
    "MAX_TOKENS": "length",
    **dict.fromkeys(("SAFETY", "RECITATION", "LANGUAGE", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII"), "refusal"),
}
_TOOL_PARTS: Final = ("functionCall", "executableCode", "toolCall")


class Gemini(OpenAIFormat):
    """The calls are made with OpenAI's SDK, which can send any body, and with Google's header for the key."""

    label: ClassVar[str] = "the Gemini API"
    reply_label: ClassVar[str] = "Gemini API response"
    path: ClassVar[str] = "/v1beta/models/MODEL:generateContent"
    answer_field: ClassVar[str] = "candidates"
    models_path: ClassVar[str] = "/v1beta/models"
    provider: ClassVar[str] = "gemini"
    bot: ClassVar[str] = "GeminiBot"
    key_variable: ClassVar[str] = "GEMINI_API_KEY"
    address: ClassVar[str] = "https://generativelanguage.googleapis.com"
    address_variable: ClassVar[str] = "GOOGLE_GEMINI_BASE_URL"
    message_fields: ClassVar[Sequence[str]] = ("systemInstruction", "contents")
    model_field: ClassVar[str] = "modelVersion"

    @classmethod
    def build_request(cls, settings: ModelSettings, exchange: Exchange, cache_key: str) -> Request:
        parameters = dict(settings.parameters)
        form: dict[str, Any] = {"maxOutputTokens": settings.max_output}
        if exchange.schema is not None:
            form |= {"responseMimeType": "application/json", "responseJsonSchema": exchange.schema}
        body: dict[str, Any] = {
            **({"systemInstruction": {"parts": [{"text": exchange.system}]}} if exchange.system else {}),
            "contents": [
                {"role": _ROLES[message["role"]], "parts": [{"text": message["content"]}]}
                for message in exchange.other_messages()
            ],
            "generationConfig": as_mapping(parameters.pop("generationConfig", None)) | form,
        }
        path = cls.path.replace("MODEL", quote(settings.model.removeprefix("models/"), safe=""))
        return Request("gemini", path, body | parameters)

    @staticmethod
    def conversation(body: Mapping[str, Any]) -> list[tuple[str, str]]:
        system = as_mapping(body.get("systemInstruction"))
        messages = [
            ("user" if each.get("role") == "user" else "assistant", each) for each in as_objects(body.get("contents"))
        ]
        return [(role, _join_parts(each)) for role, each in ([("system", system)] if system else []) + messages]

    @staticmethod
    def is_reply(body: Mapping[str, Any]) -> bool:
        candidates = body.get("candidates", [] if "promptFeedback" in body else None)
        return isinstance(candidates, list) and all(isinstance(each, dict) for each in candidates)

    @staticmethod
    def parse_text(body: Mapping[str, Any]) -> Content:
        """Return the text of the only candidate without its thoughts. A blocked prompt has no candidate."""
        candidates = as_objects(body.get("candidates"))
        if not candidates and as_mapping(body.get("promptFeedback")).get("blockReason"):
            return Content(None, "refusal", FILTERED)
        if len(candidates) != 1:
            return Content(None, "other", f"it has {len(candidates) or 'no'} candidates instead of one")
        content, reason = as_mapping(candidates[0].get("content")), candidates[0].get("finishReason")
        finish = _FINISHES.get(reason, "other") if isinstance(reason, str) else "other"
        calls_tool = any(kind in part for part in as_objects(content.get("parts")) for kind in _TOOL_PARTS)
        text, role = _join_parts(content), content.get("role")
        item = {"role": "assistant" if role == "model" else role}
        problem = find_contradiction(text, refusal=False, calls_tool=calls_tool, error=find_error(body), item=item)
        if problem:
            return Content(None, "other", problem)
        if finish == "refusal" or text.strip():
            return Content(text or None, finish, DECLINED if finish == "refusal" else "")
        ending = "length" if finish == "length" else reason
        thoughts = Gemini.parse_thoughts(body)
        return Content(None, finish, describe_missing_text(ending, thoughts, calls_tool=False))

    @staticmethod
    def parse_thoughts(body: Mapping[str, Any]) -> str | None:
        candidate = next(iter(as_objects(body.get("candidates"))), {})
        return _join_parts(as_mapping(candidate.get("content")), thoughts=True) or None

    @staticmethod
    def parse_charges(body: Mapping[str, Any]) -> Charges:
        # The service tier is a header, and Dubito does not ask for another one.
        return Charges()

    @staticmethod
    def parse_usage(body: Mapping[str, Any]) -> Usage | None:
        """Parse token counts. Counts of 0 are missing, and neither the candidates nor the prompt include the rest."""
        counts = as_mapping(body.get("usageMetadata"))
        kinds = ("candidatesTokenCount", "thoughtsTokenCount", "toolUsePromptTokenCount", "cachedContentTokenCount")
        written, thoughts, tool_use, cached = (counts.get(kind, 0) for kind in kinds)
        prompt = counts.get("promptTokenCount")
        if any(type(count) is not int for count in (prompt, written, thoughts, tool_use)):
            return None
        return parse_usage(prompt + tool_use, cached, 0, written + thoughts, thoughts, counts.get("totalTokenCount"))

    @staticmethod
    def list_models(body: Mapping[str, Any]) -> list[str]:
        names = [one["name"] for one in as_objects(body.get("models")) if isinstance(one.get("name"), str)]
        return [name.removeprefix("models/") for name in names]

    @staticmethod
    def build_client(sdk: Any, **arguments: Any) -> Any:
        # The SDK refuses to leave its own header out.
        arguments["http_client"].event_hooks["request"].append(_move_key)
        return OpenAIFormat.build_client(sdk, **arguments)


def _move_key(request: "httpx2.Request") -> None:
    request.headers["x-goog-api-key"] = request.headers.pop("authorization").removeprefix("Bearer ")


def _join_parts(content: Mapping[str, Any], *, thoughts: bool = False) -> str:
    parts = [part for part in as_objects(content.get("parts")) if bool(part.get("thought")) == thoughts]
    return "".join(part["text"] for part in parts if isinstance(part.get("text"), str))


WIRE: Final = Gemini
