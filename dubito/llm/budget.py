"""The budget: the calls, tokens and dollars that a run may use up, exact across threads.

A try reserves its worst case before it is sent, and is settled with its true cost. Where that is not known (no
usage in the reply, a connection lost under way) it stays at its worst case, which is then `assumed`. So whatever
happens, what is spent never passes a cap.

A game starts only if what is left pays for its end too (`prices.py`). Games are counted up to the first unfinished
deal: so where what is left may not pay for all that are under way, it is kept for those of the oldest deals.
"""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from dubito.llm.gate import MakeTry, Waiting
from dubito.llm.prices import Asked, Forecast, Past, Tariff, dollars
from dubito.llm.request import AccountFault, Ask, NotSent, OutOfTurn, Reply, TryFailed
from dubito.store.model_log import Spend


@dataclass(frozen=True, slots=True)
class Caps:
    """What a run may use up; None is no cap."""

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
        past: Past | None = None,
        assumed: Spend | None = None,
        reserved: Spend | None = None,
    ) -> None:
        """`spent` is what the run used up before it was stopped, `past` what it knows of its games from then.

        `assumed` is what of `spent` is the worst case of calls whose cost nobody knows; `reserved` is not in them: it
        is for what is under way with a wave.
        """
        self._caps, self._waiting = caps, waiting
        self._forecast = Forecast(past or Past())
        self._settled = threading.Condition()
        self.spent = spent or Spend()
        self._assumed = assumed or Spend()
        self.reserved = reserved or Spend()  # of the tries under way, their worst cases
        self._at_work: dict[int, int] = {}  # the games that are being played, with their deals
        # Their deals in order, each with what its games and older ones still need; None: to be reckoned anew.
        self._needs: list[tuple[int, Spend]] | None = None

    def around(self, inner: MakeTry, tariff: Tariff) -> MakeTry:
        """The same try, once the budget has room for the worst of it."""

        def budgeted(ask: Ask, number: int) -> Reply:
            worst = tariff.worst(ask.request)
            self._reserve(worst, ask.place.deal)
            used, replied = worst, False
            try:
                reply = inner(ask, number)
                replied = True
                if reply.usage is not None:
                    used = tariff.of(reply.usage, reply.charges, Asked.by(ask.request))
                return reply
            except TryFailed as error:
                used = error.spent or (worst if error.billed else Spend(calls=1))
                raise
            except AccountFault as error:
                used = error.spent or Spend(calls=1)
                raise
            except NotSent:
                used = Spend()
                raise
            finally:
                self._settle(ask.place.game, worst, used, replied)

        return budgeted

    def parts(self, games: int) -> tuple[float, float]:
        with self._settled:
            return self._forecast.parts(games)

    def foresees(self, worst: Spend) -> None:
        with self._settled:
            self._forecast.reserved(worst)

    def takes(self, worst: Spend) -> str | None:
        """Reserve that much for a call of a wave, if there is room for it; else say why there is none."""
        with self._settled:
            if (cap := self._caps.exceeded_by(self.spent + self.reserved + worst)) is not None:
                return self._used_up(cap, worst, "the next call may take up to")
            self.reserved += worst
            return None

    def settles(self, game: int, worst: Spend, used: Spend, replied: bool) -> None:
        self._settle(game, worst, used, replied)

    def in_turn(self, inner: MakeTry, tariff: Tariff) -> MakeTry:
        """The same try, once it takes nothing that older deals need; until then it holds no slot of a gate."""

        def turned(ask: Ask, number: int) -> Reply:
            while True:
                with self._settled:
                    worst, deal = tariff.worst(ask.request), ask.place.deal
                    if self._is_kept(worst, deal):
                        with self._waiting("for the budget (older games first)"):
                            while self._is_kept(worst, deal):
                                self._settled.wait()
                try:
                    return inner(ask, number)
                except OutOfTurn:
                    continue

        return turned

    def _is_kept(self, worst: Spend, deal: int) -> bool:
        """Whether this much may be needed by older deals; within a deal games may wait for each other's replies."""
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
        """Let these games begin, a whole deal, if what is left pays for their end; else say why not.

        Before any game has ended one deal is let in whatever is left: nobody knows what it takes.
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
        """A game is played from its beginning, maybe again, to its end, or until it is left off or put back."""
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

    def _reserve(self, worst: Spend, deal: int) -> None:
        """Waits while others may leave enough of what they reserved; raises AccountFault once that cannot help."""
        with self._settled:
            if self._is_kept(worst, deal):
                raise OutOfTurn
            while (cap := self._caps.exceeded_by(self.spent + self.reserved + worst)) is not None:
                alone = self._caps.exceeded_by(self.spent + worst)
                if alone is not None:
                    raise AccountFault(self._used_up(alone, worst, "the next call may take up to"))
                with self._waiting(f"for the budget ({cap})"):
                    self._settled.wait()
            self.reserved += worst
            self._forecast.reserved(worst)

    def _settle(self, game: int, worst: Spend, used: Spend, replied: bool) -> None:
        with self._settled:
            self._forecast.settled(game, used, replied)
            self._needs = None
            self.reserved -= worst
            self.spent += used
            self._assumed += used if used == worst else Spend()
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
