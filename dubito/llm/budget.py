"""The budget: the calls, tokens and dollars that a run may use up, exact across threads.

A try reserves its worst case before it is sent, and is settled with what it did cost. Where that is not known (no
usage in the reply, a connection lost under way) it stays at its worst case, which is then `assumed`. So whatever
happens, what is spent never passes a cap.
"""

import threading
from dataclasses import dataclass

from dubito.llm.failures import AccountFault, NotSent, TryFailed
from dubito.llm.gate import Try, Waiting
from dubito.llm.prices import Tariff, dollars
from dubito.llm.wire import Ask, Reply
from dubito.store.model_log import Spend


@dataclass(frozen=True, slots=True)
class Caps:
    """What a run may use up; None is no cap."""

    calls: int | None = None
    tokens: int | None = None
    usd: int | None = None  # picodollars

    def exceeded_by(self, spend: Spend) -> str | None:
        """The first of the caps that this passes."""
        caps = {"usd": self.usd, "tokens": self.tokens, "calls": self.calls}
        return next((name for name, cap in caps.items() if cap is not None and getattr(spend, name) > cap), None)


class Budget:
    """One per run, shared by all players."""

    def __init__(self, caps: Caps, waiting: Waiting, spent: Spend | None = None) -> None:
        """`spent` is what the run used up before it was stopped."""
        self._caps, self._waiting = caps, waiting
        self._settled = threading.Condition()
        self.spent = spent or Spend()
        self.reserved = Spend()  # of the tries under way, their worst cases

    def around(self, inner: Try, tariff: Tariff) -> Try:
        """The same try, once the budget has room for the worst of it."""

        def budgeted(ask: Ask, number: int) -> Reply:
            worst = tariff.worst(ask.request)
            self._reserve(worst)
            used = worst
            try:
                reply = inner(ask, number)
                used = tariff.of(reply.usage, reply.charges) if reply.usage is not None else worst
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
                self._settle(worst, used)

        return budgeted

    def _reserve(self, worst: Spend) -> None:
        """Waits while others may leave enough of what they reserved; raises AccountFault once that cannot help."""
        with self._settled:
            while (cap := self._caps.exceeded_by(self.spent + self.reserved + worst)) is not None:
                alone = self._caps.exceeded_by(self.spent + worst)
                if alone is not None:
                    raise AccountFault(self._used_up(alone, worst))
                with self._waiting(f"for the budget ({cap})"):
                    self._settled.wait()
            self.reserved += worst

    def _settle(self, worst: Spend, used: Spend) -> None:
        with self._settled:
            self.reserved -= worst
            self.spent += used
            self._settled.notify_all()

    def _used_up(self, cap: str, worst: Spend) -> str:
        said = {name: dollars if name == "usd" else "{:,}".format for name in ("usd", "tokens", "calls")}[cap]
        of, spent, more = (said(getattr(spend, cap)) for spend in (self._caps, self.spent, worst))
        words = "" if cap == "usd" else f" {cap}"
        return (
            f"the budget is used up: {spent} of {of}{words} spent, and the next call may take up to {more}; raise "
            f"`budget.{cap}`"
        )
