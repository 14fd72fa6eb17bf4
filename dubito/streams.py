"""Named random streams. Nothing is global, nothing goes through `hash()` (R27).

Every stream of a deal is seeded with its own eight bytes of one hash over (run seed, deal number), so
deal 17 is the same alone, in a batch, on one core or on sixteen. A seat has three streams: the bot's
own, the framework's (which random cards, how many, which number) and the fallback's; a bot that draws
once more shifts nobody's cards. A `random.Random` is costly to seed and is made when first used.
"""

from hashlib import shake_256
from random import Random

_SEED_BYTES = 8
_SEATS = 8
_SEAT_STREAMS = ("bot", "framework", "fallback")
_STREAMS = 2 + len(_SEAT_STREAMS) * _SEATS  # deck and seating come first


class SeatStreams:
    """The three streams of one seat in one deal, each made when first used."""

    __slots__ = ("_seeds", "bot", "fallback", "framework")

    bot: Random  # the bot's own, `self.rng`
    framework: Random  # which cards, how many, which number
    fallback: Random  # all draws of whoever plays a turn in the bot's place

    def __init__(self, seeds: bytes) -> None:
        self._seeds = seeds

    def for_fallback(self) -> "SeatStreams":
        """The streams of whoever plays in the bot's place: all draws come from the fallback's."""
        streams = SeatStreams(self._seeds)
        streams.bot = streams.framework = streams.fallback
        return streams

    def __getattr__(self, name: str) -> Random:
        """Called only while a stream is not made yet."""
        if name not in _SEAT_STREAMS:
            raise AttributeError(name)
        place = _SEAT_STREAMS.index(name)
        stream = Random(int.from_bytes(self._seeds[place * _SEED_BYTES : (place + 1) * _SEED_BYTES], "little"))
        setattr(self, name, stream)
        return stream


class DealStreams:
    """All streams of one deal of one run."""

    def __init__(self, seed: int, deal: int) -> None:
        text = f"dubito streams 1: seed {seed}, deal {deal}"
        self._seeds = shake_256(text.encode()).digest(_STREAMS * _SEED_BYTES)

    def deck(self) -> Random:
        """The stream that shuffles."""
        return Random(int.from_bytes(self._seeds[:_SEED_BYTES], "little"))

    def seating(self) -> Random:
        """The stream that draws table size, bots and the contenders' seat (R33)."""
        return Random(int.from_bytes(self._seeds[_SEED_BYTES : 2 * _SEED_BYTES], "little"))

    def seat(self, seat: int) -> SeatStreams:
        """The streams of one seat, 0 to 7, afresh at each call."""
        start = (2 + len(_SEAT_STREAMS) * seat) * _SEED_BYTES
        return SeatStreams(self._seeds[start : start + len(_SEAT_STREAMS) * _SEED_BYTES])
