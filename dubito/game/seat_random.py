"""The module `random` as bots get it: its functions draw from the stream of the seat that moves (R27).

When a bot's file is imported, its imports of `random` are redirected to `random` in this module. Bots that do not know
`self.rng`, such as bots from other projects, are then repeatable too.
"""

import ast
from collections.abc import Callable
from contextvars import ContextVar
from functools import wraps
from random import Random
from types import FunctionType, ModuleType
from typing import Any, Final

from dubito.game.seating import Player

_STREAM: Final[ContextVar[Random | None]] = ContextVar("the stream of the seat that moves", default=None)


def _stream() -> Random:
    # While a file is imported, no seat moves.
    return _STREAM.get() or Random(0)


class _Generator(Random):
    """A generator that a bot makes. Without a seed, the seat's stream seeds it."""

    def __init__(self, seed: int | str | None = None) -> None:
        super().__init__(_stream().getrandbits(64) if seed is None else seed)


class SeatRandom:
    """Replaces the module `random`."""

    Random = _Generator

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if not hasattr(Random, name):
            raise AttributeError(f"module 'random' has no attribute {name!r}; bots draw from the stream of their seat")

        def draw(*arguments: object, **named: object) -> object:
            return getattr(_stream(), name)(*arguments, **named)

        return draw


random: Final = SeatRandom()


class _Redirection(ast.NodeTransformer):
    """Redirects imports of `random` to this module. Line numbers stay the same."""

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.AST | list[ast.stmt]:
        if node.module != "random" or node.level:
            return node
        names = [(alias.asname or alias.name, alias.name) for alias in node.names]
        code = "\n".join(f"from {__name__} import random as _random\n{here} = _random.{name}" for here, name in names)
        return [ast.copy_location(statement, node) for statement in ast.parse(code).body]

    def visit_Import(self, node: ast.Import) -> list[ast.stmt]:
        others = [alias for alias in node.names if alias.name != "random"]
        drawing = [ast.alias("random", alias.asname) for alias in node.names if alias.name == "random"]
        statements: list[ast.stmt] = [ast.Import(others)] if others else []
        statements += [ast.ImportFrom(__name__, [alias], 0) for alias in drawing]
        return [ast.copy_location(statement, node) for statement in statements]


def redirect_random(tree: ast.Module) -> ast.Module:
    return ast.fix_missing_locations(_Redirection().visit(tree))  # type: ignore[no-any-return]


def draw_from_seat(cls: type) -> None:
    """Let `__init__` and the methods that override a base class draw from the seat's stream."""
    for name, method in list(vars(cls).items()):
        is_called = name == "__init__" or any(hasattr(base, name) for base in cls.__bases__)
        if isinstance(method, FunctionType) and is_called:
            setattr(cls, name, _drawing(method))


def draw_from_seats(module: ModuleType, base: type) -> None:
    """Let all bot classes of a module draw from the stream of their seat."""
    for cls in list(vars(module).values()):
        if isinstance(cls, type) and issubclass(cls, base) and cls.__module__ == module.__name__:
            draw_from_seat(cls)


def _drawing(method: Callable[..., object]) -> Callable[..., object]:
    @wraps(method)
    def draw(self: Player, *arguments: object, **named: object) -> object:
        before = _STREAM.set(self.rng)
        try:
            return method(self, *arguments, **named)
        finally:
            _STREAM.reset(before)

    return draw
