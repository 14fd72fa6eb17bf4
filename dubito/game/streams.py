"""Named random streams. Global state and `hash()` are not used (R27).

Each stream of a deal is seeded with its own eight bytes of a hash of (run seed, deal number). Deal 17 is therefore the
same whether played alone, in a batch, or on any number of cores. A seat has separate streams for the bot, the framework
(which cards, how many, which number) and the fallback. An additional draw by a bot does not change the deal. Streams
are created on first use because seeding `random.Random` is slow.
"""

from hashlib import shake_256
from random import Random
from typing import Any, Final

from dubito.game.native import mypyc_attr

_SEED_BYTES = 8
_SEATS = 8
_SEAT_STREAMS = 3  # bot, framework, fallback
_STREAMS = 2 + _SEAT_STREAMS * _SEATS  # deck and seating come first
_seed: Final[Any] = Random.__mro__[1].__dict__["seed"]  # the C implementation that `Random.seed` calls in the end


@mypyc_attr(allow_interpreted_subclasses=True, serializable=True)
class SeatStreams:
    """The three streams of a seat in a deal, each created on first use."""

    __slots__ = ("_bot", "_fallback", "_framework", "_seeds")

    def __init__(self, seeds: bytes, bot: Random | None = None, framework: Random | None = None) -> None:
        """Create streams from these 24 bytes, except for those passed in."""
        self._seeds = seeds
        self._bot = bot
        self._framework = framework
        self._fallback: Random | None = None

    @property
    def bot(self) -> Random:
        """The bot's own stream, `self.rng`."""
        if self._bot is None:
            self._bot = _stream(self._seeds, 0)
        return self._bot

    @property
    def framework(self) -> Random:
        """The framework's draws: which cards, how many, which number."""
        if self._framework is None:
            self._framework = _stream(self._seeds, 1)
        return self._framework

    @property
    def fallback(self) -> Random:
        """All draws of the fallback bot that moves when this seat's bot fails."""
        if self._fallback is None:
            self._fallback = _stream(self._seeds, 2)
        return self._fallback

    def for_fallback(self) -> "SeatStreams":
        return SeatStreams(self._seeds, self.fallback, self.fallback)

    def for_adviser(self) -> "SeatStreams":
        """Return streams for a bot that advises this seat. Its draws change nothing else."""
        return SeatStreams(shake_256(self._seeds + b"adviser").digest(_SEAT_STREAMS * _SEED_BYTES))


class DealStreams:
    def __init__(self, seed: int | str, deal: int) -> None:
        text = f"dubito streams 1: seed {seed}, deal {deal}"
        self._seeds = shake_256(text.encode()).digest(_STREAMS * _SEED_BYTES)

    def deck(self) -> Random:
        """Return the stream that shuffles."""
        return _stream(self._seeds, 0)

    def seating(self) -> Random:
        """Return the stream that draws the table size, the bots and the contenders' seat (R33)."""
        return _stream(self._seeds, 1)

    def seat(self, seat: int) -> SeatStreams:
        """Return new streams for one seat, 0 to 7."""
        start = (2 + _SEAT_STREAMS * seat) * _SEED_BYTES
        return SeatStreams(self._seeds[start : start + _SEAT_STREAMS * _SEED_BYTES])


def _stream(seeds: bytes, place: int) -> Random:
    """Return a `Random` seeded with these eight bytes.

    Calling the C seed function directly skips the type checks of `Random.seed`, which take a third of its time.
    """
    stream: Any = Random.__new__(Random)
    _seed(stream, int.from_bytes(seeds[place * _SEED_BYTES : (place + 1) * _SEED_BYTES], "little"))
    stream.gauss_next = None  # the same state as after `Random.seed`
    return stream  # type: ignore[no-any-return]
