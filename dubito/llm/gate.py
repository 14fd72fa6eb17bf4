"""The gate of an account: how many tries at once, and when so many failed in a row that it is an outage."""

import threading
from collections.abc import Callable
from typing import Final

from dubito.llm.failures import AccountFault, TryFailed
from dubito.llm.settings import Account
from dubito.llm.wire import Ask, Reply

OUTAGE: Final = 20  # connection failures, timeouts or 5xx in a row
Try = Callable[[Ask, int], Reply]


class Gate:
    """One per account, shared by its players. A try that sleeps before another holds no slot."""

    def __init__(self, account: Account, limit: int) -> None:
        self.account = account
        self._slots = threading.BoundedSemaphore(limit)
        self._lock = threading.Lock()
        self._failed_in_a_row = 0
        self._gave_up: set[int] = set()  # games, within the row

    def around(self, inner: Try) -> Try:
        """The same try, once there is a slot."""

        def gated(ask: Ask, number: int) -> Reply:
            with self._slots:
                self._refuse_in_an_outage()
                try:
                    reply = inner(ask, number)
                except TryFailed as error:
                    self._count(error.kind in ("server", "connection"))
                    self._refuse_in_an_outage()
                    raise
                self._count(failed=False)
                return reply

        return gated

    def gave_up(self, game: int) -> None:
        """A decision of this game ended unreachable."""
        with self._lock:
            if self._failed_in_a_row:
                self._gave_up.add(game)

    @property
    def put_back(self) -> set[int]:
        """Games that gave a decision up within an outage; none without one."""
        with self._lock:
            return set(self._gave_up) if self._failed_in_a_row >= OUTAGE else set()

    def _count(self, failed: bool) -> None:
        with self._lock:
            if failed:
                self._failed_in_a_row += 1
            elif self._failed_in_a_row < OUTAGE:  # an outage stands until the run has stopped
                self._failed_in_a_row = 0
                self._gave_up.clear()

    def _refuse_in_an_outage(self) -> None:
        with self._lock:
            failed = self._failed_in_a_row
        if failed >= OUTAGE:
            raise AccountFault(
                f"{self.account} cannot be reached: {failed} connection failures, timeouts or server errors in a row; "
                "check that it is up and that `base_url` is right, then run the same config into a new --output"
            )
