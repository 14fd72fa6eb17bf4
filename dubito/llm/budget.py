"""The budget: the calls, tokens and dollars that a run can spend, exact across threads.

Before a call is sent, its worst-case cost is reserved. Afterwards, the reservation is replaced with the actual cost. If
the actual cost is unknown (no usage in the reply, a lost connection), the worst case is kept and recorded as `assumed`.
This way, spending never exceeds a cap.

A game starts only if the remaining budget covers the whole game (`forecast.py`). Only games before the first unfinished
deal are counted. If the remaining budget might not cover all games in progress, it is therefore reserved for the oldest
deals.
"""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

from dubito.llm.forecast import Forecast, PastGames
from dubito.llm.limiter import Waiting
from dubito.llm.prices import Tariff
from dubito.llm.request import AccountFault, Attempt, OutOfTurn, Reply, Sends, TryFailed
from dubito.store.spend import Caps, Spend, dollars

_NOTHING: Final = Spend()


@dataclass(eq=False, slots=True)
class Budget:
    """A run's budget, shared by all its players.

    A resumed run starts with what it had spent before it was stopped, and with the forecast from its games until then.
    """

    caps: Caps
    waiting: Waiting  # a context that shows what calls are waiting for
    spent: Spend = _NOTHING
    forecast: Forecast = field(default_factory=lambda: Forecast(PastGames()))
    assumed: Spend = _NOTHING  # the part of `spent` that is the worst case of calls whose cost is unknown
    reserved: Spend = _NOTHING  # the worst case of the calls in flight and in open batches, not included in `spent`
    _settled: threading.Condition = field(default_factory=threading.Condition)
    _in_progress: dict[int, int] = field(default_factory=dict)  # deals by game
    # Their deals in order, each with the cost until it and all older ones have ended. None: recompute.
    _costs: list[tuple[int, Spend]] | None = None

    def parts(self, games: int) -> tuple[float, float]:
        with self._settled:
            return self.forecast.parts(games)

    def assume_questions(self, questions: float) -> None:
        """Assume this many questions in a game until one has finished, except for the budget itself."""
        with self._settled:
            self.forecast.sampled_questions = questions

    def expected_questions(self) -> float:
        with self._settled:
            return self.forecast.expected_questions

    def expect(self, worst: Spend) -> None:
        with self._settled:
            self.forecast.count_reservation(worst)

    def reserve_batched(self, worst: Spend) -> str | None:
        """Reserve the worst case of a batched request, or return why the budget cannot cover it."""
        with self._settled:
            if (cap := self.caps.find_exceeded(self.spent + self.reserved + worst)) is not None:
                return str(BudgetEnd(self, cap, worst, "the next call needs up to"))
            self.reserved += worst
            return None

    def wait_for_room(self, worst: Spend, deal: int) -> None:
        """Wait until this much can be reserved, or until it is certain that it never can."""
        with self._settled:
            while (reason := self._reason_to_wait(worst, deal)) is not None:
                with self.waiting(f"for the budget ({reason})"):
                    while self._reason_to_wait(worst, deal) == reason:
                        self._settled.wait()

    def _reason_to_wait(self, worst: Spend, deal: int) -> str | None:
        if self._is_reserved_for_older(worst, deal):
            return "older games first"
        cap = self.caps.find_exceeded(self.spent + self.reserved + worst)
        if cap is not None and self.caps.find_exceeded(self.spent + worst) is None:
            return cap
        return None

    def _is_reserved_for_older(self, worst: Spend, deal: int) -> bool:
        """Return whether older deals may need this much. Games of one deal can wait for each other's replies."""
        total = self.spent + self.reserved + worst
        most = self.forecast.upper_bound(len(self._in_progress))
        if self.caps == Caps() or self.caps.find_exceeded(total + most) is None:
            return False
        if self._costs is None:
            games = sorted(self._in_progress, key=self._in_progress.__getitem__)
            self._costs = [
                (self._in_progress[game], cost)
                for game, cost in zip(games, self.forecast.costs_in_order(games), strict=True)
            ]
        older = [cost for its_deal, cost in self._costs if its_deal < deal]
        return bool(older) and self.caps.find_exceeded(total + older[-1]) is not None

    def admit(self, games: Sequence[int]) -> str | None:
        """Let the games of a deal start if the budget covers all of them, or return why not.

        The cost of a game is unknown until one has ended, so one deal can always start.
        """
        with self._settled:
            if (reason := self._reason_to_refuse(games)) is None:
                for game in games:
                    self.forecast.start(game)
            return reason

    def _reason_to_refuse(self, games: Sequence[int]) -> str | None:
        needed = self.forecast.cost_to_finish(games)
        is_first = self.forecast.is_idle and (needed is None or self.forecast.has_no_ended_game)
        if self.caps == Caps() or is_first:
            return None
        if needed is None:
            return "no game has ended yet, so the cost per game is unknown"
        cap = self.caps.find_exceeded(self.spent + needed)
        if cap is None or needed == Spend():
            return None
        return str(BudgetEnd(self, cap, needed, "the next deal needs up to"))

    @contextmanager
    def playing(self, game: int, deal: int) -> Iterator[None]:
        """Count a game as in progress while it is played."""
        with self._settled:
            self.forecast.start(game)
            self._in_progress[game] = deal
            self._costs = None
        try:
            yield
        finally:
            with self._settled:
                del self._in_progress[game]
                self._costs = None
                self._settled.notify_all()

    def count_question(self, game: int) -> None:
        with self._settled:
            self.forecast.count_question(game)
            self._costs = None

    def end_game(self, game: int) -> None:
        with self._settled:
            self.forecast.end(game)

    def reserve(self, worst: Spend, deal: int) -> None:
        """Reserve the worst case of a call.

        Raises:
            OutOfTurn: Room may become available once other calls are settled.
            AccountFault: The budget is used up.
        """
        with self._settled:
            if self._reason_to_wait(worst, deal) is not None:
                raise OutOfTurn
            if (cap := self.caps.find_exceeded(self.spent + worst)) is not None:
                raise AccountFault(BudgetEnd(self, cap, worst, "the next call needs up to"))
            self.reserved += worst
            self.forecast.count_reservation(worst)

    def settle(self, game: int, worst: Spend, used: Spend, is_reply: bool) -> None:
        """Replace a call's reservation with its actual cost."""
        with self._settled:
            self.forecast.count_cost(game, used, is_reply)
            self._costs = None
            self.reserved -= worst
            self.spent += used
            self.assumed += used if used == worst else Spend()

    def wake_waiting(self) -> None:
        with self._settled:
            self._settled.notify_all()

    def check_total(self, total: Spend) -> None:
        """Raise AccountFault if `total`, which can include spending by other processes, exceeds a cap."""
        if (cap := self.caps.find_exceeded(total)) is not None:
            fault = AccountFault(
                "other processes have used up the budget",
                hint=f"raise `budget.{cap}`, or choose another --games",
            )
            fault.spent = Spend()
            raise fault


