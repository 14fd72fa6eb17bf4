"""The protocols that the built-in server supports: reading requests, writing replies and errors.

These are Anthropic's Messages API, and OpenAI's Responses API and Chat Completions, which other servers also offer. The
Decisions API is in `decisions`.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Literal, NamedTuple

from dubito.house.logprobs import MAX_LISTED, token_logprobs
from dubito.house.request import (
    HouseRequest,
    JsonBody,
    Refusal,
    RefusalKind,
    blocks,
    check_schema,
    first_tokens,
    read_limit,
    read_model,
    read_texts,
    section,
    tokens,
)
from dubito.model_settings import Api

# How a text ended: complete, at the limit, declined, or filtered.
End = Literal["stop", "length", "refused", "filtered"]

CREATED: Final = 1_767_225_600  # 2026-01-01T00:00:00Z, because answers do not depend on a clock
CREATED_TEXT: Final = "2026-01-01T00:00:00Z"


class Problem(NamedTuple):
    """A provider's format for one kind of error. The message is a template for the refusal's values."""

    status: int
    type: str
    message: str
    code: str | None = None


@dataclass(frozen=True, slots=True)
class ReadPrompt:
    """A parsed request: what the policy sees, and the reply's limits and format."""

    model: str
    text: str
    cached: int  # tokens at the beginning of the text that are counted as cached
    schema: Mapping[str, Any] | None
    max_output: int | None

    @property
    def tokens(self) -> int:
        return tokens(self.text)


@dataclass(frozen=True, slots=True)
class ModelOutput:
    """A model's output and how it ended. `text` follows the `thoughts` and may be None."""

    text: str | None
    end: End = "stop"
    thoughts: str | None = None
    odds: Mapping[Any, float] | None = None  # the odds of an Opinion

    def truncate(self, limit: int | None) -> "ModelOutput":
        """Return the output truncated at a limit. Thoughts come before the text. A refusal stays a refusal."""
        if limit is None or self.tokens <= limit:
            return self
        remaining = limit - self.thought_tokens
        thoughts = first_tokens(self.thoughts, limit) if self.thoughts is not None else None
        text = first_tokens(self.text, remaining) if self.text is not None and remaining > 0 else None
        return ModelOutput(text, "length" if self.end == "stop" else self.end, thoughts, self.odds)

    @property
    def thought_tokens(self) -> int:
        return tokens(self.thoughts or "")

    @property
    def tokens(self) -> int:
        return tokens(self.text or "") + self.thought_tokens


class Wire(ABC):
    """One provider's protocol."""

    name: ClassVar[Api]
    base: ClassVar[str]  # the path in its SDK's base URL
    problems: ClassVar[Mapping[RefusalKind, Problem]]
    parameters: ClassVar[frozenset[str]]  # supported parameters of a request's body
    rejected: ClassVar[frozenset[str]]  # parameters that are always refused
    unsupported: ClassVar[frozenset[str]]  # parameters that are refused unless false or null

    def admit(self, headers: Mapping[str, str]) -> None:
        """Refuse a missing key, and keys that start with `wrong` or `broke` (no credit)."""
        key = self.key(headers)
        if not key:
            raise Refusal("no_key")
        if key.startswith("wrong"):
            raise Refusal("wrong_key")
        if key.startswith("broke"):
            raise Refusal("no_money")

    def check_parameters(self, body: JsonBody) -> None:
        """Refuse a request with unsupported parameters, naming the alphabetically first one."""
        for name in sorted(body):
            if name in self.rejected or (name in self.unsupported and body[name]):
                raise Refusal("unsupported", name=name)
            if name not in self.parameters:
                raise Refusal("unknown_parameter", name=name)

    def problem(self, refusal: Refusal) -> tuple[Problem, str]:
        problem = self.problems[refusal.kind]
        return problem, problem.message.format(**refusal.facts)

    def key(self, headers: Mapping[str, str]) -> str:
        """Return the key from the headers, or an empty string without one."""
        return headers.get("authorization", "").removeprefix("Bearer ").strip()

    @abstractmethod
    def read(self, body: JsonBody) -> ReadPrompt:
        """Parse a request. Raises Refusal."""

    @abstractmethod
    def reply(self, request: HouseRequest, body: JsonBody, prompt: ReadPrompt, written: ModelOutput) -> JsonBody:
        """Return the body of a reply."""

    @abstractmethod
    def error(self, refusal: Refusal, request_id: str) -> JsonBody:
        """Return the body of an error."""

    @abstractmethod
    def headers(self, request_id: str, limited: bool) -> dict[str, str]:
        """Return the headers of an answer. `limited` is set if a rate limit was hit."""

    @abstractmethod
    def model(self, name: str) -> JsonBody:
        """Return a model's entry for the list of models."""

    @abstractmethod
    def models(self, names: Sequence[str]) -> JsonBody:
        """Return the list of models."""


