"""The budget: the calls, tokens and dollars that a run may spend, exact across threads.

A call reserves its worst case before it is sent, and is settled with its true cost. Where that is unknown (no usage in
the reply, a connection lost in the middle) it is settled with its worst case, which is then `assumed`. So the spending
never exceeds a cap.

A game starts only if the rest of the budget pays for its end too (`prices.py`). Games are counted up to the first
unfinished deal, so a rest that may not pay for all games in progress is kept for the oldest deals.
"""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from dubito.llm.limiter import Waiting
from dubito.llm.prices import Asked, Forecast, PastGames, Tariff, dollars
from dubito.llm.request import AccountFault, Attempt, OutOfTurn, Reply, Sends, TryFailed
from dubito.store.model_log import Spend


@dataclass(frozen=True, slots=True)
class Caps:
    """What a run may spend; None means no cap."""

    calls: int | None = None
    tokens: int | None = None
    usd: int | None = None  # picodollars

    def exceeded_by(self, spend: Spend) -> str | None:
        caps = {"usd": self.usd, "tokens": self.tokens, "calls": self.calls}
        return next((name for name, cap in caps.items() if cap is not None and getattr(spend, name) > cap), None)

    def share(self, first: int, end: int, of: int) -> "Caps":
        return self._each(lambda name, cap: cap * end // of - cap * first // of)

    def less(self, spent: Spend) -> "Caps":
        return self._each(lambda name, cap: max(0, cap - getattr(spent, name)))

    def _each(self, made: Callable[[str, int], int]) -> "Caps":
        caps = {name: getattr(self, name) for name in ("calls", "tokens", "usd")}
        return Caps(**{name: None if cap is None else made(name, cap) for name, cap in caps.items()})

    def in_words(self) -> str:
        money = [] if self.usd is None else [dollars(self.usd)]
        counts = (("calls", self.calls), ("tokens", self.tokens))
        return ", ".join([*money, *(f"{cap:,} {name}" for name, cap in counts if cap is not None)])


class Budget:
    """One per run, shared by all players."""

    def __init__(
        self,
        caps: Caps,
        waiting: Waiting,
        spent: Spend | None = None,
        past: PastGames | None = None,
        assumed: Spend | None = None,
        reserved: Spend | None = None,
    ) -> None:
        """Begin with what a resumed run has spent.

        Args:
            caps: What may be spent.
            waiting: Shows that calls wait, and for what.
            spent: What the run spent before it was stopped.
            past: The games it played until then.
            assumed: The part of `spent` that is the worst case of calls whose cost is unknown.
            reserved: The worst case of requests that are in a batch, not included in `spent`.
        """
        self._caps, self._waiting = caps, waiting
        self._forecast = Forecast(past or PastGames())
        self._settled = threading.Condition()
        self.spent = spent or Spend()
        self._assumed = assumed or Spend()
        self.reserved = reserved or Spend()  # the worst cases of the calls in flight
        self._at_work: dict[int, int] = {}  # games in progress, with their deals
        # Their deals in order, each with what its games and older ones still need; None: to be computed again.
        self._needs: list[tuple[int, Spend]] | None = None

    def parts(self, games: int) -> tuple[float, float]:
        with self._settled:
            return self._forecast.parts(games)

    def foresees(self, worst: Spend) -> None:
        with self._settled:
            self._forecast.reserved(worst)

    def takes(self, worst: Spend) -> str | None:
        """Reserve this much for a batched request, or return why the budget has no room for it."""
        with self._settled:
            if (cap := self._caps.exceeded_by(self.spent + self.reserved + worst)) is not None:
                return self._used_up(cap, worst, "the next call may take up to")
            self.reserved += worst
            return None

    def wait_for_room(self, worst: Spend, deal: int) -> None:
        """Return once this much may be reserved, or never may be."""
        with self._settled:
            while (reason := self._reason_to_wait(worst, deal)) is not None:
                with self._waiting(f"for the budget ({reason})"):
                    while self._reason_to_wait(worst, deal) == reason:
                        self._settled.wait()

    def _reason_to_wait(self, worst: Spend, deal: int) -> str | None:
        if self._is_kept(worst, deal):
            return "older games first"
        cap = self._caps.exceeded_by(self.spent + self.reserved + worst)
        if cap is not None and self._caps.exceeded_by(self.spent + worst) is None:
            return cap
        return None

    def _is_kept(self, worst: Spend, deal: int) -> bool:
        """Return whether older deals may need this much; games of one deal may wait for each other's replies."""
        taken = self.spent + self.reserved + worst
        if self._caps == Caps() or self._caps.exceeded_by(taken + self._forecast.at_most(len(self._at_work))) is None:
            return False
        if self._needs is None:
            games = sorted(self._at_work, key=self._at_work.__getitem__)
            self._needs = [
                (self._at_work[game], need) for game, need in zip(games, self._forecast.rests(games), strict=True)
            ]
        older = [need for its, need in self._needs if its < deal]
        return bool(older) and self._caps.exceeded_by(taken + older[-1]) is not None

    def admit(self, games: Sequence[int]) -> str | None:
        """Let these games, a whole deal, begin if the budget pays for their end; otherwise return why not.

        Before any game has ended, one deal may begin in any case, since the cost of a game is unknown.
        """
        with self._settled:
            if (reason := self._why_not(games)) is None:
                for game in games:
                    self._forecast.begins(game)
            return reason

    def _why_not(self, games: Sequence[int]) -> str | None:
        needed = self._forecast.needed(games)
        if self._caps == Caps() or (self._forecast.idle and (needed is None or self._forecast.none_ended)):
            return None
        if needed is None:
            return "no game has ended yet, so the cost of one is unknown"
        cap = self._caps.exceeded_by(self.spent + needed)
        return None if cap is None or needed == Spend() else self._used_up(cap, needed, "another game takes about")

    @contextmanager
    def playing(self, game: int, deal: int) -> Iterator[None]:
        """Count a game as in progress while it is played."""
        with self._settled:
            self._forecast.begins(game)
            self._at_work[game] = deal
            self._needs = None
        try:
            yield
        finally:
            with self._settled:
                del self._at_work[game]
                self._needs = None
                self._settled.notify_all()

    def asked(self, game: int) -> None:
        with self._settled:
            self._forecast.asked(game)
            self._needs = None

    def ends(self, game: int) -> None:
        with self._settled:
            self._forecast.ends(game)

    def reserve(self, worst: Spend, deal: int) -> None:
        """Reserve the worst case of a call.

        Raises:
            OutOfTurn: Other calls may leave enough later.
            AccountFault: The budget is used up.
        """
        with self._settled:
            if self._reason_to_wait(worst, deal) is not None:
                raise OutOfTurn
            if (cap := self._caps.exceeded_by(self.spent + worst)) is not None:
                raise AccountFault(self._used_up(cap, worst, "the next call may take up to"))
            self.reserved += worst
            self._forecast.reserved(worst)

    def settle(self, game: int, worst: Spend, used: Spend, replied: bool) -> None:
        """Replace what was reserved for a call by what it used."""
        with self._settled:
            self._forecast.settled(game, used, replied)
            self._needs = None
            self.reserved -= worst
            self.spent += used
            self._assumed += used if used == worst else Spend()

    def wake_waiting(self) -> None:
        with self._settled:
            self._settled.notify_all()

    def check_total(self, total: Spend) -> None:
        """Raise AccountFault if `total`, which other processes may have spent too, exceeds a cap."""
        if (cap := self._caps.exceeded_by(total)) is not None:
            fault = AccountFault(
                f"the budget is used up: other processes spend from it too; raise `budget.{cap}`, or choose another "
                "--games"
            )
            fault.spent = Spend()
            raise fault

    def _used_up(self, cap: str, more: Spend, what: str) -> str:
        said = {name: dollars if name == "usd" else "{:,}".format for name in ("usd", "tokens", "calls")}[cap]
        of, spent, may = (said(getattr(spend, cap)) for spend in (self._caps, self.spent, more))
        words = "" if cap == "usd" else f" {cap}"
        lost = ""
        if self._assumed.usd and cap == "usd":
            lost = f" ({dollars(self._assumed.usd)} of it the worst case of calls whose cost nobody knows)"
        small = ": it was too small for a single game" if self._forecast.none_ended and not self._forecast.idle else ""
        return (
            f"the budget is used up: {spent} of {of}{words} spent{lost}, and {what} {may}; raise `budget.{cap}`{small}"
        )


class BudgetGuard:
    """A stage that reserves a call's worst case before it is sent, and settles what it used."""

    def __init__(self, budget: Budget, tariff: Tariff, inner: Sends) -> None:
        self._budget, self._tariff, self._inner = budget, tariff, inner

    def send(self, attempt: Attempt, number: int) -> Reply:
        worst = self._tariff.worst(attempt.request)
        self._budget.reserve(worst, attempt.place.deal)
        used, replied = worst, False
        try:
            reply = self._inner.send(attempt, number)
            replied = True
            if reply.usage is not None:
                used = self._tariff.of(reply.usage, reply.charges, Asked.by(attempt.request))
            return reply
        except TryFailed as error:
            used = error.spent or (worst if error.billed else Spend(calls=1))
            raise
        except AccountFault as error:
            used = error.spent or Spend(calls=1)
            raise
        finally:
            self._budget.settle(attempt.place.game, worst, used, replied)


class BudgetQueue:
    """A stage in which calls wait until the budget has room for them, without a slot of the rate limiter.

    The rate limiter is inside, so that it has learned how a call ended before other calls wake up.
    """

    def __init__(self, budget: Budget, tariff: Tariff, inner: Sends) -> None:
        self._budget, self._tariff, self._inner = budget, tariff, inner

    def send(self, attempt: Attempt, number: int) -> Reply:
        worst, deal = self._tariff.worst(attempt.request), attempt.place.deal
        while True:
            self._budget.wait_for_room(worst, deal)
            try:
                return self._inner.send(attempt, number)
            except OutOfTurn:
                continue
            finally:
                self._budget.wake_waiting()
