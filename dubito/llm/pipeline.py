"""The pipeline: each stage a function around the next, composed here and nowhere else.

    tape( cache( retry( gate( budget( log_try( provider ))))))

`Pipeline` is a run's; `asker` gives a player's way in. A finished attempt is on the tape (the run's
`attempts`) with its reply or its cause; nothing is ever used that is not on disk.
"""

from collections.abc import Callable
from dataclasses import astuple, dataclass, replace
from threading import Lock

from dubito.llm.budget import Budget
from dubito.llm.cache import ReplyCache
from dubito.llm.failures import AccountFault, AttemptFailed, Interrupted, TryFailed
from dubito.llm.gate import Gate, Try
from dubito.llm.protocols import read_reply
from dubito.llm.providers import Provider
from dubito.llm.retry import Attempt, retried
from dubito.llm.settings import HOUSE, Account, ModelSettings, account_of, key_of
from dubito.llm.wire import Ask, Place, Reply
from dubito.store.model_log import ModelLog


@dataclass(frozen=True, slots=True)
class Options:
    """What a run says about its calls; none of it can change a completed run's results."""

    in_flight: int
    offline: bool
    house_address: Callable[[str], str]  # api -> base URL of the embedded server
    sleep: Callable[[float, str], None]  # before another try: seconds, for whom and why
    stopped: Callable[[], bool]  # True: ask nothing more
    counted: Callable[[str], None] = lambda origin: None  # told the origin of each reply, for the progress line


class Pipeline:
    """Everything a run's calls share: cache, budget, log, and a gate and a client for each account."""

    def __init__(self, log: ModelLog, cache: ReplyCache, budget: Budget, options: Options) -> None:
        self._log, self._cache, self.budget, self._options = log, cache, budget, options
        self._gates: dict[Account, Gate] = {}
        self._providers: dict[Account, Provider] = {}
        self._lock = Lock()

    def asker(self, name: str, settings: ModelSettings) -> Attempt:
        """A player's way to ask; raises UsageError if its key is not set and calls are allowed."""
        account = account_of(settings)
        gate = self._gates.setdefault(account, Gate(account, self._options.in_flight))
        if self._options.offline:
            live: Attempt = _refuse_offline
        else:
            logged = self._logged(self._provider(account, name), account, settings)
            live = retried(gate.around(self.budget.around(logged)), settings, gate, self._options.sleep)
        return self._taped(self._cached(live, account))

    @property
    def put_back(self) -> set[int]:
        """Games that gave a decision up within an outage: they are put back."""
        return set().union(*(gate.put_back for gate in self._gates.values()))

    def close(self) -> None:
        """Close clients and cache."""
        for provider in self._providers.values():
            provider.close()
        self._cache.close()

    def _provider(self, account: Account, name: str) -> Provider:
        with self._lock:
            if account not in self._providers:
                address = self._options.house_address(account.api) if account.server == HOUSE else account.server
                key = key_of(account, name)
                self._providers[account] = Provider(account, address, key, self._options.in_flight)
            return self._providers[account]

    def _logged(self, provider: Provider, account: Account, settings: ModelSettings) -> Try:
        """log_try: the row before the call, the body before anything reads it."""

        def logged(ask: Ask, number: int) -> Reply:
            key = (*_key(ask.place), number)
            self._log.try_opens(key, str(account), {"calls": 1, "output": settings.max_output})
            try:
                received = provider(ask, number, settings.deadline)
            except (TryFailed, AccountFault) as error:
                self._log.try_failed(key, str(error))
                raise
            reply = read_reply(ask.request.protocol, received)
            usage = None if reply.usage is None else astuple(reply.usage)
            self._log.try_received(key, received.status, received.raw, received.headers, usage)
            return reply

        return logged

    def _cached(self, inner: Attempt, account: Account) -> Attempt:
        def cached(ask: Ask) -> Reply:
            received, stored = self._cache.once(
                account.server, ask.request.digest, ask.draw, lambda: inner(ask).received
            )
            reply = read_reply(ask.request.protocol, received)
            return replace(reply, origin="cache" if stored else "live")

        return cached

    def _taped(self, inner: Attempt) -> Attempt:
        def taped(ask: Ask) -> Reply:
            if self._options.stopped():
                raise Interrupted("stopped by Ctrl-C")
            reply, failure = None, None
            try:
                reply = inner(ask)
            except AttemptFailed as error:
                failure = error
            self._log.attempt(
                _key(ask.place),
                player=ask.place.player,
                request=ask.request.text,
                draw=ask.draw,
                reply=reply.digest if reply else None,
                cause=failure.cause if failure else None,
                origin=reply.origin if reply else "live",
                usage=astuple(reply.usage) if reply and reply.usage else None,
            )
            if failure is not None:
                raise failure
            assert reply is not None
            self._options.counted(reply.origin)
            return reply

        return taped


def _key(place: Place) -> tuple[int, ...]:
    return (place.game, place.seat, place.decision, place.attempt)


def _refuse_offline(ask: Ask) -> Reply:
    raise AccountFault(
        f"--offline: the cache has no reply for {ask.place}; run once without --offline, or with the --cache that "
        "has it"
    )
