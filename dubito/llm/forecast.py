"""What games take, by a run's own average: of what is left, may another one start?

A game is reckoned by its questions, whoever answered them, and a question at the cost of a paid reply. So games
whose replies were free, from the tape or the cache, tell how long a game is, but never make games look free.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import astuple, dataclass, field
from math import ceil
from typing import Final

from dubito.store.model_log import Spend

LONG: Final = 50  # questions that a game is taken to have before any has finished
_REST: Final = 0.5  # the part of a game that is assumed to be still to come, however much was played
_NOTHING: Final = Spend()


@dataclass(frozen=True, slots=True)
class Past:
    """What a run knows of its games from before it was stopped."""

    ended: dict[int, int] = field(default_factory=dict)  # the games that ended, with their questions
    replies: int = 0  # that were paid for
    spent: Spend = _NOTHING  # on them, and on failures under way to them


class Forecast:
    """The forecast of one run; those that share it see to its lock."""

    def __init__(self, past: Past) -> None:
        self._ended = set(past.ended)
        self._questions = sum(past.ended.values())  # of the games that ended
        self._replies, self._spent = past.replies, past.spent
        self._worst = Spend()  # of any call
        self._under_way: dict[int, int] = {}  # games, with their questions so far
        # What the last paid reply of a game took: the longer a game, the longer its prompts.
        self._last: dict[int, Spend] = {}
        self._longest = 0  # questions of any game
        self._most: tuple[int, ...] = astuple(_NOTHING)  # that a paid reply took

    @property
    def none_ended(self) -> bool:
        """Whether there is no average yet."""
        return not self._ended

    @property
    def idle(self) -> bool:
        """Whether no game is under way."""
        return not self._under_way

    def begins(self, game: int) -> None:
        """A game begins, or begins again."""
        self._under_way[game] = 0

    def asked(self, game: int) -> None:
        """A question of a game comes up."""
        if game in self._under_way:
            self._under_way[game] += 1
            self._longest = max(self._longest, self._under_way[game])

    def ends(self, game: int) -> None:
        """A game has ended."""
        questions = self._under_way.pop(game, 0)
        self._last.pop(game, None)
        if game not in self._ended:
            self._ended.add(game)
            self._questions += questions

    def reserved(self, worst: Spend) -> None:
        """A call may take this much."""
        self._worst = Spend(*(max(pair) for pair in zip(astuple(self._worst), astuple(worst), strict=True)))

    def settled(self, game: int, used: Spend, replied: bool) -> None:
        """A call of a game took this."""
        if game >= 0:
            self._spent += used
            self._replies += replied
            if replied:
                self._last[game] = used
                self._most = tuple(map(max, self._most, astuple(used)))

    def needed(self, games: Sequence[int]) -> Spend | None:
        """The most that is spent once these games too, and all those under way, have ended; None while nobody can say.

        Games that are wholly on the tape need nothing, even when everything is used up.
        """
        new = [game for game in games if game not in self._ended]
        if not new:
            return Spend()
        each = self._each()
        if each is None:
            return None
        return self._sum([(self._long(), each)] * len(new) + [self._rest(game, each) for game in self._under_way])

    def at_most(self, games: int) -> Spend:
        """More than so many games under way still take, and quickly told."""
        each, questions = self._each(), games * max(self._long(), self._longest)
        if each is None or not games:
            return Spend()
        amounts = zip(each, self._most, astuple(self._worst), strict=True)
        return Spend(*(ceil(questions * max(mean, most) + worst) for mean, most, worst in amounts))

    def rests(self, games: Iterable[int]) -> Iterator[Spend]:
        """About what is spent until the first of these games under way have ended: one, two, and so on."""
        each, worst = self._each(), astuple(self._worst)
        sums, most = [0.0] * len(worst), [0.0] * len(worst)  # the last call has to find room for its worst
        for game in games:
            if each is not None:
                questions, amounts = self._rest(game, each)
                sums = [total + questions * amount for total, amount in zip(sums, amounts, strict=True)]
                most = list(map(max, most, amounts))
            last = [max(0.0, a - b) if any(sums) else 0.0 for a, b in zip(worst, most, strict=True)]
            yield Spend(*(ceil(total + more) for total, more in zip(sums, last, strict=True)))

    def _rest(self, game: int, each: tuple[float, ...]) -> tuple[float, tuple[float, ...]]:
        """How many questions a game under way has still to come, and what each of them takes.

        One that has become long is taken to go on for half as long again.
        """
        if game in self._ended:
            return 0, each
        long, done = self._long(), self._under_way[game]
        last = astuple(self._last.get(game, _NOTHING))
        return max(long - done, max(long, done) * _REST), tuple(map(max, each, last))

    def _sum(self, parts: Sequence[tuple[float, tuple[float, ...]]]) -> Spend:
        """What so many questions take, of which the last has to find room for its worst."""
        if not any(questions for questions, _ in parts):
            return Spend()
        sums = [sum(amounts) for amounts in zip(*([n * amount for amount in each] for n, each in parts), strict=True)]
        most = [max(amounts) for amounts in zip(*(each for _, each in parts), strict=True)]
        triples = zip(sums, most, astuple(self._worst), strict=True)
        return Spend(*(ceil(total + max(0.0, worst - one)) for total, one, worst in triples))

    def _long(self) -> float:
        """How many questions a game has. The short ones end first: what the others have had so far counts as well."""
        if not self._ended:
            return LONG
        return max(1.0, (self._questions + sum(self._under_way.values())) / len(self._ended))

    def _each(self) -> tuple[float, ...] | None:
        """What a paid reply costs; the most that a call may cost while no game has ended; None if no call was made."""
        if self._ended and self._replies:
            return tuple(amount / self._replies for amount in astuple(self._spent))
        return astuple(self._worst) if self._worst.calls else None
