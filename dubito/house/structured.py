"""Structured outputs: which schemas the providers take, and the smallest JSON that fits one."""

import json
from collections.abc import Mapping
from typing import Any, Final

from dubito.house.refusal import Refusal

_SCHEMA: Final[Mapping[str, Any]] = {
    "type": "object",
    "properties": {"answer": {"type": "boolean"}},
    "required": ["answer"],
}
_WORDS: Final = "The house has no reasons."


def answer_text(schema: Mapping[str, Any] | None, answer: bool) -> str:
    """Compact JSON that fits the schema: booleans are the answer, the rest is filler or null.

    Without a schema it is `{"answer":true}` or `{"answer":false}`.
    """
    whole = _SCHEMA if schema is None else schema
    return json.dumps(_value(whole, answer, whole.get("$defs", {})), sort_keys=True, separators=(",", ":"))


def check_schema(schema: object, name: str, every_required: bool) -> Mapping[str, Any]:
    """The schema, if a provider takes it: objects closed, and where it insists, every property required.

    Raises Refusal.
    """
    if not isinstance(schema, dict):
        raise Refusal("bad_schema", name=name, reason="schema must be an object")
    try:
        _check(schema, name, every_required)
        answer_text(schema, True)
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


def _value(part: Mapping[str, Any], answer: bool, definitions: Mapping[str, Any]) -> object:
    if "$ref" in part:
        return _value(definitions[part["$ref"].rpartition("/")[2]], answer, definitions)
    if "const" in part:
        return part["const"]
    if part.get("enum"):
        return part["enum"][0]
    if part.get("anyOf"):
        return _value(min(part["anyOf"], key=_liking), answer, definitions)
    kind = part.get("type")
    if isinstance(kind, list):
        return _value({**part, "type": min(kind, key=_LIKING.index)}, answer, definitions)
    if kind == "object":
        wanted = {*part.get("required", ()), "answer"}
        inner = {name: value for name, value in part.get("properties", {}).items() if name in wanted}
        return {name: _value(value, answer, definitions) for name, value in inner.items()}
    plain = {"boolean": answer, "string": _WORDS, "integer": 0, "number": 0, "array": []}
    return plain.get(str(kind))


_LIKING: Final = ("boolean", "null", "string", "integer", "number", "array", "object")  # of several types, the first


def _liking(part: Mapping[str, Any]) -> int:
    kind = part.get("type")
    return _LIKING.index(kind) if isinstance(kind, str) and kind in _LIKING else len(_LIKING)
