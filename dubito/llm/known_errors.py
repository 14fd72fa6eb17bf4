"""The table of known errors: what a server's words mean, and the setting that helps.

Each row has a source: the provider's documentation, or the server's source file with the message. The first row that
fits decides. An error that fits no row gets no advice, since a guess sends the user in a wrong direction.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from dubito.llm.request import ProtocolName
from dubito.model_settings import Api

# The first five apply to this try, as in TryFailed. The user has to correct the rest.
Meaning = Literal[
    "malformed",
    "too_long",
    "refused",
    "rate_limit",
    "server",
    "size",
    "quota",
    "money",
    "key",
    "access",
    "model",
    "path",
    "request",
]

_OPENAI: Final = "https://platform.openai.com/docs/guides/error-codes"
_OPENAI_REASONING: Final = "https://platform.openai.com/docs/guides/reasoning"
_OPENAI_SCHEMAS: Final = "https://platform.openai.com/docs/guides/structured-outputs"
_ANTHROPIC: Final = "https://docs.claude.com/en/api/errors"
_ANTHROPIC_SCHEMAS: Final = "https://docs.claude.com/en/docs/build-with-claude/structured-outputs"
_OPENROUTER: Final = "https://openrouter.ai/docs/api-reference/errors"
_OPENROUTER_LIMITS: Final = "https://openrouter.ai/docs/api-reference/limits"
_OPENROUTER_ROUTING: Final = "https://openrouter.ai/docs/features/provider-routing"
_GROQ: Final = "https://console.groq.com/docs/errors"
_GROQ_SCHEMAS: Final = "https://console.groq.com/docs/structured-outputs"
_AZURE: Final = "https://learn.microsoft.com/azure/ai-foundry/openai/reference"
_AZURE_FILTER: Final = "https://learn.microsoft.com/azure/ai-foundry/openai/concepts/content-filter"
_GEMINI: Final = "https://ai.google.dev/gemini-api/docs/troubleshooting"
_DEEPSEEK: Final = "https://api-docs.deepseek.com/quick_start/error_codes"
_MISTRAL: Final = "https://docs.mistral.ai/api"
_XAI: Final = "https://docs.x.ai/docs/key-information/debugging"
_HUGGING_FACE: Final = "https://huggingface.co/docs/inference-providers"
_LM_STUDIO: Final = "https://lmstudio.ai/docs/developer/openai-compat"
_LITELLM: Final = "https://docs.litellm.ai/docs/exception_mapping"
_LITELLM_KEYS: Final = "BerriAI/litellm: litellm/proxy/auth/user_api_key_auth.py"
_LITELLM_PROXY: Final = "BerriAI/litellm: litellm/proxy/route_llm_request.py"
_VLLM: Final = "vllm-project/vllm: vllm/entrypoints/openai/serving_engine.py"
_VLLM_PROTOCOL: Final = "vllm-project/vllm: vllm/entrypoints/openai/protocol.py"
_SGLANG: Final = "sgl-project/sglang: python/sglang/srt/managers/tokenizer_manager.py"
_LLAMA: Final = "ggml-org/llama.cpp: tools/server/server-context.cpp"
_LLAMA_CHAT: Final = "ggml-org/llama.cpp: common/chat.cpp"
_OLLAMA: Final = "ollama/ollama: server/routes.go"
_TGI: Final = "huggingface/text-generation-inference: router/src/validation.rs"
_HTTP: Final = "https://www.rfc-editor.org/rfc/rfc9110#section-15.5"

_MAX_SEARCHED: Final = 10_000  # characters
_CONTEXT: Final = (
    "choose a shorter prompt, or enlarge the context window if the server is yours: Ollama `num_ctx`, llama.cpp `-c`, "
    "vLLM `--max-model-len`, SGLang `--context-length`, LM Studio's context length"
)
_OUTPUT: Final = "lower {setting}, which the server adds to the prompt"
_NAMED_SCHEMA: Final = r"(?:response_?format|response format|json_?schema|json schema|structured output|guided|grammar)"
_LARGE_SCHEMA: Final = (
    r"compiled grammar is too large|schemas? (?:is|are) too complex|too many (?:states|parameters with union types)"
)
_UNSUPPORTED: Final = (
    r"(?:unsupported|not supported|not permitted|unknown|unrecognized|unexpected|unavailable|not allowed"
    r"|does(?: not|n't) support|is not available|extra inputs)"
)


def _codes(*codes: str) -> str:
    """Return a pattern for exact codes, which are on their own lines."""
    return rf"^(?:{'|'.join(codes)})$"


def _refuses(name: str) -> str:
    """Return a pattern for a sentence that a part of the request is not supported."""
    return rf"{name}[^.]{{0,200}}{_UNSUPPORTED}|{_UNSUPPORTED}[^.]{{0,200}}{name}"


@dataclass(frozen=True, slots=True)
class KnownError:
    """A row of the table. `pattern` is searched in the codes and messages, which are in lower case."""

    meaning: Meaning
    pattern: str
    problem: str  # what the server did, after its name; `{model}` is replaced
    source: str
    setting: str = ""
    value: str = ""
    advice: str = ""  # `{setting}` is replaced with the setting's place
    statuses: Sequence[int] = ()  # empty: any
    apis: Sequence[Api] = ()  # the APIs in which the setting exists; empty: any


def find_known_error(status: int, text: str, protocol: ProtocolName | None = None) -> KnownError | None:
    """Return the first row that fits. `text` has the codes and messages on lines, in lower case."""
    searched = text[:_MAX_SEARCHED]
    for row in KNOWN_ERRORS:
        if (row.statuses and status not in row.statuses) or (row.apis and protocol and protocol not in row.apis):
            continue
        if re.search(row.pattern, searched, re.MULTILINE):
            return row
    return None


# The rows below are a table, so they are laid out by hand.
# fmt: off
# The counts decide that a request can never fit a limit per minute; see `verdicts.py`.
OVER_MINUTE_LIMIT: Final = KnownError("size", "",
    "does not accept a request of this size, including the reserved output",
    "https://console.groq.com/docs/rate-limits", setting="max_output", advice="lower {setting}")
# A used-up account, by Gemini's ids or by the absence of a time to wait; see `verdicts.py`.
USED_UP: Final = KnownError("money", "", "has no credit left", _OPENAI,
    advice="top it up, or resume when its quota is renewed")

_BAD_OUTPUT: Final = (
    KnownError("malformed", _codes("json_validate_failed", "tool_use_failed", "output_parse_failed"),
        "rejected the model's output", _GROQ_SCHEMAS),
    KnownError("malformed",
        r"failed to (?:generate|validate) json|generated json does not match|failed to call a function"
        r"|model (?:generated|produced) (?:output that could not be parsed|invalid (?:json|content|output))",
        "rejected the model's output", _GROQ_SCHEMAS),
    KnownError("malformed", r"failed to parse input at pos \d", "could not parse the model's output", _LLAMA_CHAT),
    KnownError("malformed", r"error parsing tool call: raw=", "could not parse the model's output", _OLLAMA),
    KnownError("malformed", r"unexpected tokens remaining in message header|while expecting start token",
        "could not parse the model's output", "openai/harmony: src/encoding.rs"),
)

# Prompt and reserved output together exceed the context window, so less output helps.
_TOO_MUCH_OUTPUT: Final = (
    KnownError("too_long", r"`inputs` tokens \+ `max_new_tokens` must be",
        "has a smaller window than prompt and output need", _TGI, "max_output", advice=_OUTPUT),
    KnownError("too_long",
        r"max_(?:completion_)?tokens'? (?:or '\w+' )?is too large: \d+\. this model's maximum context length",
        "has a smaller window than prompt and output need", _VLLM, "max_output", advice=_OUTPUT),
    KnownError("too_long",
        r"(?:maximum context length|context window).{0,300}?"
        r"(?:[1-9]\d* (?:tokens )?(?:in|for) the (?:completion|output)|requested [1-9]\d* output tokens)"
        r"|requested [1-9]\d* output tokens.{0,300}?context length",
        "has a smaller window than prompt and output need", f"{_VLLM}; {_SGLANG}; {_OPENROUTER}", "max_output",
        advice=_OUTPUT),
    KnownError("too_long", r"input length and `max_tokens` exceed context limit",
        "has a smaller window than prompt and output need",
        "https://docs.claude.com/en/docs/build-with-claude/context-windows", "max_output", advice=_OUTPUT),
)
_TOO_LONG: Final = (
    KnownError("too_long",
        _codes("context_length_exceeded", "exceed_context_size_error", "request_body_too_large_after_decoding"),
        "has no room for this prompt", f"{_OPENAI}; {_LLAMA}", advice=_CONTEXT),
    KnownError("too_long",
        r"prompt is too long|context window|maximum context length|available context size|exceed context limit"
        r"|exceeds the context|input token count|input length exceeds|input is too long|context_length_exceeded"
        r"|request_too_large|longer than the model's context length|greater than the context length"
        r"|`inputs` must have less than|maximum input length|too large for model with \d+ maximum context"
        r"|exceeds the maximum number of tokens allowed", "has no room for this prompt",
        "; ".join((_VLLM, _SGLANG, _LLAMA, _TGI, _MISTRAL, _GEMINI, _ANTHROPIC, _OPENROUTER)), advice=_CONTEXT,
        statuses=(400, 422, 429)),
    KnownError("too_long", "", "does not accept a body of this size", _HTTP, statuses=(413,)),
)

_MONEY: Final = (
    KnownError("money", r"fewer max_tokens|can only afford \d", "has not enough credit for the reserved output",
        _OPENROUTER_LIMITS, "max_output", advice="lower {setting}, or add credit"),
    KnownError("money", r"credits given your current in-flight requests",
        "has not enough credit for all calls in flight", _OPENROUTER_LIMITS, "max_output",
        advice="lower `in_flight` (--in-flight) or {setting}, or add credit"),
    KnownError("money", r"key limit exceeded", "has reached the spending limit of this key", _OPENROUTER_LIMITS,
        advice="raise the limit of this key on the provider's page"),
    KnownError("money", r"budget has been exceeded|exceededbudget|" + _codes("budget_exceeded"),
        "has reached the budget of this key", "https://docs.litellm.ai/docs/proxy/users",
        advice="raise the budget of this key in the proxy, or wait until it is reset"),
    KnownError("money", _codes(
        *("billing_hard_limit_reached", "enforced_spend_limit_reached", "contract_spend_limit_reached"),
        "linked_organization_spend_limit_reached")
        + r"|billing_?hard_?limit|billing hard limit|spend(?:ing)?[ _]limit|specified api usage limits",
        "has no credit left within its spending limit", f"{_OPENAI}; {_ANTHROPIC}",
        advice="raise the limit on the provider's page, or resume when it is renewed", statuses=range(400, 500)),
    KnownError("money",
        _codes("billing_not_active", "linked_organization_billing_unavailable") + r"|account is not active",
        "has no credit left: billing is not set up", _OPENAI, advice="set up billing on the provider's page"),
    KnownError("money",
        r"insufficient_quota|billing_error|credit balance|insufficient credits|insufficient balance|any credits"
        r"|available credits|requires more credits|credits are depleted", "has no credit left",
        "; ".join((_OPENAI, _ANTHROPIC, _OPENROUTER, _DEEPSEEK, _XAI, _GEMINI)),
        advice="top it up, or resume when its quota is renewed", statuses=range(400, 500)),
    KnownError("money", "", "has no credit left", _HTTP, advice="top it up", statuses=(402,)),
)

_MAY_REFUSE: Final = tuple(status for status in range(400, 600) if status not in (401, 404, 405, 429))
_REFUSED: Final = (
    KnownError("refused", _codes(
        *("invalid_prompt", r"\S*moderation\S*", r"\S*content_?(?:filter|policy|blocked)\S*", r"\S*safety\S*"),
        *("responsible_?ai_?policy_?violation", r"(?:bio|cyber|usage)_policy\S*", "misalignment_policy_violation"),
        "data_?inspection_?failed"), "declined the prompt", f"{_OPENAI}; {_AZURE_FILTER}", statuses=_MAY_REFUSE),
    KnownError("refused",
        r"content filtering policy|content management policy|content policy|content_filter|requires moderation"
        r"|moderation block|usage policy|usage policies|usage guidelines|content exists risk|considered high risk"
        r"|inappropriate content|content_policy_violation|rejected as a result of (?:our|the) safety system",
        "declined the prompt", "; ".join((_ANTHROPIC, _AZURE_FILTER, _OPENROUTER, _XAI, _DEEPSEEK)),
        statuses=tuple(status for status in _MAY_REFUSE if status < 500)),
)

_ACCESS: Final = (
    KnownError("access", r"organization must be verified", "requires a verified organization for this model",
        "https://help.openai.com/en/articles/10910291-api-organization-verification", "model",
        advice="verify the organization on the provider's page, or change {setting}"),
    KnownError("access",
        _codes("unsupported_country_region_territory") + r"|country, region,? or territory not supported",
        "does not serve this country", "https://platform.openai.com/docs/supported-countries"),
    KnownError("access", r"data policy", "has no provider that your privacy settings allow",
        "https://openrouter.ai/docs/features/privacy-and-logging", "model",
        advice="allow more providers in the account's privacy settings, or change {setting}"),
    KnownError("access", r"no allowed providers are available",
        "has no provider for this model that the account allows", _OPENROUTER_ROUTING, "model",
        advice="allow more providers in the account or in `parameters`, or change {setting}"),
    KnownError("access", r"terms acceptance|" + _codes("model_terms_required"),
        "requires you to accept the model's terms", _GROQ, "model",
        advice="accept the terms on the provider's page, or change {setting}"),
    KnownError("access", r"insufficient permissions|missing scopes|" + _codes("missing_scope"),
        "does not allow this with the permissions of the key", _OPENAI, "api_key_env",
        advice="give the key the missing permission, or change {setting}"),
    KnownError("access",
        _codes("organization_on_hold", "account_deactivated", "access_terminated", "organization_disabled")
        + r"|organization has been disabled|account (?:has been|is) (?:deactivated|disabled|suspended)",
        "has disabled the account", f"{_OPENAI}; {_ANTHROPIC}", advice="ask the provider"),
    KnownError("access", r"ip (?:address )?(?:is )?not (?:authorized|allowed)|" + _codes("ip_not_authorized"),
        "does not accept calls from this machine's address", _OPENAI,
        advice="add the address to the project's allowed addresses"),
    KnownError("access", r"virtual network/firewall rules|public access is disabled",
        "does not accept calls from this network",
        "https://learn.microsoft.com/azure/ai-services/cognitive-services-virtual-networks",
        advice="allow this network in the resource's settings"),
    KnownError("model", r"not have access to model|not allowed to access (?:the )?model|can only access models"
        r"|" + _codes("model_permission_blocked_(?:project|org)", "key_model_access_denied"),
        "does not allow model {model!r} with this key", f"{_OPENAI}; {_GROQ}; {_LITELLM_KEYS}", "model",
        advice="allow the model for this key, or change {setting}"),
)

_KEY: Final = (
    KnownError("key", r"litellm\.(?:authentication|permissiondenied)error",
        "could not log in to the provider behind it", _LITELLM,
        advice="correct that provider's key in the proxy's settings"),
    KnownError("key", r"no connected db", "refused the key", _LITELLM_KEYS, "api_key_env",
        advice="set {setting} to the variable with the proxy's key (LITELLM_MASTER_KEY)"),
    KnownError("key", r"invalid subscription key or wrong api endpoint", "refused the key", _AZURE, "api_key_env",
        advice="set the key of this resource in {setting}, or correct `base_url`"),
    KnownError("key",
        r"api key not valid|invalid api[ -]key|incorrect api key|api key (?:is )?(?:invalid|expired|missing)"
        r"|invalid x-api-key|virtual key expected|no auth credentials|no api key|expired key|"
        + _codes("invalid_api_key", "api_key_invalid", "authentication_error", "invalid_authentication"),
        "refused the key", "; ".join((_OPENAI, _ANTHROPIC, _GEMINI, _OPENROUTER, _GROQ, _XAI, _LITELLM_KEYS)),
        "api_key_env", statuses=(400, 401, 403)),
    KnownError("key", "", "refused the key", _HTTP, "api_key_env", statuses=(401,)),
)

UNKNOWN_MODEL: Final = KnownError("model",
    r"\b(?:invalid|unknown|unsupported) model\b|\bno such model\b|\bmodel (?:was |is )?not found\b"
    r"|\bmodel (?:name )?\S{1,200} (?:was |is )?(?:not found|does not exist|unknown|not supported by)"
    r"|not a valid model id|invalid model (?:name|identifier)|no endpoints found for|^model: \S+$"
    r"|^models?/\S{1,200} is not found|" + _codes("model_not_found", "model_not_supported"),
    "has no model {model!r}",
    "; ".join((_OPENAI, _ANTHROPIC, _GROQ, _VLLM, _OLLAMA, _LM_STUDIO, _OPENROUTER, _LITELLM_PROXY, _HUGGING_FACE)),
    "model", statuses=(400, 403, 404, 405, 422))

_MODEL: Final = (
    KnownError("model", r"try pulling it", "has no model {model!r}", _OLLAMA, "model",
        advice="run `ollama pull` with its name, or change {setting} to one that `ollama list` shows"),
    KnownError("model", r"no models loaded|failed to load model", "has not loaded a model", _LM_STUDIO, "model",
        advice="load it (`lms load`, or in the developer page), or change {setting}"),
    KnownError("model", r"multiple models are loaded", "has several models and needs one's name", _LM_STUDIO,
        "model", advice="change {setting} to one that `lms ps` shows"),
    KnownError("model", r"requires more system memory", "has not enough memory for model {model!r}",
        "ollama/ollama: llm/server.go", "model", advice="change {setting} to a smaller one"),
    KnownError("model", _codes("deploymentnotfound") + r"|api deployment for this resource does not exist",
        "has no deployment {model!r}", _AZURE, "model",
        advice="change {setting} to the name of a deployment, or wait 5 minutes if you just created it"),
    KnownError("model", r"only (?:supported|available) in v1/responses",
        "offers this model only in the Responses API", _OPENAI, "api", "responses"),
    KnownError("model",
        r"not a chat model|operation does not work with the specified model|" + _codes("operationnotsupported"),
        "does not offer this model in this API", f"{_OPENAI}; {_AZURE}", "model", advice="change {setting}, or `api`"),
    KnownError("model",
        r"decommissioned|has been (?:deprecated|retired|shut ?down)|" + _codes("model_decommissioned"),
        "no longer has model {model!r}", "https://console.groq.com/docs/deprecations", "model"),
    UNKNOWN_MODEL,
    KnownError("path", r"unexpected endpoint or method", "", _LM_STUDIO),
    KnownError("path",
        r"\A\s*\Z|not.found|not.allowed|cannot post|invalid url|unexpected endpoint|unknown endpoint|no route", "",
        "FastAPI, Express, net/http and nginx; " + _OPENAI, statuses=(404, 405)),
)

_REQUEST: Final = (
    KnownError("request", r"system role (?:is )?not supported|conversation roles must alternate"
        r"|role'? does not support '(?:system|developer)'|developer instruction is not enabled"
        r"|(?:unexpected message|invalid|unsupported) role:? '?developer", "does not accept a system message",
        "https://huggingface.co/google/gemma-2-2b-it/blob/main/tokenizer_config.json; " + _OPENAI_REASONING,
        "system", "user", statuses=(400, 422, 500)),
    KnownError("request", _refuses(r"\bmax_tokens\b"), "rejected the request", _OPENAI_REASONING, "output_limit",
        "max_completion_tokens", statuses=(400, 422), apis=("chat",)),
    KnownError("request", _refuses(r"\bmax_completion_tokens\b"), "rejected the request",
        f"{_MISTRAL}; {_VLLM_PROTOCOL}", "output_limit", "max_tokens", statuses=(400, 422), apis=("chat",)),
    KnownError("request", r"`?max_tokens`? must be greater than `?thinking", "needs more output than its thinking",
        "https://docs.claude.com/en/docs/build-with-claude/extended-thinking", "max_output",
        advice="raise {setting}", statuses=(400, 422)),
    KnownError("request",
        r"max_(?:output_|completion_|new_)?tokens?\b.{0,60}(?:minimum|below|at least|greater than or equal|too small)",
        "needs a higher output limit", _OPENAI, "max_output", advice="raise {setting}", statuses=(400, 422)),
    KnownError("request",
        r"max_(?:output_|completion_|new_)?tokens\b.{0,80}(?:too (?:large|big|high|many)|less than|maximum|at most"
        r"|exceed|> \d|<= ?\d|valid range)", "has a lower output limit",
        "; ".join((_OPENAI, _ANTHROPIC, _GROQ, _DEEPSEEK)), "max_output", advice="lower {setting}",
        statuses=(400, 422)),
    KnownError("request", _LARGE_SCHEMA, "cannot compile the answer's schema", f"{_ANTHROPIC_SCHEMAS}; {_GEMINI}",
        "response_format", "json_object", statuses=(400, 422), apis=("chat",)),
    KnownError("request", _LARGE_SCHEMA, "cannot compile the answer's schema", _ANTHROPIC_SCHEMAS, "prompt",
        advice="choose a {setting} that asks one question at a time, whose schema is smaller", statuses=(400, 422)),
    KnownError("request", r"response_format\.type' must be 'json_schema' or 'text'",
        "does not support this reply format", _LM_STUDIO, "response_format", "json_schema", apis=("chat",)),
    KnownError("request",
        _refuses(_NAMED_SCHEMA) + r"|invalid schema for response_format"
        r"|failed to (?:parse|compile) grammar|json schema conversion failed|failed to initialize samplers"
        r"|no endpoints found that (?:support|can handle the requested)", "does not support the answer's schema",
        "; ".join((_OPENAI_SCHEMAS, _GROQ_SCHEMAS, _DEEPSEEK, _VLLM, _LLAMA, _OPENROUTER_ROUTING)),
        "response_format", "json_object", statuses=(400, 404, 422, 500), apis=("chat",)),
    KnownError("request",
        _refuses(_NAMED_SCHEMA) + r"|(?:output_config|text)\.format\b|"
        + _refuses(r"\b(?:output_config|prompt_cache_key|service_tier|cache_control|store)\b"),
        "does not support a part of this API that Dubito needs",
        "ggml-org/llama.cpp: tools/server/README.md; " + _VLLM_PROTOCOL, "api", "chat",
        advice="set {setting}, or choose a model with structured outputs", statuses=(400, 422),
        apis=("responses", "messages")),
    KnownError("request", r"\bspeed: extra inputs are not permitted",
        "needs `anthropic-beta: fast-mode-2026-02-01` for this model's fast mode, which Dubito does not send",
        "https://platform.claude.com/docs/en/build-with-claude/fast-mode", "parameters",
        advice="remove `speed` from {setting}", statuses=(400, 422), apis=("messages",)),
    KnownError("request", _refuses("logprobs"),
        "does not return log-probabilities for this model", f"{_OPENAI}; {_GROQ}", "belief",
        advice="remove {setting}", statuses=(400, 422), apis=("chat",)),
)

# The server's words name a field that the player's `parameters` add: nothing else in the request has this name.
NAMED_PARAMETER: Final = KnownError("request", "", "rejected the request", _HTTP, "parameters", statuses=(400, 422))

KNOWN_ERRORS: Final = (
    *_BAD_OUTPUT,
    *_TOO_MUCH_OUTPUT,
    *_TOO_LONG,
    *_MONEY,
    *_REFUSED,
    *_ACCESS,
    *_KEY,
    *_MODEL,
    *_REQUEST,
)