class BudgetEnd:
    """The message that a budget is used up.

    It states what has been spent when it is shown: when it is raised, other calls can still be in flight.
    """

    def __init__(self, budget: Budget, cap: str, more: Spend, what: str) -> None:
        self._budget, self._cap, self._more, self._what = budget, cap, more, what
        is_too_small = budget.forecast.has_no_ended_game and not budget.forecast.is_idle
        self._small = ": it was too small for a single game" if is_too_small else ""

    def __str__(self) -> str:
        cap, budget = self._cap, self._budget
        write = dollars if cap == "usd" else "{:,}".format
        amounts = budget.caps.limits, budget.spent.amounts, self._more.amounts
        most, spent, needed = (write(each[cap]) for each in amounts)
        unit = "" if cap == "usd" else f" {cap}"
        assumed = ""
        if budget.assumed.usd and cap == "usd":
            assumed = f" (including {dollars(budget.assumed.usd)}, the maximum for calls whose cost is unknown)"
        return (
            f"the budget is used up: {spent} of {most}{unit} spent{assumed}, and {self._what} {needed}; raise "
            f"`budget.{cap}`{self._small}"
        )


@dataclass(frozen=True, slots=True)
class BudgetGuard:
    """A stage that reserves a call's worst case before sending it, and settles the actual cost afterwards."""

    budget: Budget
    tariff: Tariff
    inner: Sends

    def send(self, attempt: Attempt, number: int) -> Reply:
        worst = self.tariff.worst_cost(attempt.request)
        self.budget.reserve(worst, attempt.place.deal)
        used, is_reply = worst, False
        try:
            reply = self.inner.send(attempt, number)
            is_reply = True
            if reply.usage is not None:
                used = self.tariff.cost(reply.usage, reply.charges, self.tariff.options(attempt.request))
            return reply
        except TryFailed as error:
            used = error.spent or (worst if error.billed else Spend(calls=1))
            raise
        except AccountFault as error:
            used = error.spent or Spend(calls=1)
            raise
        finally:
            self.budget.settle(attempt.place.game, worst, used, is_reply)


@dataclass(frozen=True, slots=True)
class BudgetQueue:
    """A stage in which calls wait for room in the budget, without occupying a slot of the rate limiter.

    The rate limiter is an inner stage, so it learns how a call ended before other calls wake up.
    """

    budget: Budget
    tariff: Tariff
    inner: Sends

    def send(self, attempt: Attempt, number: int) -> Reply:
        worst, deal = self.tariff.worst_cost(attempt.request), attempt.place.deal
        while True:
            self.budget.wait_for_room(worst, deal)
            try:
                return self.inner.send(attempt, number)
            except OutOfTurn:
                continue
            finally:
                self.budget.wake_waiting()
