"""The stages of a model's calls that use the run's log and the cache. `Pipeline` composes all stages."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from threading import Lock, get_ident
from typing import cast

from dubito.commands import build_command
from dubito.errors import RunStopped
from dubito.llm.budget import Budget
from dubito.llm.cache import ReplyCache
from dubito.llm.client import Provider
from dubito.llm.limiter import Timing, check_stop
from dubito.llm.prices import CostEstimator, describe_excess
from dubito.llm.protocols import read_recorded_reply, read_reply
from dubito.llm.protocols.events import READING
from dubito.llm.provider_errors import ErrorReader, describe_non_reply, error_in_reply
from dubito.llm.request import AccountFault, Asks, Attempt, AttemptFailed, Cause, RawReply, Reply, Sends, TryFailed
from dubito.llm.streamed import stream_to, text_callback
from dubito.model_settings import Account, ModelSettings
from dubito.store.model_log import ModelLog, RecordedAttempt
from dubito.store.spend import Spend


@dataclass(slots=True)
class EarlierAttempts:
    """The logged attempts from before a run was resumed, or from games that waited for a batch.

    Nothing is looked up unless `may_exist` is set.
    """

    log: ModelLog
    may_exist: bool

    def find_finished(self, attempt: Attempt) -> RecordedAttempt | None:
        key = attempt.place.key
        return self.log.finished_attempts(*key).get(key) if self.may_exist and attempt.place.is_in_game else None

    def find_paid_reply(self, server: str, attempt: Attempt) -> Reply | None:
        """Find a reply that arrived before the run was stopped but may be missing from the cache."""
        received = self.log.find_paid_reply(server, attempt.request.digest, attempt.draw) if self.may_exist else None
        reply = read_reply(attempt.request.protocol, received) if received else None
        return reply if reply and reply.non_reply is None else None

    def count_calls(self, attempt: Attempt) -> int:
        return self.log.count_tries(attempt.place.key) if self.may_exist else 0


@dataclass(frozen=True, slots=True)
class Recording:
    """A stage that answers from the run's recording, or makes the attempt and records its result.

    An attempt without a reply or an AttemptFailed stays open, and is repeated when the run is resumed.
    """

    log: ModelLog
    server: str
    budget: Budget
    timing: Timing
    earlier: EarlierAttempts
    count_reply: Callable[[str], None]  # receives the origin of each reply
    inner: Asks

    def ask(self, attempt: Attempt) -> Reply:
        check_stop(self.timing)
        place = attempt.place
        self.budget.count_question(place.game)
        recorded = self.earlier.find_finished(attempt)
        if recorded is None:
            reply = self._ask_and_record(attempt)
        else:
            if (recorded.request, recorded.draw) != (attempt.request.digest, attempt.draw):
                raise RunStopped(
                    f"{place}: this request differs from the one recorded in this run, since a file or the version of "
                    "Dubito has changed",
                    hint="resume with the files and the version that the run started with, or choose another --output",
                )
            if recorded.raw is None:
                failed = AttemptFailed(cast(Cause, recorded.cause), "recorded outcome")
                failed.origin = "tape"
                raise failed
            reply = read_recorded_reply(attempt.request.protocol, self.log.text(recorded.raw))
        if place.is_in_game:
            self.count_reply(reply.origin)
        return reply

    def _ask_and_record(self, attempt: Attempt) -> Reply:
        place, reply, cause = attempt.place, None, None
        try:
            return (reply := self.inner.ask(attempt))
        except AttemptFailed as error:
            cause = error.cause
            raise
        finally:
            self.log.record_attempt(
                place.key,
                player=place.player,
                server=self.server,
                request=attempt.request.text,
                draw=attempt.draw,
                reply=reply.digest if reply else None,
                raw=reply.received.raw if reply else None,
                # A preflight without a reply is repeated.
                cause=cause if place.is_in_game else None,
                origin=reply.origin if reply else "live",
                usage=reply.usage.counts if reply and reply.usage else None,
                model=reply.model if reply else None,
            )


@dataclass(frozen=True, slots=True)
class CachedReplies:
    """A stage that answers from the cache and stores new replies there."""

    cache: ReplyCache
    account: Account
    timing: Timing
    earlier: EarlierAttempts
    is_offline: bool
    # The requests of this run as (server, request, draw). A refusal may have been a temporary fault, so a cached one
    # from another run is not used.
    requested: set[tuple[str, str, str]]
    inner: Asks

    def ask(self, attempt: Attempt) -> Reply:
        lookup, key = CacheLookup(self, attempt), (self.account.server, attempt.request, attempt.draw)
        wait = partial(self.timing.waiting, "for another process that is making the same request")
        self.cache.get_or_ask(*key, lookup.ask, wait, partial(check_stop, self.timing), lookup.is_usable)
        assert lookup.reply is not None
        return lookup.reply


@dataclass(slots=True)
class CacheLookup:
    """The cache's callbacks for one attempt. The parsed reply is kept, since parsing is slow."""

    stage: CachedReplies
    attempt: Attempt
    reply: Reply | None = field(default=None)

    @property
    def key(self) -> tuple[str, str, str]:
        return (self.stage.account.server, self.attempt.request.digest, self.attempt.draw)

    def ask(self) -> RawReply:
        paid_reply = self.stage.earlier.find_paid_reply(self.stage.account.server, self.attempt)
        self.reply = paid_reply or self.stage.inner.ask(self.attempt)
        self.stage.requested.add(self.key)
        return self.reply.received

    def is_usable(self, received: RawReply) -> bool:
        self.reply = read_reply(self.attempt.request.protocol, received, "cache")
        is_old_refusal = self.reply.finish == "refusal" and self.key not in self.stage.requested
        return self.reply.non_reply is None and (self.stage.is_offline or not is_old_refusal)


