"""Check JSON bodies against the types of parameters in the providers' SDKs.

Unlike the SDKs, which send anything, this finds unknown and missing fields and wrong types at any depth.
"""

import types
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Annotated, Any, Final, Literal, NotRequired, Required, Union, get_args, get_origin, get_type_hints

import anthropic.types
import anthropic.types.messages
import openai.types
import openai.types.chat
import openai.types.responses
from typing_extensions import is_typeddict

from dubito.model_settings import Api

PARAMETERS: Final[Mapping[Api, Any]] = {
    "responses": openai.types.responses.ResponseCreateParams,
    "chat": openai.types.chat.CompletionCreateParams,
    "decisions": openai.types.DecisionCreateParams,
    "messages": anthropic.types.MessageCreateParams,
}
OPENAI_BATCH: Final = openai.types.BatchCreateParams
ANTHROPIC_BATCH: Final = anthropic.types.messages.BatchCreateParams
_QUALIFIERS: Final = (Required, NotRequired, Annotated)


def parameter_names(api: Api) -> set[str]:
    hint = PARAMETERS[api]
    return {name for each in get_args(hint) or (hint,) for name in _fields(each)[0]}


def find_faults(value: Any, hint: Any, where: str = "body") -> list[str]:
    """Return how a value differs from a type. For a union, this is the nearest of its types."""
    hint = _unqualified(hint)
    origin, arguments = get_origin(hint), get_args(hint)
    if hint in (Any, object):
        return []
    if origin in (Union, types.UnionType):
        return _find_faults_of_nearest(value, arguments, where)
    if origin is Literal:
        is_known = any(type(value) is type(each) and value == each for each in arguments)
        return [] if is_known else [f"{where}: {value!r} instead of one of {arguments}"]
    if is_typeddict(hint):
        return _find_faults_of_fields(value, hint, where)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        entries = value.items() if isinstance(value, dict) else ()
        faults = [] if isinstance(value, dict) else [f"{where}: {value!r} instead of an object"]
        return faults + [fault for key, each in entries for fault in find_faults(each, arguments[1], f"{where}.{key}")]
    if isinstance(origin, type) and issubclass(origin, Iterable):
        items = value if isinstance(value, list) else ()
        faults = [] if isinstance(value, list) else [f"{where}: {value!r} instead of a list"]
        return faults + [fault for each in items for fault in find_faults(each, arguments[0], f"{where}[]")]
    if hint is float:
        return [] if type(value) in (int, float) else [f"{where}: {value!r} instead of a number"]
    return [] if type(value) is hint else [f"{where}: {value!r} instead of {hint}"]


def _find_faults_of_nearest(value: Any, hints: Iterable[Any], where: str) -> list[str]:
    """Return how a value differs from the nearest type, which is the one whose faults begin deepest."""
    fitting = [hint for hint in hints if not _has_other_constants(value, hint)]
    nearest, best = list[str](), (-1, 0)
    for hint in fitting or hints:
        faults = find_faults(value, hint, where)
        if not faults:
            return []
        depth = max(fault.partition(": ")[0].count(".") for fault in faults)
        if (depth, -len(faults)) > best or not nearest:
            nearest, best = faults, (depth, -len(faults))
    return nearest


def _has_other_constants(value: Any, hint: Any) -> bool:
    """Return whether an object has another value in a field that is constant in a type, such as `type` or `role`."""
    if not isinstance(value, dict) or not is_typeddict(hint):
        return False
    return any(find_faults(value[name], each) for name, each in _constants(hint).items() if name in value)


def _find_faults_of_fields(value: Any, hint: Any, where: str) -> list[str]:
    if not isinstance(value, dict):
        return [f"{where}: {value!r} instead of an object"]
    fields, required = _fields(hint)
    faults = [f"{where}.{name}: missing" for name in required if name not in value]
    for name, each in value.items():
        inner = f"{where}.{name}"
        faults += find_faults(each, fields[name], inner) if name in fields else [f"{inner}: unknown field"]
    return faults


@cache
def _fields(hint: Any) -> tuple[dict[str, Any], list[str]]:
    """Return the types of an object's fields by their names in JSON, and the required names."""
    hints = get_type_hints(hint, include_extras=True)
    names = {name: _json_name(name, each) for name, each in hints.items()}
    # The attribute `__required_keys__` does not know qualifiers in annotations that are strings.
    required = [
        names[name]
        for name, each in hints.items()
        if get_origin(each) is Required or (name in hint.__required_keys__ and get_origin(each) is not NotRequired)
    ]
    return {names[name]: each for name, each in hints.items()}, required


@cache
def _constants(hint: Any) -> dict[str, Any]:
    return {name: each for name, each in _fields(hint)[0].items() if get_origin(_unqualified(each)) is Literal}


def _unqualified(hint: Any) -> Any:
    return _unqualified(get_args(hint)[0]) if get_origin(hint) in _QUALIFIERS else hint


def _json_name(name: str, hint: Any) -> str:
    """Return the name of a field in JSON, which the SDKs note if it is a keyword of Python, such as `from`."""
    if get_origin(hint) in (Required, NotRequired):
        hint = get_args(hint)[0]
    aliases = [getattr(note, "alias", None) for note in getattr(hint, "__metadata__", ())]
    return next(filter(None, aliases), name)
