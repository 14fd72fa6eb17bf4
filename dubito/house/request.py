"""Requests to the built-in server: their identity, which seeds all randomness, and checks of their fields and schemas.

An answer is a function of (request, draw), and a fault is a function of (request, draw, try). A request's identity is
the canonical JSON of its protocol, path (below the SDK's base URL) and body. Its digest is therefore the one that
`dubito.llm` logs. The draw and the try are sent in headers that providers ignore.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from random import Random
from typing import Any, Final, Literal, NoReturn

from dubito.game import STATED, WINS
from dubito.store.model_log import requested_model

_DRAW_HEADER: Final = "x-dubito-draw"
TRY_HEADER: Final = "x-dubito-try"

JsonBody = dict[str, Any]


@dataclass(frozen=True)
class HouseRequest:
    """A try of a request. `body` is None if it is not a JSON object. `try_number` is 0 if it is not positive."""

    protocol: str
    base: str  # the part of the path that belongs to the base URL
    path: str
    draw: str
    try_number: int
    raw: bytes

    @classmethod
    def parse(cls, protocol: str, base: str, path: str, headers: Mapping[str, str], raw: bytes) -> "HouseRequest":
        text = headers.get(TRY_HEADER, "1")
        number = int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else 0
        return cls(protocol, base, path, headers.get(_DRAW_HEADER, "0"), number, raw)

    @property
    def body(self) -> JsonBody | None:
        return self._body_and_digest[0]

    @property
    def digest(self) -> str:
        return self._body_and_digest[1]

    @cached_property
    def _body_and_digest(self) -> tuple[JsonBody | None, str]:
        try:
            body = json.loads(self.raw.decode(), parse_constant=_refuse_constant)
            if isinstance(body, dict):
                # In Gemini's protocol, the path names the model.
                model = requested_model(self.path, body)
                return ({**body, "model": model} if model else body), self._digest(body)
        except (ValueError, RecursionError):
            pass
        return None, self._digest(self.raw.decode(errors="replace"))

    def _digest(self, body: object) -> str:
        path = self.path.removeprefix(self.base)
        # Streaming does not change the answer.
        if isinstance(body, dict):
            body = {key: value for key, value in body.items() if key not in ("stream", "stream_options")}
        return sha256(canonical_bytes({"protocol": self.protocol, "path": path, "body": body})).hexdigest()

    def digest_for(self, purpose: str, by_try: bool = False) -> str:
        parts = [purpose, self.digest, self.draw, *([self.try_number] if by_try else [])]
        return sha256(canonical_bytes(parts)).hexdigest()

    def chance(self, purpose: str, by_try: bool = False) -> Random:
        return Random(int(self.digest_for(purpose, by_try), 16))


def canonical_bytes(value: object) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def _refuse_constant(constant: str) -> NoReturn:
    raise ValueError(constant)


RefusalKind = Literal[
    "no_key",
    "wrong_key",
    "no_money",
    "malformed",
    "missing",
    "unknown_parameter",
    "unsupported",
    "bad_value",
    "bad_schema",
    "too_long",
    "unknown_model",
    "unknown_path",
    "wrong_method",
    "rate_limit",
    "server_error",
    "bad_gateway",
    "unavailable",
    "overloaded",
]


class Refusal(Exception):
    """Raised to refuse a request. Contains the kind of error and the values for its message."""

    def __init__(self, kind: RefusalKind, **facts: object) -> None:
        super().__init__(kind, facts)
        self.kind: RefusalKind = kind
        self.facts = facts


def tokens(text: str) -> int:
    return -(-len(text.encode(errors="surrogatepass")) // 4)


def first_tokens(text: str, count: int) -> str:
    return text.encode(errors="surrogatepass")[: 4 * count].decode(errors="ignore")


def read_texts(content: object, name: str) -> Iterator[str]:
    """Yield the text of a content, or the texts of its blocks. Raises Refusal if it is neither text nor blocks."""
    if isinstance(content, str):
        yield content
        return
    for block in blocks(content, name):
        text = block.get("text")
        if isinstance(text, str):
            yield text


def blocks(value: object, name: str) -> list[JsonBody]:
    if not isinstance(value, list) or not all(isinstance(block, dict) for block in value):
        raise Refusal("bad_value", name=name, expected="a string or an array of objects")
    return value


def section(body: JsonBody, name: str) -> JsonBody:
    """Return an object from the body, or an empty one if it is absent or null. Raises Refusal for other types."""
    value = body.get(name)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise Refusal("bad_value", name=name, expected="an object")
    return value


def read_model(body: JsonBody) -> str:
    model = body.get("model")
    if model is None:
        raise Refusal("missing", name="model")
    if not isinstance(model, str):
        raise Refusal("bad_value", name="model", expected="a string")
    return model


def read_limit(body: JsonBody, name: str, minimum: int) -> int | None:
    """Return the request's limit on output tokens, or None if it sets no limit. Raises Refusal."""
    limit = body.get(name)
    if limit is None:
        return None
    if not isinstance(limit, int) or isinstance(limit, bool) or limit < minimum:
        raise Refusal("bad_value", name=name, expected=f"an integer greater than or equal to {minimum}")
    return limit


