"""Forecast the cost of games, to decide whether the remaining budget covers another one.

A game's length is its number of questions, no matter where the answers come from. Each question is assumed to cost as
much as an average paid reply. Free replies, from the recording or the cache, add to the length but do not lower the
cost.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from math import ceil
from operator import attrgetter
from typing import Final

from dubito.store.spend import Spend

ASSUMED_QUESTIONS: Final = 50  # assumed length of a game until one has finished
_MIN_REST: Final = 0.5  # assumed minimum left, as a share of the usual or current length
_NOTHING: Final = Spend()
# This is faster than `astuple` and runs at every call.
_amounts: Final[Callable[[Spend], tuple[int, int, int]]] = attrgetter("calls", "tokens", "usd")


@dataclass(frozen=True, slots=True)
class PastGames:
    """The games that a resumed run played before it was stopped."""

    ended: dict[int, int] = field(default_factory=dict)  # number of questions in each finished game
    replies: int = 0  # number of paid replies
    spent: Spend = _NOTHING  # cost of these replies and of failed calls


def _remaining_questions(usual: float, asked_so_far: float) -> float:
    """Return how many questions a game probably has left: at least a fixed share of those of a usual game."""
    return max(usual - asked_so_far, max(usual, asked_so_far) * _MIN_REST)


class Forecast:
    """The forecast of a run, counting only games with model players. Not thread-safe."""

    def __init__(self, past: PastGames) -> None:
        self._ended = set(past.ended)
        self._questions = sum(past.ended.values())  # in finished games
        self._ended_with_questions = sum(questions > 0 for questions in past.ended.values())
        self._replies, self._spent = past.replies, past.spent
        self._worst = Spend()  # the worst case of any call
        self._in_progress: dict[int, int] = {}  # number of questions so far, by game
        # The cost of each game's last paid reply. It rises, since prompts get longer during a game.
        self._last_cost: dict[int, Spend] = {}
        self._most_questions = 0  # in any game
        # The questions of a game in a sample. It is not used for the budget, which must not be exceeded.
        self.sampled_questions: float = ASSUMED_QUESTIONS
        self._highest_cost: tuple[int, ...] = _amounts(_NOTHING)  # of a paid reply

    @property
    def has_no_ended_game(self) -> bool:
        return not self._ended_with_questions

    @property
    def is_idle(self) -> bool:
        return not self._in_progress

    def parts(self, games: int) -> tuple[float, float]:
        """Return how many of `games` are played and how many are left, counting only games with questions.

        A game in progress counts as the estimated fraction of its questions that have been asked.
        """
        counts, ended = self._in_progress.values(), len(self._ended)
        usual = self.expected_questions
        played = sum(count / (count + _remaining_questions(usual, count)) for count in counts)
        share = (self._ended_with_questions + len(counts)) / max(1, ended + len(counts))
        left = share * (games - ended - len(counts)) + len(counts) - played
        return self._ended_with_questions + played, left

    @property
    def expected_questions(self) -> float:
        """The questions of a game, on average."""
        return self._average_questions() if self._ended_with_questions else self.sampled_questions

    def start(self, game: int) -> None:
        self._in_progress[game] = 0

    def count_question(self, game: int) -> None:
        if game in self._in_progress:
            self._in_progress[game] += 1
            self._most_questions = max(self._most_questions, self._in_progress[game])

    def end(self, game: int) -> None:
        questions = self._in_progress.pop(game, 0)
        self._last_cost.pop(game, None)
        if game not in self._ended:
            self._ended.add(game)
            self._questions += questions
            self._ended_with_questions += questions > 0

    def count_reservation(self, worst: Spend) -> None:
        self._worst = Spend(*(max(pair) for pair in zip(_amounts(self._worst), _amounts(worst), strict=True)))

    def count_cost(self, game: int, used: Spend, is_reply: bool) -> None:
        if game >= 0:
            self._spent += used
            self._replies += is_reply
            if is_reply:
                self._last_cost[game] = used
                self._highest_cost = tuple(map(max, self._highest_cost, _amounts(used)))

    def cost_to_finish(self, games: Sequence[int]) -> Spend | None:
        """Return what these games and all games in progress will cost, or None if unknown.

        Fully recorded games cost nothing, even when the budget is used up.
        """
        new = [game for game in games if game not in self._ended]
        if not new:
            return Spend()
        each = self._cost_per_question()
        if each is None:
            return None
        parts = [(self._usual_questions(), each)] * len(new) + [self._rest(g, each) for g in self._in_progress]
        if not any(questions for questions, _ in parts):
            return Spend()
        sums = [sum(amounts) for amounts in zip(*([n * amount for amount in each] for n, each in parts), strict=True)]
        most = [max(amounts) for amounts in zip(*(each for _, each in parts), strict=True)]
        # The last call needs room for its worst case.
        triples = zip(sums, most, _amounts(self._worst), strict=True)
        return Spend(*(ceil(total + max(0.0, worst - one)) for total, one, worst in triples))

    def upper_bound(self, games: int) -> Spend:
        """Return a quick upper bound on the remaining cost of this many games in progress."""
        each, questions = self._cost_per_question(), games * max(self._usual_questions(), self._most_questions)
        if each is None or not games:
            return Spend()
        amounts = zip(each, self._highest_cost, _amounts(self._worst), strict=True)
        return Spend(*(ceil(questions * max(mean, most) + worst) for mean, most, worst in amounts))

    def costs_in_order(self, games: Iterable[int]) -> Iterator[Spend]:
        """Yield the approximate cost until the first of these games ends, then the first two, and so on."""
        each, worst = self._cost_per_question(), _amounts(self._worst)
        sums, most = [0.0] * len(worst), [0.0] * len(worst)
        for game in games:
            if each is not None:
                questions, amounts = self._rest(game, each)
                sums = [total + questions * amount for total, amount in zip(sums, amounts, strict=True)]
                most = list(map(max, most, amounts))
            # The last call needs room for its worst case.
            last = [max(0.0, a - b) if any(sums) else 0.0 for a, b in zip(worst, most, strict=True)]
            yield Spend(*(ceil(total + more) for total, more in zip(sums, last, strict=True)))

    def _rest(self, game: int, each: tuple[float, ...]) -> tuple[float, tuple[float, ...]]:
        """Return how many questions a game in progress probably has left, and the cost of each."""
        if game in self._ended:
            return 0, each
        last = _amounts(self._last_cost.get(game, _NOTHING))
        return _remaining_questions(self._usual_questions(), self._in_progress[game]), tuple(map(max, each, last))

    def _usual_questions(self) -> float:
        return max(1.0, self._average_questions()) if self._ended_with_questions else ASSUMED_QUESTIONS

    def _average_questions(self) -> float:
        """Return the average number of questions per game.

        Short games end first, so the questions of games in progress are included.
        """
        return (self._questions + sum(self._in_progress.values())) / self._ended_with_questions

    def _cost_per_question(self) -> tuple[float, ...] | None:
        if self._ended_with_questions and self._replies:
            return tuple(amount / self._replies for amount in _amounts(self._spent))
        return _amounts(self._worst) if self._worst.calls else None
