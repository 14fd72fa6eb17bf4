"""Declarations for the mypyc compiler, which do nothing in plain Python. See docs/performance.md.

Use `mypyc_attr(allow_interpreted_subclasses=True)` on classes that bots subclass, and `serializable=True` on classes
that are copied (mypyc 2.4 loses the `__init__` of a class with only the latter). `Loose[T]` is T to readers and type
checkers, but any object to compiled code. Invalid values that bots assign or return are therefore refused by the rules,
with a proper message, and not by the compiler.
"""

from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

T = TypeVar("T")

if TYPE_CHECKING:
    from mypy_extensions import mypyc_attr as mypyc_attr
    from typing_extensions import TypeVar as TypeVarWithDefault

    Loose: TypeAlias = T | Any
    Held = TypeVarWithDefault("Held", default=Any)
else:
    Held = TypeVar("Held")

    def mypyc_attr(**_: bool) -> Callable[[type[T]], type[T]]:
        """Do nothing. Only the compiler uses this."""
        return lambda cls: cls

    class Loose:
        """At run time, `Loose[T]` is T."""

        def __class_getitem__(cls, kind: Any) -> Any:
            return kind


def compiled_twin(cls: type[T], file: Path, digest: str) -> type[T]:
    """Return the class compiled from exactly this file, or `cls` if it was not compiled.

    `digest` is the sha256 of the file.
    """
    try:
        twin: type[T] = getattr(import_module(f"dubito.compiled_bots.d{digest}.{file.stem}"), cls.__name__)
    except ModuleNotFoundError as error:
        if not (error.name or "").startswith("dubito.compiled_bots"):
            raise  # the compiled module exists, but one of its imports failed
        return cls
    return twin


def describe_engine() -> str:
    """Return which engine runs: `compiled` or `pure Python`."""
    spec = find_spec("dubito.game.streams")
    return "pure Python" if spec and (spec.origin or "").endswith(".py") else "compiled"