_DEFAULT_SCHEMA: Final[Mapping[str, Any]] = {
    "type": "object",
    "properties": {"answer": {"type": "boolean"}},
    "required": ["answer"],
}


_NO_REASON: Final = "The house has no reasons."


@dataclass(frozen=True, slots=True)
class Opinion:
    """A model's answer, and other values that a prompt can ask for."""

    answer: Any
    understood: bool  # whether the prompt contained what the model needs
    stated: float | None = None  # a probability
    answers: Mapping[str, Any] = field(default_factory=dict)  # answers by field, if several questions are asked at once
    # The probability of each answer, or of yes by question; None if the answer is certain.
    odds: Mapping[Any, float] | None = None
    reason: str | None = None
    wins: float | None = None  # the probability to win
    text: str | None = None  # the whole reply, if the model does not answer a question


def answer_text(schema: Mapping[str, Any] | None, opinion: Opinion) -> str:
    """Return compact JSON that fits the schema, with its properties in the schema's order.

    The `answer` field contains the answer. If the answer is a boolean, all boolean fields contain it. A field named
    after one of several answers contains that answer, and number fields named `STATED` and `WINS` contain the stated
    probabilities. The rest is filler or null. Without a schema, the text is `{"answer":true}` or `{"answer":false}`.
    """
    if opinion.text is not None:
        return opinion.text
    # A decision's answer is a list of answers.
    if schema is not None and "questions" in schema:
        return json.dumps(opinion.answer, separators=(",", ":"))
    schema = _DEFAULT_SCHEMA if schema is None else schema
    return json.dumps(_build_value(schema, opinion, schema.get("$defs", {})), separators=(",", ":"))


def check_schema(schema: object, name: str, requires_all: bool) -> Mapping[str, Any]:
    """Return the schema if a provider would accept it, otherwise raise Refusal.

    Objects must not allow other properties. If `requires_all` is set, every property must be required.
    """
    if not isinstance(schema, dict):
        raise Refusal("bad_schema", name=name, reason="schema must be an object")
    try:
        _check_objects(schema, name, requires_all)
        answer_text(schema, Opinion(answer=True, understood=True))
    except (AttributeError, LookupError, TypeError, ValueError, RecursionError) as error:
        raise Refusal("bad_schema", name=name, reason="this is not a valid JSON schema") from error
    return schema


def _check_objects(part: Mapping[str, Any], name: str, requires_all: bool) -> None:
    properties = part.get("properties", {})
    if part.get("type") == "object":
        if part.get("additionalProperties") is not False:
            reason = "'additionalProperties' is required to be supplied and to be false"
            raise Refusal("bad_schema", name=name, reason=reason)
        if requires_all and set(part.get("required", ())) != set(properties):
            reason = "'required' is required to be supplied and to be an array including every key in properties"
            raise Refusal("bad_schema", name=name, reason=reason)
    inner_parts = [*properties.values(), *part.get("$defs", {}).values(), *part.get("anyOf", ())]
    if "items" in part:
        inner_parts.append(part["items"])
    for inner in inner_parts:
        _check_objects(inner, name, requires_all)


def _build_value(part: Mapping[str, Any], opinion: Opinion, definitions: Mapping[str, Any]) -> object:
    if "$ref" in part:
        return _build_value(definitions[part["$ref"].rpartition("/")[2]], opinion, definitions)
    if "const" in part:
        return part["const"]
    if part.get("enum"):
        return part["enum"][0]
    if part.get("anyOf"):
        return _build_value(min(part["anyOf"], key=_preference), opinion, definitions)
    kind = part.get("type")
    if isinstance(kind, list):
        return _build_value({**part, "type": min(kind, key=_PREFERRED_TYPES.index)}, opinion, definitions)
    if kind == "object":
        names = {*part.get("required", ()), "answer"}
        inner = {name: value for name, value in part.get("properties", {}).items() if name in names}
        values = {name: _build_value(value, opinion, definitions) for name, value in inner.items()}
        for name, value in {STATED: opinion.stated, WINS: opinion.wins}.items():
            options = inner.get(name, {}).get("anyOf", [inner.get(name, {})])
            if value is not None and any("number" in option.get("type", ()) for option in options):
                values[name] = value
        if "answer" in inner and not isinstance(opinion.answer, bool):
            values["answer"] = opinion.answer
        return values | {name: answer for name, answer in opinion.answers.items() if name in inner}
    plain = {"boolean": opinion.answer, "string": opinion.reason or _NO_REASON, "integer": 0, "number": 0, "array": []}
    return plain.get(str(kind))


# If a schema allows several types, the first of these is used.
_PREFERRED_TYPES: Final = ("boolean", "null", "string", "integer", "number", "array", "object")


def _preference(part: Mapping[str, Any]) -> int:
    kind = part.get("type")
    return _PREFERRED_TYPES.index(kind) if isinstance(kind, str) and kind in _PREFERRED_TYPES else len(_PREFERRED_TYPES)
