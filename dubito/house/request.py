"""What the house was asked: the identity of a request, and all chance that follows from it.

The answer is a function of (request, draw), a fault of (request, draw, try). A request is the canonical
JSON of protocol, path (below the address that the SDK was given) and body, so that its digest here is the
one that `dubito.llm` keeps; draw and try come in headers that no provider knows.

Why a request gets no answer, in words that all protocols can translate.

Fields of a request's body, checked as they are read.

Structured outputs: which schemas the providers take, and the smallest JSON that fits one.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from random import Random
from typing import Any, Final, Literal, NoReturn

from dubito.game import STATED

_DRAW_HEADER: Final = "x-dubito-draw"
TRY_HEADER: Final = "x-dubito-try"

JsonBody = dict[str, Any]


@dataclass(frozen=True)
class HeardRequest:
    """One try of one request; `body` is None if it was no JSON object, `try_number` 0 if it was no number from 1."""

    protocol: str
    base: str  # the part of the path that belongs to the server's address, not to the request
    path: str
    draw: str
    try_number: int
    raw: bytes

    @classmethod
    def of(cls, protocol: str, base: str, path: str, headers: Mapping[str, str], raw: bytes) -> "HeardRequest":
        said = headers.get(TRY_HEADER, "1")
        number = int(said) if said.isascii() and said.isdecimal() and len(said) < 10 else 0
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
            body = json.loads(self.raw.decode(), parse_constant=_no_json)
            if isinstance(body, dict):
                return body, self._digest(body)
        except (ValueError, RecursionError):
            pass
        return None, self._digest(self.raw.decode(errors="replace"))

    def _digest(self, body: object) -> str:
        path = self.path.removeprefix(self.base)
        if isinstance(body, dict):  # what is said is the same, however it is sent
            body = {key: value for key, value in body.items() if key not in ("stream", "stream_options")}
        return sha256(canonical_bytes({"protocol": self.protocol, "path": path, "body": body})).hexdigest()

    def digest_for(self, purpose: str, by_try: bool = False) -> str:
        parts = [purpose, self.digest, self.draw, *([self.try_number] if by_try else [])]
        return sha256(canonical_bytes(parts)).hexdigest()

    def chance(self, purpose: str, by_try: bool = False) -> Random:
        return Random(int(self.digest_for(purpose, by_try), 16))


def canonical_bytes(value: object) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def _no_json(constant: str) -> NoReturn:
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
    """A request that gets no answer: the kind of error, and the facts its message names."""

    def __init__(self, kind: RefusalKind, **facts: object) -> None:
        super().__init__(kind, facts)
        self.kind: RefusalKind = kind
        self.facts = facts


def tokens(text: str) -> int:
    return -(-len(text.encode(errors="surrogatepass")) // 4)


def first_tokens(text: str, count: int) -> str:
    return text.encode(errors="surrogatepass")[: 4 * count].decode(errors="ignore")


def texts_in(content: object, name: str) -> Iterator[str]:
    """The texts in a content: itself, or those of its blocks. Raises Refusal if it is neither text nor blocks."""
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
    """An object in the body, empty if it is absent or null. Raises Refusal if it is something else."""
    value = body.get(name)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise Refusal("bad_value", name=name, expected="an object")
    return value


def model_of(body: JsonBody) -> str:
    model = body.get("model")
    if model is None:
        raise Refusal("missing", name="model")
    if not isinstance(model, str):
        raise Refusal("bad_value", name="model", expected="a string")
    return model


def limit_of(body: JsonBody, name: str, least: int) -> int | None:
    """A limit on output tokens, None if the request has none. Raises Refusal."""
    limit = body.get(name)
    if limit is None:
        return None
    if not isinstance(limit, int) or isinstance(limit, bool) or limit < least:
        raise Refusal("bad_value", name=name, expected=f"an integer greater than or equal to {least}")
    return limit


_SCHEMA: Final[Mapping[str, Any]] = {
    "type": "object",
    "properties": {"answer": {"type": "boolean"}},
    "required": ["answer"],
}


_NO_REASON: Final = "The house has no reasons."


@dataclass(frozen=True, slots=True)
class Opinion:
    """An answer, of JSON, and what else a prompt may ask for."""

    answer: Any
    understood: bool  # whether what it needs was found in the prompt
    stated: float | None = None  # a probability; None: it states none
    answers: Mapping[str, Any] = field(default_factory=dict)  # by field, where several questions are asked at once
    odds: Mapping[Any, float] | None = None  # how probable each answer is; None: the answer is certain
    reason: str | None = None


def answer_text(schema: Mapping[str, Any] | None, opinion: Opinion) -> str:
    """Compact JSON that fits the schema, its properties in the schema's order.

    What is named `answer` is the answer, as are booleans if it is one; what is named as one of several answers is that
    one; a number named as `STATED` is the stated probability, the rest is filler or null. Without a schema it is
    `{"answer":true}` or `{"answer":false}`.
    """
    if schema is not None and "questions" in schema:  # a decision: a list of answers
        return json.dumps(opinion.answer, separators=(",", ":"))
    whole = _SCHEMA if schema is None else schema
    return json.dumps(_value(whole, opinion, whole.get("$defs", {})), separators=(",", ":"))


def check_schema(schema: object, name: str, every_required: bool) -> Mapping[str, Any]:
    """The schema, if a provider takes it: objects closed, and where it insists, every property required.

    Raises Refusal.
    """
    if not isinstance(schema, dict):
        raise Refusal("bad_schema", name=name, reason="schema must be an object")
    try:
        _check_objects(schema, name, every_required)
        answer_text(schema, Opinion(answer=True, understood=True))
    except (AttributeError, LookupError, TypeError, ValueError, RecursionError) as error:
        raise Refusal("bad_schema", name=name, reason="this is not a valid JSON schema") from error
    return schema


def _check_objects(part: Mapping[str, Any], name: str, every_required: bool) -> None:
    properties = part.get("properties", {})
    if part.get("type") == "object":
        if part.get("additionalProperties") is not False:
            reason = "'additionalProperties' is required to be supplied and to be false"
            raise Refusal("bad_schema", name=name, reason=reason)
        if every_required and set(part.get("required", ())) != set(properties):
            reason = "'required' is required to be supplied and to be an array including every key in properties"
            raise Refusal("bad_schema", name=name, reason=reason)
    below = [*properties.values(), *part.get("$defs", {}).values(), *part.get("anyOf", ())]
    if "items" in part:
        below.append(part["items"])
    for inner in below:
        _check_objects(inner, name, every_required)


def _value(part: Mapping[str, Any], opinion: Opinion, definitions: Mapping[str, Any]) -> object:
    if "$ref" in part:
        return _value(definitions[part["$ref"].rpartition("/")[2]], opinion, definitions)
    if "const" in part:
        return part["const"]
    if part.get("enum"):
        return part["enum"][0]
    if part.get("anyOf"):
        return _value(min(part["anyOf"], key=_liking), opinion, definitions)
    kind = part.get("type")
    if isinstance(kind, list):
        return _value({**part, "type": min(kind, key=_LIKING.index)}, opinion, definitions)
    if kind == "object":
        wanted = {*part.get("required", ()), "answer"}
        inner = {name: value for name, value in part.get("properties", {}).items() if name in wanted}
        values = {name: _value(value, opinion, definitions) for name, value in inner.items()}
        if opinion.stated is not None and _takes_numbers(inner.get(STATED, {})):
            values[STATED] = opinion.stated
        if "answer" in inner and not isinstance(opinion.answer, bool):
            values["answer"] = opinion.answer
        return values | {name: answer for name, answer in opinion.answers.items() if name in inner}
    plain = {"boolean": opinion.answer, "string": opinion.reason or _NO_REASON, "integer": 0, "number": 0, "array": []}
    return plain.get(str(kind))


def _takes_numbers(part: Mapping[str, Any]) -> bool:
    return any("number" in option.get("type", ()) for option in part.get("anyOf", [part]))


_LIKING: Final = ("boolean", "null", "string", "integer", "number", "array", "object")  # of several types, the first


def _liking(part: Mapping[str, Any]) -> int:
    kind = part.get("type")
    return _LIKING.index(kind) if isinstance(kind, str) and kind in _LIKING else len(_LIKING)