_ANTHROPIC_INVALID: Final = "invalid_request_error"
_MESSAGES_PARAMETERS: Final = (
    "cache_control container diagnostics inference_geo max_tokens messages metadata model output_config"
    " service_tier speed stop_sequences stream system thinking tool_choice tools user_profile_id workspace_id"
)
_LIMITS: Final[Mapping[str, int]] = {"requests": 4_000, "input-tokens": 4_000_000, "output-tokens": 800_000}

_STOP_REASONS: Final[Mapping[End, str]] = {
    "stop": "end_turn",
    "length": "max_tokens",
    "refused": "refusal",
    "filtered": "refusal",
}

_ANTHROPIC_PROBLEMS: Final[Mapping[RefusalKind, Problem]] = {
    "no_key": Problem(401, "authentication_error", "x-api-key header is required"),
    "wrong_key": Problem(401, "authentication_error", "invalid x-api-key"),
    "no_money": Problem(
        402,
        "billing_error",
        "Your credit balance is too low to access the Anthropic API."
        " Please go to Plans & Billing to upgrade or purchase credits.",
    ),
    "malformed": Problem(400, _ANTHROPIC_INVALID, "The request body is not valid JSON."),
    "missing": Problem(400, _ANTHROPIC_INVALID, "{name}: Field required"),
    "unknown_parameter": Problem(400, _ANTHROPIC_INVALID, "{name}: Extra inputs are not permitted"),
    "unsupported": Problem(400, _ANTHROPIC_INVALID, "`{name}` is not supported with this model."),
    "bad_value": Problem(400, _ANTHROPIC_INVALID, "{name}: Input should be {expected}"),
    "bad_schema": Problem(400, _ANTHROPIC_INVALID, "{name}: {reason}"),
    "too_long": Problem(400, _ANTHROPIC_INVALID, "prompt is too long: {tokens} tokens > {limit} maximum"),
    "unknown_model": Problem(404, "not_found_error", "model: {model}. Available models: {known}."),
    "unknown_path": Problem(404, "not_found_error", "Not found"),
    "wrong_method": Problem(405, _ANTHROPIC_INVALID, "Method Not Allowed"),
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
    unsupported = frozenset({"container"})
    parameters = frozenset(_MESSAGES_PARAMETERS.split())
    problems = _ANTHROPIC_PROBLEMS

    def admit(self, headers: Mapping[str, str]) -> None:
        super().admit(headers)
        if "anthropic-version" not in headers:
            raise Refusal("missing", name="anthropic-version")

    def key(self, headers: Mapping[str, str]) -> str:
        return headers.get("x-api-key") or super().key(headers)

    def read(self, body: JsonBody) -> ReadPrompt:
        """Parse the system part and the messages, and count what would be cached.

        This is the system part up to its last `cache_control`, or all of it if the request has one. If a block of a
        message has one, it is everything before that block, assuming that an earlier request had a mark there.
        """
        self.check_parameters(body)
        model = read_model(body)
        for name in ("max_tokens", "messages"):
            if body.get(name) is None:
                raise Refusal("missing", name=name)
        messages = blocks(body["messages"], "messages")
        if not messages:
            raise Refusal("bad_value", name="messages", expected="at least one message")
        texts: list[str] = []
        marked = 0  # texts before the last mark
        for place, message in enumerate(messages):
            content, name = message.get("content"), f"messages.{place}.content"
            for block in blocks(content, name) if isinstance(content, list) else []:
                marked = len(texts) if block.get("cache_control") is not None else marked
                texts += read_texts([block], name)
            texts += read_texts(content, name) if not isinstance(content, list) else []
        system = [] if body.get("system") is None else list(read_texts(body["system"], "system"))
        cached: list[str] = []
        if marked:
            cached = system + texts[:marked]
        elif body.get("cache_control") is not None:
            cached = system
        elif isinstance(body.get("system"), list):
            parts = blocks(body["system"], "system")
            marks = [place for place, block in enumerate(parts) if block.get("cache_control") is not None]
            cached = list(read_texts(parts[: marks[-1] + 1], "system")) if marks else []
        form, schema = section(section(body, "output_config"), "format"), None
        if form.get("type") == "json_schema":
            schema = check_schema(form.get("schema"), "output_config.format.schema", requires_all=False)
        return ReadPrompt(
            model=model,
            text="\n".join(system + texts),
            cached=tokens("\n".join(cached)),
            schema=schema,
            max_output=read_limit(body, "max_tokens", 1),
        )

    def reply(self, request: HouseRequest, body: JsonBody, prompt: ReadPrompt, written: ModelOutput) -> JsonBody:
        content: list[JsonBody] = []
        if written.thoughts is not None:
            signature = request.digest_for("thoughts")
            content.append({"type": "thinking", "thinking": written.thoughts, "signature": signature})
        # A refusal has no text, and a filtered reply the part before the filter.
        if written.text is not None and written.end != "refused":
            content.append({"type": "text", "text": written.text, "citations": None})
        declined = written.end in ("refused", "filtered")
        details = {"type": "refusal", "category": None, "explanation": None}
        return {
            "id": f"msg_01{request.digest_for('reply')[:22]}",
            "type": "message",
            "role": "assistant",
            "model": prompt.model,
            "content": content,
            "stop_reason": _STOP_REASONS[written.end],
            "stop_sequence": None,
            "stop_details": details if declined else None,
            "container": None,
            "usage": {
                # The count excludes cached tokens.
                "input_tokens": prompt.tokens - prompt.cached,
                "cache_creation_input_tokens": 0,
                "cache_read_input_tokens": prompt.cached,
                "cache_creation": {"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": 0},
                "output_tokens": written.tokens,
                "output_tokens_details": {"thinking_tokens": written.thought_tokens},
                "service_tier": "standard",
                **{name: body[name] for name in ("speed", "inference_geo") if body.get(name)},
            },
        }

    def error(self, refusal: Refusal, request_id: str) -> JsonBody:
        problem, message = self.problem(refusal)
        return {"type": "error", "error": {"type": problem.type, "message": message}, "request_id": request_id}

    def headers(self, request_id: str, limited: bool) -> dict[str, str]:
        """Return the request id and the rate limits. These never change, because the server does not count calls."""
        headers = {"request-id": request_id, "anthropic-organization-id": "00000000-0000-0000-0000-000000000000"}
        for name, limit in _LIMITS.items():
            headers[f"anthropic-ratelimit-{name}-limit"] = str(limit)
            headers[f"anthropic-ratelimit-{name}-remaining"] = "0" if limited else str(limit - limit // 1000)
            headers[f"anthropic-ratelimit-{name}-reset"] = CREATED_TEXT
        return headers

    def model(self, name: str) -> JsonBody:
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
        return {
            "data": [self.model(name) for name in names],
            "has_more": False,
            "first_id": names[0],
            "last_id": names[-1],
        }


def _served_tier(body: JsonBody) -> str:
    """Return the service tier in a reply of OpenAI: what was asked for, or the default one for `auto`."""
    tier = body.get("service_tier") or "auto"
    return "default" if tier == "auto" else str(tier)


_MIN_CACHED: Final = 1024  # tokens; OpenAI does not cache shorter prefixes
_OPENAI_INVALID: Final = "invalid_request_error"

_OPENAI_PROBLEMS: Final[Mapping[RefusalKind, Problem]] = {
    "no_key": Problem(401, _OPENAI_INVALID, "You didn't provide an API key in an Authorization header."),
    "wrong_key": Problem(401, _OPENAI_INVALID, "Incorrect API key provided.", "invalid_api_key"),
    "no_money": Problem(
        429,
        "insufficient_quota",
        "You exceeded your current quota, please check your plan and billing details.",
        "insufficient_quota",
    ),
    "malformed": Problem(400, _OPENAI_INVALID, "We could not parse the JSON body of your request."),
    "missing": Problem(400, _OPENAI_INVALID, "Missing required parameter: '{name}'.", "missing_required_parameter"),
    "unknown_parameter": Problem(400, _OPENAI_INVALID, "Unknown parameter: '{name}'.", "unknown_parameter"),
    "unsupported": Problem(
        400,
        _OPENAI_INVALID,
        "Unsupported parameter: '{name}' is not supported with this model.",
        "unsupported_parameter",
    ),
    "bad_value": Problem(400, _OPENAI_INVALID, "Invalid value for '{name}': expected {expected}.", "invalid_value"),
    "bad_schema": Problem(400, _OPENAI_INVALID, "Invalid schema for '{name}': {reason}.", "invalid_json_schema"),
    "too_long": Problem(
        400,
        _OPENAI_INVALID,
        "Your input exceeds the context window of this model. Please adjust your input and try again.",
        "context_length_exceeded",
    ),
    "unknown_model": Problem(
        404,
        _OPENAI_INVALID,
        "The model `{model}` does not exist or you do not have access to it. Available models: {known}.",
        "model_not_found",
    ),
    "unknown_path": Problem(404, _OPENAI_INVALID, "Invalid URL ({method} {path})"),
    "wrong_method": Problem(405, _OPENAI_INVALID, "Not allowed to {method} on {path}.", "method_not_supported"),
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
    """What OpenAI's protocols have in common."""

    base = "/v1"
    rejected = frozenset[str]()
    problems = _OPENAI_PROBLEMS

    def error(self, refusal: Refusal, request_id: str) -> JsonBody:
        problem, message = self.problem(refusal)
        param = refusal.facts.get("name")
        return {"error": {"message": message, "type": problem.type, "param": param, "code": problem.code}}

    def headers(self, request_id: str, limited: bool) -> dict[str, str]:
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
        return {"id": name, "object": "model", "created": CREATED, "owned_by": "dubito"}

    def models(self, names: Sequence[str]) -> JsonBody:
        return {"object": "list", "data": [self.model(name) for name in names]}


def build_prompt(
    model: str, messages: Iterable[tuple[str, str]], schema: Mapping[str, Any] | None, max_output: int | None
) -> ReadPrompt:
    """Build a prompt from (role, text) pairs. Leading system messages count as cacheable."""
    stable: list[str] = []
    rest: list[str] = []
    for role, text in messages:
        (stable if role in ("system", "developer") and not rest else rest).append(text)
    cached = tokens("\n".join(stable))
    return ReadPrompt(model, "\n".join(stable + rest), cached if cached >= _MIN_CACHED else 0, schema, max_output)


def read_schema(form: JsonBody, name: str) -> Mapping[str, Any]:
    if not isinstance(form.get("name"), str):
        raise Refusal("missing", name=f"{name}.name")
    return check_schema(form.get("schema"), f"{name}.schema", requires_all=form.get("strict") is True)


_CHAT_PARAMETERS: Final = (
    "audio frequency_penalty function_call functions logit_bias logprobs max_completion_tokens max_tokens messages"
    " metadata modalities model moderation n parallel_tool_calls prediction presence_penalty prompt_cache_key"
    " prompt_cache_options prompt_cache_retention reasoning_effort response_format safety_identifier seed"
    " service_tier stop store stream stream_options temperature tool_choice tools top_logprobs top_p user verbosity"
    " web_search_options"
)
_CHAT_UNSUPPORTED: Final = (
    "audio function_call functions parallel_tool_calls prediction tool_choice tools web_search_options"
)
_ROLES: Final = ("developer", "system", "user", "assistant")
_FORMATS: Final = ("text", "json_object", "json_schema")
_FINISHES: Final = {"length": "length", "filtered": "content_filter"}


class ChatWire(OpenAIWire):
    """POST /v1/chat/completions."""

    name = "chat"
    unsupported = frozenset(_CHAT_UNSUPPORTED.split())
    parameters = frozenset(_CHAT_PARAMETERS.split())

    def read(self, body: JsonBody) -> ReadPrompt:
        """Parse the messages. `max_tokens` is the old name of `max_completion_tokens`."""
        self.check_parameters(body)
        model = read_model(body)
        if body.get("messages") is None:
            raise Refusal("missing", name="messages")
        if body.get("n") not in (None, 1):
            raise Refusal("unsupported", name="n")
        limits = [read_limit(body, name, 1) for name in ("max_completion_tokens", "max_tokens")]
        if None not in limits:
            raise Refusal("unsupported", name="max_tokens")
        most = read_limit(body, "top_logprobs", 0)
        if most is not None and (most > MAX_LISTED or not body.get("logprobs")):
            raise Refusal("bad_value", name="top_logprobs", expected=f"at most {MAX_LISTED}, beside 'logprobs': true")
        texts = list(_chat_texts(body["messages"]))
        form, schema = section(body, "response_format"), None
        kind = form.get("type", "text")
        if kind not in _FORMATS:
            raise Refusal("bad_value", name="response_format.type", expected=f"one of {', '.join(_FORMATS)}")
        if kind == "json_schema":
            schema = read_schema(section(form, "json_schema"), "response_format.json_schema")
        prompt = build_prompt(model, texts, schema, limits[0] or limits[1])
        if kind == "json_object" and "json" not in prompt.text.lower():
            raise Refusal("bad_value", name="messages", expected="the word 'json' in them to use 'json_object'")
        return prompt

    def reply(self, request: HouseRequest, body: JsonBody, prompt: ReadPrompt, written: ModelOutput) -> JsonBody:
        """Return a chat completion. The thoughts are in the field used by servers other than OpenAI's."""
        refused = written.end == "refused"
        message: JsonBody = {
            "role": "assistant",
            "content": None if refused else written.text,
            "refusal": written.text if refused else None,
            "annotations": [],
        }
        if written.thoughts is not None:
            message["reasoning_content"] = written.thoughts
        logprobs = None
        if body.get("logprobs") and not refused and written.text is not None:
            rows = token_logprobs(written.text, written.odds or {}, body.get("top_logprobs") or 0)
            logprobs = {"content": rows, "refusal": None}
        finish = _FINISHES.get(written.end, "stop")
        return {
            "id": f"chatcmpl-{request.digest_for('reply')[:29]}",
            "object": "chat.completion",
            "created": CREATED,
            "model": prompt.model,
            "choices": [{"index": 0, "message": message, "logprobs": logprobs, "finish_reason": finish}],
            "usage": {
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
            },
            "service_tier": _served_tier(body),
            "system_fingerprint": None,
        }


def _chat_texts(value: object) -> Iterator[tuple[str, str]]:
    """Yield the role and text of each text in the messages. Raises Refusal."""
    messages = blocks(value, "messages")
    if not messages:
        raise Refusal("bad_value", name="messages", expected="at least one message")
    for place, message in enumerate(messages):
        role, content = message.get("role"), message.get("content")
        if role not in _ROLES:
            raise Refusal("bad_value", name=f"messages[{place}].role", expected=f"one of {', '.join(_ROLES)}")
        # After a refusal, the assistant's message has no content.
        if role == "assistant" and content is None:
            continue
        for text in read_texts(content, f"messages[{place}].content"):
            yield role, text


_MIN_OUTPUT: Final = 16
_RESPONSES_PARAMETERS: Final = (
    "access_programs background background_options context_management conversation image include input"
    " instructions max_output_tokens max_tool_calls metadata model moderation parallel_tool_calls"
    " previous_response_id prompt prompt_cache_key prompt_cache_options prompt_cache_retention reasoning"
    " safety_identifier service_tier store stream stream_options temperature text tool_choice tools"
    " top_logprobs top_p truncation user"
)

# Fields that a reply copies from its request, with their defaults.
_DEFAULTS: Final[Mapping[str, Any]] = {
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
# Reasons for incomplete replies.
_REASONS: Final = {"length": "max_output_tokens", "filtered": "content_filter"}


class ResponsesWire(OpenAIWire):
    """POST /v1/responses."""

    name = "responses"
    unsupported = frozenset({"background", "conversation", "previous_response_id", "prompt"})
    parameters = frozenset(_RESPONSES_PARAMETERS.split())

    def read(self, body: JsonBody) -> ReadPrompt:
        self.check_parameters(body)
        model = read_model(body)
        if body.get("input") is None:
            raise Refusal("missing", name="input")
        form = section(section(body, "text"), "format")
        return build_prompt(
            model,
            list(responses_texts(body)),
            read_schema(form, "text.format") if form.get("type") == "json_schema" else None,
            read_limit(body, "max_output_tokens", _MIN_OUTPUT),
        )

    def reply(self, request: HouseRequest, body: JsonBody, prompt: ReadPrompt, written: ModelOutput) -> JsonBody:
        reason = _REASONS.get(written.end)
        status = "incomplete" if reason else "completed"
        repeated = {name: value for name, value in body.items() if name in _DEFAULTS and value is not None}
        items: list[JsonBody] = []
        if written.thoughts is not None:
            summary = [{"type": "summary_text", "text": written.thoughts}]
            items.append({"id": f"rs_{request.digest_for('thoughts')[:48]}", "type": "reasoning", "summary": summary})
        if written.text is not None:
            content: JsonBody = {"type": "output_text", "annotations": [], "logprobs": [], "text": written.text}
            if written.end == "refused":
                content = {"type": "refusal", "refusal": written.text}
            message = {"type": "message", "status": status, "role": "assistant", "content": [content]}
            items.append({"id": f"msg_{request.digest_for('message')[:48]}", **message})
        return {
            **_DEFAULTS,
            **repeated,
            "id": f"resp_{request.digest_for('reply')[:48]}",
            "object": "response",
            "created_at": CREATED,
            "completed_at": None if reason else CREATED,
            "status": status,
            "error": None,
            "incomplete_details": {"reason": reason} if reason else None,
            "model": prompt.model,
            "output": items,
            "service_tier": _served_tier(body),
            "text": {"format": {"type": "text"}, "verbosity": "medium", **section(body, "text")},
            "usage": {
                "input_tokens": prompt.tokens,
                "input_tokens_details": {"cached_tokens": prompt.cached, "cache_write_tokens": 0},
                "output_tokens": written.tokens,
                "output_tokens_details": {"reasoning_tokens": written.thought_tokens},
                "total_tokens": prompt.tokens + written.tokens,
            },
        }


def responses_texts(body: JsonBody) -> Iterator[tuple[str, str]]:
    """Yield the role and text of each text. The input is a string or a list of items, some of which are messages."""
    if body.get("instructions") is not None:
        for text in read_texts(body["instructions"], "instructions"):
            yield "developer", text
    if isinstance(body["input"], str):
        yield "user", body["input"]
        return
    for place, item in enumerate(blocks(body["input"], "input")):
        for text in read_texts(item.get("content") or [], f"input[{place}].content"):
            yield str(item.get("role")), text
