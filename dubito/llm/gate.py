"""The gate of an account: how many tries at once, how long none at all, and when failures are an outage.

One rate limit slows the account, not each call: until the server's time is over no try of the account is sent.
The gate stands on both sides of the budget: in front a try waits, holding nothing of the budget; behind it the gate
is looked at again, since waiting for the budget takes time, and learns how the try ended before the budget does.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from dubito.llm.backoff import pause
from dubito.llm.failures import AccountFault, NotSent, TryFailed
from dubito.llm.settings import Account
from dubito.llm.wire import Ask, Reply

OUTAGE: Final = 20  # connection failures, timeouts or 5xx in a row
Try = Callable[[Ask, int], Reply]
Sleep = Callable[[float, str], None]  # told for how many seconds, and for whom and why


class Gate:
    """One per account, shared by its players. A try that waits for another time holds no slot."""

    def __init__(self, account: Account, limit: int, sleep: Sleep, clock: Callable[[], float]) -> None:
        """`clock` says when it is, in seconds."""
        self.account = account
        self._sleep, self._clock = sleep, clock
        self._slots = threading.BoundedSemaphore(limit)
        self._lock = threading.Lock()
        self._opens = 0.0
        self._failed_in_a_row = 0
        self._gave_up: set[int] = set()  # games, within the row

    def around(self, inner: Try) -> Try:
        """The same try, once the gate is open and there is a slot; and anew where it was not sent after all."""

        def gated(ask: Ask, number: int) -> Reply:
            while True:
                with self._slot():
                    self._refuse_in_an_outage()
                    try:
                        return inner(ask, number)
                    except NotSent:
                        continue
                    except TryFailed:
                        self._refuse_in_an_outage()
                        raise

        return gated

    def behind(self, inner: Try, cap: float) -> Try:
        """The same try, if the gate is open still, else NotSent. A rate limit closes it for `cap` seconds at most."""

        def sent(ask: Ask, number: int) -> Reply:
            if not self._open or self._outage:
                raise NotSent
            try:
                reply = inner(ask, number)
            except TryFailed as error:
                if error.kind == "rate_limit":
                    self._close_for(pause(error, number, cap))
                self._count(error.kind in ("server", "connection", "deadline"))
                raise
            self._count(failed=False)
            return reply

        return sent

    def gave_up(self, game: int) -> None:
        """A decision of this game ended unreachable."""
        with self._lock:
            if self._failed_in_a_row:
                self._gave_up.add(game)

    def try_again(self) -> None:
        """An outage may be over: send again."""
        with self._lock:
            self._failed_in_a_row = 0

    @property
    def put_back(self) -> set[int]:
        """Games that gave a decision up within an outage; none without one."""
        with self._lock:
            return set(self._gave_up) if self._outage else set()

    @property
    def _open(self) -> bool:
        return self._opens <= self._clock()

    @property
    def _outage(self) -> bool:
        return self._failed_in_a_row == OUTAGE

    def _close_for(self, seconds: float) -> None:
        with self._lock:
            self._opens = max(self._opens, self._clock() + seconds)

    @contextmanager
    def _slot(self) -> Iterator[None]:
        while True:
            while (seconds := self._opens - self._clock()) > 0:
                self._sleep(seconds, f"for {self.account} (rate limit)")
            self._slots.acquire()
            if self._open:
                break
            self._slots.release()  # it closed while we stood in line
        try:
            yield
        finally:
            self._slots.release()

    def _count(self, failed: bool) -> None:
        with self._lock:
            if self._outage:  # it stands until the run has stopped, whoever is still under way
                return
            self._failed_in_a_row = self._failed_in_a_row + 1 if failed else 0
            if not failed:
                self._gave_up.clear()

    def _refuse_in_an_outage(self) -> None:
        if self._outage:
            raise AccountFault(
                f"{self.account} cannot be reached: {OUTAGE} connection failures, timeouts or server errors in a row; "
                "check that it is up and that `base_url` is right"
            )
