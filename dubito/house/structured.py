"""Structured outputs: which schemas the providers take, and the smallest JSON that fits one."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from dubito.house.refusal import Refusal

_SCHEMA: Final[Mapping[str, Any]] = {
    "type": "object",
    "properties": {"answer": {"type": "boolean"}},
    "required": ["answer"],
}
_WORDS: Final = "The house has no reasons."


@dataclass(frozen=True, slots=True)
class Opinion:
    """An answer, of JSON, and what else a prompt may ask for."""

    answer: Any
    understood: bool  # whether what it needs was found in the prompt
    p_bluff: float | None = None  # the stated probability of a bluff; None: it states none


def answer_text(schema: Mapping[str, Any] | None, opinion: Opinion) -> str:
    """Compact JSON that fits the schema, its properties in the schema's order.

    What is named `answer` is the answer, as are booleans if it is one; a number named `p_bluff` is the stated
    probability, the rest is filler or null. Without a schema it is `{"answer":true}` or `{"answer":false}`.
    """
    whole = _SCHEMA if schema is None else schema
    return json.dumps(_value(whole, opinion, whole.get("$defs", {})), separators=(",", ":"))


def check_schema(schema: object, name: str, every_required: bool) -> Mapping[str, Any]:
    """The schema, if a provider takes it: objects closed, and where it insists, every property required.

    Raises Refusal.
    """
    if not isinstance(schema, dict):
        raise Refusal("bad_schema", name=name, reason="schema must be an object")
    try:
        _check(schema, name, every_required)
        answer_text(schema, Opinion(answer=True, understood=True))
    except (AttributeError, LookupError, TypeError, ValueError, RecursionError) as error:
        raise Refusal("bad_schema", name=name, reason="this is not a valid JSON schema") from error
    return schema


def _check(part: Mapping[str, Any], name: str, every_required: bool) -> None:
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
        _check(inner, name, every_required)


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
        if opinion.p_bluff is not None and _takes_numbers(inner.get("p_bluff", {})):
            values["p_bluff"] = opinion.p_bluff
        if "answer" in inner and not isinstance(opinion.answer, bool):
            values["answer"] = opinion.answer
        return values
    plain = {"boolean": opinion.answer, "string": _WORDS, "integer": 0, "number": 0, "array": []}
    return plain.get(str(kind))


def _takes_numbers(part: Mapping[str, Any]) -> bool:
    return any("number" in option.get("type", ()) for option in part.get("anyOf", [part]))


_LIKING: Final = ("boolean", "null", "string", "integer", "number", "array", "object")  # of several types, the first


def _liking(part: Mapping[str, Any]) -> int:
    kind = part.get("type")
    return _LIKING.index(kind) if isinstance(kind, str) and kind in _LIKING else len(_LIKING)
