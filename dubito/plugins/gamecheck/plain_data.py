"""Convert a game's objects to plain data, and find the first difference between two of them."""

import ast
import inspect
from collections.abc import Callable, Iterable, Iterator, Sized
from random import Random
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Final

from dubito.errors import one_line
from dubito.llm.recording import common_length
from dubito.plugins.gamecheck.subject import Subject

_MAX_DEPTH: Final = 6
_MAX_QUOTE: Final = 60
_UNSET: Final = object()  # the value of an empty slot
_CODE: Final = (FunctionType, MethodType, BuiltinFunctionType, ModuleType, type)


def to_plain(value: object, depth: int = _MAX_DEPTH, private: bool = False) -> object:
    """Convert a value to plain data. Objects become their public attributes, or all stored ones if `private`."""
    if value is None or isinstance(value, bool | int | float | str | bytes):
        return value
    if isinstance(value, Random):
        return hash(value.getstate()) if private else type(value).__name__
    if depth == 0 or isinstance(value, _CODE):
        return type(value).__name__
    if isinstance(value, dict):
        return {str(key): to_plain(each, depth - 1, private) for key, each in value.items()}
    if isinstance(value, set | frozenset):
        return sorted((to_plain(each, depth - 1, private) for each in value), key=repr)
    if isinstance(value, list | tuple | range):
        return [to_plain(each, depth - 1, private) for each in value]
    if private and (attributes := stored_attributes(value)):
        return {name: to_plain(each, depth - 1, private) for name, each in attributes.items()}
    if isinstance(value, Iterable) and isinstance(value, Sized):
        return [to_plain(each, depth - 1, private) for each in value]
    return {name: to_plain(each, depth - 1, private) for name, each in public_attributes(value).items()}


def call_methods(view: object, seats: int) -> dict[str, object]:
    """Return what the public methods of a view return without an argument, and for the number of each seat."""
    methods = {name: _attribute(view, name) for name in dir(view) if not name.startswith("_")}
    arguments = [(), *((seat,) for seat in range(seats))]
    called = {name: each for name, each in methods.items() if callable(each)}
    return {f"{name}()": [_call(method, *each) for each in arguments] for name, method in called.items()}


def _call(method: Callable[..., object], *arguments: int) -> object:
    try:
        return to_plain(method(*arguments))
    except Exception as error:  # foreign code
        return type(error).__name__


def public_attributes(value: object) -> dict[str, object]:
    attributes = {name: _attribute(value, name) for name in dir(value) if not name.startswith("_")}
    return {name: each for name, each in attributes.items() if not callable(each)}


def _attribute(value: object, name: str) -> object:
    try:
        return getattr(value, name)
    except Exception as error:  # foreign code
        return type(error).__name__


def stored_attributes(value: object) -> dict[str, object]:
    """Return what an object stores in slots and `__dict__`, and the lists, dicts and sets of its class."""
    slots = (getattr(cls, "__slots__", ()) for cls in type(value).__mro__)
    names = [name for each in slots for name in ((each,) if isinstance(each, str) else each)]
    names += [
        name for cls in type(value).__mro__ for name, each in vars(cls).items() if isinstance(each, list | dict | set)
    ]
    names = [name for name in names if not name.startswith(("__", "model_"))]  # pydantic's own
    values = {name: each for name in names if (each := getattr(value, name, _UNSET)) is not _UNSET}
    return values | getattr(value, "__dict__", {})


def list_leaves(value: object) -> Iterator[object]:
    """Yield the values in plain data that are neither lists nor dicts."""
    if isinstance(value, dict):
        value = [*value.values()]
    if isinstance(value, list):
        for each in value:
            yield from list_leaves(each)
    else:
        yield value


def difference(one: object, other: object, where: str = "", ordered: bool = True) -> str:
    """Return the first difference, such as `hand: [1, 2] or [1, 3]`, or an empty string if the data is equal.

    The order of dict keys only matters if `ordered`.
    """
    if one == other and not (ordered and repr(one) != repr(other)):
        return ""
    if isinstance(one, dict) and isinstance(other, dict) and one.keys() == other.keys():
        if ordered and one == other and [*one] != [*other]:
            return difference([*one], [*other], where)
        for name in one:
            if change := difference(one[name], other[name], f"{where}.{name}" if where else str(name), ordered):
                return change
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other) and isinstance(one[0], dict | list):
        for place in range(len(one)):
            if change := difference(one[place], other[place], where, ordered):
                return change
    byte = common_length(repr(one).encode(), repr(other).encode()) + 1
    return f"{where or 'it'}: {_quote(one)} or {_quote(other)} (differs at byte {byte})"


def _quote(value: object) -> str:
    return one_line(repr(value), _MAX_QUOTE)


def extract_path(change: str) -> str:
    """Return the path in a text returned by `difference`."""
    return change.partition(":")[0]


def first_path(one: object, other: object) -> tuple[object, ...]:
    """Return the keys and indexes that lead to the first leaf that differs."""
    if isinstance(one, dict) and isinstance(other, dict) and one.keys() == other.keys():
        return next(((key, *first_path(one[key], other[key])) for key in one if one[key] != other[key]), ())
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        pairs = enumerate(zip(one, other, strict=True))
        return next(((place, *first_path(*pair)) for place, pair in pairs if pair[0] != pair[1]), ())
    return ()


def find_file(subject: Subject, value: object, default: str) -> str:
    """Return the game's file of a module or a value's class, or `default` if it is in another package."""
    try:
        path = inspect.getfile(value if inspect.ismodule(value) else type(value))
    except (TypeError, OSError):
        return default
    return subject.shown(path) if path.startswith(str(subject.folder)) else default


def find_line(subject: Subject, file: str, name: str, owner: object = None, *, call: bool = False) -> str:
    """Return where a file first uses a name, such as ` (line 7)`, or an empty string if it does not.

    Definitions are preferred, or calls if `call` is set. The `owner`'s class is searched first.
    """
    name = name.rpartition(".")[2].partition("(")[0]
    path = subject.here / file
    tree: ast.AST = ast.parse(path.read_bytes()) if path.is_file() else ast.Module([], [])
    owners = type(owner).__name__
    classes = [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef) and node.name == owners]
    found = [_find_lines(part, name) for part in (*classes, tree)]
    for kind in (*([0] if call else []), 1, 2):
        if lines := next(filter(None, (lines[kind] for lines in found)), None):
            return f" (line {min(lines)})"
    return ""


def _find_lines(tree: ast.AST, name: str) -> tuple[list[int], list[int], list[int]]:
    """Return the lines of calls, of definitions and of other mentions."""
    calls, definitions, mentions = list[int](), list[int](), list[int]()
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Name(id=used) | ast.Attribute(attr=used)) if used == name:
                calls.append(node.lineno)
            case ast.FunctionDef(name=used) | ast.ClassDef(name=used) | ast.alias(name=used) if used == name:
                definitions.append(node.lineno)
            case ast.Name(id=used) | ast.Attribute(attr=used) if used == name:
                (definitions if isinstance(node.ctx, ast.Store) else mentions).append(node.lineno)
            case ast.Constant(value=used) | ast.arg(arg=used) | ast.keyword(arg=used) if used == name:
                mentions.append(node.lineno)
    return calls, definitions, mentions
