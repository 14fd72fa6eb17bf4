"""The budget: how many calls a run may make, exact across threads. (Money follows.)"""

import threading
from dataclasses import dataclass

from dubito.llm.failures import AccountFault
from dubito.llm.gate import Try
from dubito.llm.wire import Ask, Reply


@dataclass(frozen=True, slots=True)
class Caps:
    """What a run may use up; None is no cap."""

    calls: int | None = None


class Budget:
    """One per run, shared by all players."""

    def __init__(self, caps: Caps) -> None:
        self._caps = caps
        self._lock = threading.Lock()
        self.calls = 0

    def around(self, inner: Try) -> Try:
        """The same try, if the budget has room for it; a try counts when it is sent, whatever comes of it."""

        def budgeted(ask: Ask, number: int) -> Reply:
            with self._lock:
                if self._caps.calls is not None and self.calls >= self._caps.calls:
                    raise AccountFault(
                        f"the budget of {self._caps.calls} calls is used up; raise `budget.calls` and run into a new "
                        "--output: the replies so far come from the cache"
                    )
                self.calls += 1
            return inner(ask, number)

        return budgeted
