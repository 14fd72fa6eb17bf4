"""Named random streams. Nothing is global, nothing goes through `hash()` (R27).

Every stream of a deal is seeded with its own eight bytes of one hash over (run seed, deal number), so
deal 17 is the same alone, in a batch, on one core or on sixteen. A seat has three streams: the bot's
own, the framework's (which random cards, how many, which number) and the fallback's; a bot that draws
once more shifts nobody's cards. A `random.Random` is costly to seed and is made when first used.
"""

from hashlib import shake_256
from random import Random
from typing import Any, Final

from dubito.game.native import mypyc_attr

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
        return SeatStreams(self._seeds, self.fallback, self.fallback)


class DealStreams:
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
