"""The supported part of Google's Gemini API: `models.generateContent`, the list of models, and errors.

Bodies follow https://ai.google.dev/api/generate-content, and errors follow https://ai.google.dev/gemini-api/docs/
troubleshooting and Google's `google.rpc.Status`. Values of 0 and empty lists are left out, as in all JSON of Google's.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from dubito.house.request import (
    HouseRequest,
    JsonBody,
    Refusal,
    RefusalKind,
    blocks,
    check_schema,
    read_limit,
    read_texts,
    section,
)
from dubito.house.wires import CREATED_TEXT, End, ModelOutput, Problem, ReadPrompt, Wire, build_prompt

_PARAMETERS: Final = (
    "cachedContent contents generationConfig model safetySettings serviceTier store systemInstruction toolConfig tools"
)
_UNSUPPORTED: Final = "cachedContent toolConfig tools"
_CONFIG: Final = (
    "candidateCount enableEnhancedCivicAnswers frequencyPenalty imageConfig logprobs maxOutputTokens mediaResolution"
    " presencePenalty responseJsonSchema responseLogprobs responseMimeType responseModalities responseSchema seed"
    " speechConfig stopSequences temperature thinkingConfig topK topP"
)
_JSON: Final = "application/json"
_FINISHES: Final[Mapping[End, str]] = {"stop": "STOP", "length": "MAX_TOKENS", "filtered": "SAFETY"}
_INVALID: Final = "INVALID_ARGUMENT"
_UNKNOWN_NAME: Final = 'Invalid JSON payload received. Unknown name "{name}": Cannot find field.'
_PROBLEMS: Final[Mapping[RefusalKind, Problem]] = {
    "no_key": Problem(
        403,
        "PERMISSION_DENIED",
        "Method doesn't allow unregistered callers (callers without established identity). Please use API Key or other"
        " form of API consumer identity to call this API.",
    ),
    "wrong_key": Problem(400, _INVALID, "API key not valid. Please pass a valid API key.", "API_KEY_INVALID"),
    "no_money": Problem(
        429,
        "RESOURCE_EXHAUSTED",
        "Your prepayment credits are depleted. Please go to AI Studio at https://ai.studio/projects to manage your"
        " project and billing.",
    ),
    "malformed": Problem(400, _INVALID, "Invalid JSON payload received. Expected an object."),
    "missing": Problem(400, _INVALID, "* GenerateContentRequest.{name}: {name} is not specified"),
    "unknown_parameter": Problem(400, _INVALID, _UNKNOWN_NAME),
    "unsupported": Problem(400, _INVALID, "{name} is not supported with this model."),
    "bad_value": Problem(400, _INVALID, "Invalid value at '{name}': expected {expected}"),
    "bad_schema": Problem(400, _INVALID, "Invalid schema at '{name}': {reason}"),
    "too_long": Problem(
        400, _INVALID, "The input token count ({tokens}) exceeds the maximum number of tokens allowed ({limit})."
    ),
    "unknown_model": Problem(
        404,
        "NOT_FOUND",
        "models/{model} is not found for API version v1beta, or is not supported for generateContent. Call ListModels"
        " to see the list of available models and their supported methods.",
    ),
    "unknown_path": Problem(404, "NOT_FOUND", "Requested entity was not found."),
    "wrong_method": Problem(404, "NOT_FOUND", "Requested entity was not found."),
    "rate_limit": Problem(429, "RESOURCE_EXHAUSTED", "Resource has been exhausted (e.g. check quota)."),
    "server_error": Problem(500, "INTERNAL", "An internal error has occurred. Please retry or report."),
    "bad_gateway": Problem(502, "UNAVAILABLE", "Bad gateway."),
    "unavailable": Problem(503, "UNAVAILABLE", "The service is currently unavailable."),
    "overloaded": Problem(503, "UNAVAILABLE", "The model is overloaded. Please try again later."),
}


class GeminiWire(Wire):
    """POST /v1beta/models/MODEL:generateContent."""

    name = "gemini"
    base = ""
    rejected = frozenset[str]()
    unsupported = frozenset(_UNSUPPORTED.split())
    parameters = frozenset(_PARAMETERS.split())
    problems = _PROBLEMS

    def key(self, headers: Mapping[str, str]) -> str:
        return headers.get("x-goog-api-key", "")

    def read(self, body: JsonBody) -> ReadPrompt:
        """Parse a request. The server has added the path's model to the body."""
        self.check_parameters(body)
        if not body.get("contents"):
            raise Refusal("missing", name="contents")
        texts = [("system", text) for text in _read_parts(section(body, "systemInstruction"), "system_instruction")]
        for place, content in enumerate(blocks(body["contents"], "contents")):
            if content.get("role") not in (None, "user", "model"):
                raise Refusal("bad_value", name=f"contents[{place}].role", expected="a valid role: user, model")
            texts += [("user", text) for text in _read_parts(content, f"contents[{place}]")]
        config = section(body, "generationConfig")
        if unknown := sorted({*config} - {*_CONFIG.split()}):
            raise Refusal("unknown_parameter", name=unknown[0])
        schema = config.get("responseJsonSchema")
        if schema is not None:
            if config.get("responseMimeType") != _JSON:
                raise Refusal("bad_value", name="response_mime_type", expected=f"{_JSON} with a schema")
            schema = check_schema(schema, "response_json_schema", requires_all=False)
        return build_prompt(body["model"], texts, schema, read_limit(config, "maxOutputTokens", 1))

    def reply(self, request: HouseRequest, body: JsonBody, prompt: ReadPrompt, written: ModelOutput) -> JsonBody:
        """Reply with the thoughts and the text. A blocked prompt has no candidate, and a filtered one no text."""
        thoughts = [] if written.thoughts is None else [{"text": written.thoughts, "thought": True}]
        texts = [] if written.text is None or written.end == "filtered" else [{"text": written.text}]
        content = {**({"parts": [*thoughts, *texts]} if thoughts or texts else {}), "role": "model"}
        if written.end == "refused":
            result: JsonBody = {"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}}
        else:
            result = {"candidates": [{"content": content, "finishReason": _FINISHES[written.end], "index": 0}]}
        counts = {
            "promptTokenCount": prompt.tokens,
            "cachedContentTokenCount": prompt.cached,
            "candidatesTokenCount": written.tokens - written.thought_tokens,
            "thoughtsTokenCount": written.thought_tokens,
            "totalTokenCount": prompt.tokens + written.tokens,
        }
        return {
            **result,
            "usageMetadata": {name: count for name, count in counts.items() if count},
            "modelVersion": prompt.model,
            "responseId": request.digest_for("reply")[:22],
        }

    def error(self, refusal: Refusal, request_id: str) -> JsonBody:
        problem, message = self.problem(refusal)
        error: JsonBody = {"code": problem.status, "message": message, "status": problem.type}
        if problem.code:
            info = {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": problem.code}
            error["details"] = [{**info, "domain": "googleapis.com"}]
        return {"error": error}

    def headers(self, request_id: str, limited: bool) -> dict[str, str]:
        return {"server": "scaffolding on HTTPServer2", "x-gemini-service-tier": "standard"}

    def model(self, name: str) -> JsonBody:
        return {
            "name": f"models/{name}",
            "version": CREATED_TEXT[:10],
            "displayName": name,
            "supportedGenerationMethods": ["generateContent"],
        }

    def models(self, names: Sequence[str]) -> JsonBody:
        return {"models": [self.model(name) for name in names]}


def _read_parts(content: JsonBody, name: str) -> list[str]:
    return list(read_texts(content["parts"], f"{name}.parts")) if content else []
