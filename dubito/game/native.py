"""What the compiler is told of the engine's hot modules (docs/performance.md); as plain Python it changes nothing.

`mypyc_attr(allow_interpreted_subclasses=True)` stands over a class that others inherit from, `serializable=True` over
one that is copied (mypyc 2.4 forgets the `__init__` of a class that has the second without the first). `Loose[T]` is a
T for whoever reads and type-checks, and anything at all for compiled code: what bots may write or hand back is refused
by the rules, in their own words, and not before.
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
        """Nothing: only the compiler reads it."""
        return lambda cls: cls

    class Loose:
        """`Loose[T]` is T."""

        def __class_getitem__(cls, kind: Any) -> Any:
            return kind


def compiled_twin(cls: type[T], file: Path, digest: str) -> type[T]:
    """The compiled class of a bot whose file has these very bytes, by their sha256; without one, the class itself."""
    try:
        twin: type[T] = getattr(import_module(f"dubito.compiled_bots.d{digest}.{file.stem}"), cls.__name__)
    except ModuleNotFoundError as error:
        if not (error.name or "").startswith("dubito.compiled_bots"):
            raise  # it is there, and what it imports is not
        return cls
    return twin


def engine_in_words() -> str:
    """Which engine this is: `compiled` or `pure Python`."""
    spec = find_spec("dubito.game.streams")
    return "pure Python" if spec and (spec.origin or "").endswith(".py") else "compiled"