@dataclass(frozen=True, slots=True)
class Offline:
    """The last stage of an offline run, in which a request that is not in the cache ends the run."""

    cache: ReplyCache
    log: ModelLog
    account: Account

    def ask(self, attempt: Attempt) -> Reply:
        place, run, cache = ".".join(map(str, attempt.place.key)), str(self.log.db.path.parent), str(self.cache.folder)
        if stored := self.cache.find(self.account.server, attempt.request, attempt.draw):
            protocol = attempt.request.protocol
            non_reply = read_reply(protocol, stored).non_reply
            kind = non_reply.kind if non_reply else None
            description = describe_non_reply(kind, protocol) if kind else "an error"
            raise AccountFault(
                f"--offline: the cache has {description} instead of a reply for {attempt.place}",
                hint="run once without --offline to ask again; "
                f"`{build_command('cache', 'drop', '--cause', 'malformed', '--cache', cache)}` removes it",
            )
        raise AccountFault(
            f"--offline: the cache has no reply for {attempt.place}",
            hint="run once without --offline, or use the --cache that has it; "
            f"`{build_command('cache', 'explain', place, '--run', run, '--cache', cache)}` shows what it contains",
        )


@dataclass(frozen=True, slots=True)
class LoggedCalls:
    """The stage around the provider. It logs each call before sending it, and each body before parsing it."""

    log: ModelLog
    budget: Budget
    account: Account
    settings: ModelSettings
    estimator: CostEstimator
    clock: Callable[[], float]
    times: "AnswerTimes"
    provider: Provider

    def send(self, attempt: Attempt, number: int) -> Reply:
        request, tariff = attempt.request, self.estimator.tariff
        key, worst = (*attempt.place.key, number), tariff.worst_cost(request)
        start, estimate = self.clock(), self.estimator.estimate(request)
        fields = (attempt.place.player, str(self.account), request.digest, attempt.draw, worst)
        check = self.budget.check_total if self.log.db.is_shared else None
        self.log.open_try(key, *fields, priced=estimate is not None, likely=estimate, check=check)
        try:
            received = self.provider.send(attempt, number, self.settings.deadline)
        except TryFailed as error:
            used = worst if error.billed else Spend(calls=1)
            self.log.fail_try(key, error.kind, str(error), used, self.clock() - start)
            raise
        except AccountFault as error:
            self.log.fail_try(key, "account", str(error), Spend(calls=1), self.clock() - start)
            raise
        seconds = self.clock() - start
        reply, _, failed = log_reply(self.log, key, attempt, received, self.estimator, self.provider.errors, seconds)
        if failed:
            raise failed
        if not attempt.place.is_in_game:
            return replace(reply, seconds=seconds)
        self.times.add(seconds)
        return reply


def log_reply(
    log: ModelLog,
    key: tuple[int, ...],
    attempt: Attempt,
    received: RawReply,
    estimator: CostEstimator,
    errors: ErrorReader,
    seconds: float,
) -> tuple[Reply, Spend, TryFailed | AccountFault | None]:
    """Log a received body and learn from its cost.

    Returns the reply, the cost, and the error if the body is not a reply.
    """
    request, tariff = attempt.request, estimator.tariff
    reply, worst = read_reply(request.protocol, received), tariff.worst_cost(request)
    usage, price = reply.usage, tariff.price
    used = tariff.cost(usage, reply.charges, tariff.options(request)) if usage else worst
    failed = error_in_reply(errors, reply, attempt, used)
    used = (failed.spent if failed else None) or used
    log.receive_try(
        key,
        received.status,
        received.raw,
        received.headers,
        usage=usage.counts if usage else None,
        spent=used,
        saved=price.cache_saving(usage) if usage and price else 0,
        seconds=seconds,
        excess=describe_excess(used, worst),
        failed=(failed.kind if isinstance(failed, TryFailed) else "account", str(failed)) if failed else None,
    )
    if failed is None:
        estimator.learn(len(request.text), usage, used.usd)
    return reply, used, failed


@dataclass(eq=False, slots=True)
class AnswerTimes:
    """How long the answers to questions in games take."""

    _seconds: float = 0.0
    _count: int = 0
    _lock: Lock = field(default_factory=Lock)

    def add(self, seconds: float) -> None:
        with self._lock:
            self._seconds, self._count = self._seconds + seconds, self._count + 1

    def mean(self) -> float:
        with self._lock:
            return self._seconds / max(1, self._count)


@dataclass(eq=False, slots=True)
class PromptsInReading:
    """How far servers have read the prompts in flight."""

    _texts: dict[int, str] = field(default_factory=dict)  # by thread

    def update(self, text: str) -> None:
        """Update the progress of this thread's call. An empty text means that the call has ended."""
        if text.startswith(READING):
            self._texts[get_ident()] = text
        else:
            self._texts.pop(get_ident(), None)

    def describe(self) -> list[str]:
        return sorted(self._texts.copy().values())[:1]


@dataclass(frozen=True, slots=True)
class ReadingProgress:
    """A stage that streams replies, so that the progress line can show how far a slow server has read a prompt."""

    reading: PromptsInReading
    inner: Sends

    def send(self, attempt: Attempt, number: int) -> Reply:
        if text_callback():
            return self.inner.send(attempt, number)
        try:
            with stream_to(self.reading.update):
                return self.inner.send(attempt, number)
        finally:
            self.reading.update("")
