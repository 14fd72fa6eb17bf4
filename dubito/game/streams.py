"""Named random streams. Nothing is global, nothing goes through `hash()` (R27).

Every stream of a deal is seeded with its own eight bytes of one hash over (run seed, deal number), so
deal 17 is the same alone, in a batch, on one core or on sixteen. A seat has three streams: the bot's
own, the framework's (which random cards, how many, which number) and the fallback's; a bot that draws
once more shifts nobody's cards. A `random.Random` is costly to seed and is made when first used.

What the compiler is told of the engine's hot modules (docs/performance.md); as plain Python it changes nothing.

`mypyc_attr(allow_interpreted_subclasses=True)` stands over a class that others inherit from, `serializable=True` over
one that is copied (mypyc 2.4 forgets the `__init__` of a class that has the second without the first). `Loose[T]` is a
T for whoever reads and type-checks, and anything at all for compiled code: what bots may write or hand back is refused
by the rules, in their own words, and not before.
"""

from collections.abc import Callable
from hashlib import shake_256
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

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


_SEED_BYTES = 8
_SEATS = 8
_SEAT_STREAMS = 3  # bot, framework, fallback
_STREAMS = 2 + _SEAT_STREAMS * _SEATS  # deck and seating come first
_seed: Final[Any] = Random.__mro__[1].__dict__["seed"]  # the generator's own, which `Random.seed` ends in


@mypyc_attr(allow_interpreted_subclasses=True, serializable=True)
class SeatStreams:
    """The three streams of one seat in one deal, each made when first used."""

    __slots__ = ("_bot", "_fallback", "_framework", "_seeds")

    def __init__(self, seeds: bytes, bot: Random | None = None, framework: Random | None = None) -> None:
        """Streams from these 24 bytes, but for those that are given."""
        self._seeds = seeds
        self._bot = bot
        self._framework = framework
        self._fallback: Random | None = None

    @property
    def bot(self) -> Random:
        """The bot's own, `self.rng`."""
        if self._bot is None:
            self._bot = _stream(self._seeds, 0)
        return self._bot

    @property
    def framework(self) -> Random:
        """Which cards, how many, which number."""
        if self._framework is None:
            self._framework = _stream(self._seeds, 1)
        return self._framework

    @property
    def fallback(self) -> Random:
        """All draws of whoever plays a turn in the bot's place."""
        if self._fallback is None:
            self._fallback = _stream(self._seeds, 2)
        return self._fallback

    def for_fallback(self) -> "SeatStreams":
        """The streams of whoever plays in the bot's place: all draws come from the fallback's."""
        return SeatStreams(self._seeds, self.fallback, self.fallback)


class DealStreams:
    """All streams of one deal of one run."""

    def __init__(self, seed: int, deal: int) -> None:
        text = f"dubito streams 1: seed {seed}, deal {deal}"
        self._seeds = shake_256(text.encode()).digest(_STREAMS * _SEED_BYTES)

    def deck(self) -> Random:
        """The stream that shuffles."""
        return _stream(self._seeds, 0)

    def seating(self) -> Random:
        """The stream that draws table size, bots and the contenders' seat (R33)."""
        return _stream(self._seeds, 1)

    def seat(self, seat: int) -> SeatStreams:
        """The streams of one seat, 0 to 7, afresh at each call."""
        start = (2 + _SEAT_STREAMS * seat) * _SEED_BYTES
        return SeatStreams(self._seeds[start : start + _SEAT_STREAMS * _SEED_BYTES])


def _stream(seeds: bytes, place: int) -> Random:
    """`Random` of these eight of the bytes, without the third of its cost that looks at what a seed is."""
    stream: Any = Random.__new__(Random)
    _seed(stream, int.from_bytes(seeds[place * _SEED_BYTES : (place + 1) * _SEED_BYTES], "little"))
    stream.gauss_next = None  # as `Random.seed` leaves it
    return stream  # type: ignore[no-any-return]
