"""The fields of a game's events as typed columns of a dataset."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields
from inspect import getdoc
from types import NoneType, UnionType
from typing import Any, Final, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints

from dubito.errors import UsageError
from dubito.game import Game
from dubito.game.events import AnswerEvent, GameEvent

_SCALARS: Final = {bool: "bool", int: "int64", float: "float64", str: "string"}
_ONLY: Final = "only"  # has its own column


class FieldType(NamedTuple):
    """The type of a field. Values of types that Parquet does not have are JSON."""

    scalar: str | None  # pyarrow's name of the type, or None for JSON
    depth: int = 0  # of lists

    def __str__(self) -> str:
        return "list of " * self.depth + (self.scalar or "JSON")


_JSON: Final = FieldType(None)


class EventFields:
    """All fields of the events of a game. A row has null for those that its event lacks."""

    def __init__(self, game: Game) -> None:
        self._classes, self._name = (*game.events, AnswerEvent), game.name
        self.types: dict[str, FieldType] = {}
        for kind in self._classes:
            for name, found in _types_of(kind).items():
                # A name that has two types is JSON.
                self.types[name] = found if self.types.get(name, found) == found else _JSON

    def row(self, event: GameEvent) -> dict[str, Any]:
        """Return the values of an event by field. Raises UsageError if the game does not list its class."""
        if type(event) not in self._classes:
            problem = f"game.py of {self._name} does not list {type(event).__name__} in `events`"
            raise UsageError(f"{problem}, so its fields have no columns", hint="add it")
        values: dict[str, Any] = asdict(event)  # type: ignore[call-overload]
        return {
            name: json.dumps(value, default=str) if self.types[name] == _JSON and value is not None else value
            for name, value in values.items()
            if name != _ONLY
        }

    def describe(self) -> Mapping[str, tuple[str, Sequence[str]]]:
        """Return what each class of events is, and its fields with their types."""
        found = {}
        for kind in self._classes:
            about = (getdoc(kind) or "").partition("\n")[0]
            about = "" if about.startswith(f"{kind.__name__}(") else about  # written by `dataclass`
            found[kind.__name__] = about, [f"{name} ({self.types[name]})" for name in _types_of(kind)]
        return found


def _types_of(kind: type[GameEvent]) -> dict[str, FieldType]:
    hints = get_type_hints(kind)
    return {one.name: _type_of(hints[one.name]) for one in fields(kind) if one.name != _ONLY}  # type: ignore[arg-type]


def _type_of(hint: Any) -> FieldType:
    if hint in _SCALARS:
        return FieldType(_SCALARS[hint])
    origin, inner = get_origin(hint), [one for one in get_args(hint) if one not in (NoneType, Ellipsis)]
    if isinstance(hint, type) and issubclass(hint, list | tuple):
        (base,) = getattr(hint, "__orig_bases__", [list[object]])  # such as list[int]
        named = {*get_type_hints(hint).values()} if issubclass(hint, tuple) else {*get_args(base)}
        origin, inner = list, [*named]
    if origin is Literal and {type(one) for one in inner} == {str}:
        return FieldType("string")
    if len(inner) != 1:
        return _JSON
    found = _type_of(inner[0])
    if origin in (Union, UnionType):
        return found
    return FieldType(found.scalar, found.depth + 1) if origin in (tuple, list) and found != _JSON else _JSON
