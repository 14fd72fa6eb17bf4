"""From a question to a reply: `Pipeline.build_asks` composes the stages of a player's calls.

A decision (one node) takes up to 1 + `reasks` attempts: the question, then re-asks. Those pass the stages that `ask`
(`Asks`): `Recording`, `CachedReplies`, `Retry`. An attempt takes as many calls, each one HTTP request, as the account's
troubles want. Those pass the stages that `send` (`Sends`): `Preparation`, `WarmUp`, `BudgetQueue`, `RateLimiter`,
`BudgetGuard`, `LoggedCalls`, and `Provider` makes the request.

A finished attempt is recorded (the run's `attempts`) with its reply or its cause; nothing is used before it is on disk.

Before the first game, `preflight.py` asks what the game will ask.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from threading import Lock
from typing import Final, Protocol

from dubito.errors import UsageError, one_line
from dubito.game import Bool, Node
from dubito.llm.answers import build_form
from dubito.llm.budget import Budget, BudgetGuard, BudgetQueue, Caps
from dubito.llm.cache import ReplyCache
from dubito.llm.client import Provider
from dubito.llm.limiter import AccountTraffic, RateLimiter, Timing
from dubito.llm.prices import CostEstimator, PastGames, Price, Tariff
from dubito.llm.protocols import Exchange, build_request
from dubito.llm.request import Api, Asks, Attempt, Place, Reply, Request, Sends
from dubito.llm.retry import Retry
from dubito.llm.settings import Account, ModelSettings, account_for, embedded_kind, has_limits_by_model, load_key
from dubito.llm.stages import (
    CachedReplies,
    EarlierAttempts,
    LoggedCalls,
    Offline,
    PromptsInReading,
    ReadingProgress,
    Recording,
)
from dubito.llm.warm import PromptPrefixes, WarmUp
from dubito.llm.waves import Lane, Waves
from dubito.store.model_log import ModelLog
from dubito.store.wave_log import WaveLog

_PROBE: Final = -2  # game, deal and seat of the probes
_PROBE_KEY: Final = (_PROBE, 0, 0, 0)  # all probes are calls of one attempt
_SYSTEM: Final = "This is a check of the connection, before a card game begins."
_USER: Final = "Reply with the JSON object that you are asked for, with `answer` true."
_PROBE_FORM: Final = build_form(("answer",), Node("probe", "", Bool()))
_PROBE_QUESTIONS: Final = {"questions": [{"type": "predicate", "name": "probe", "instructions": "This can be read."}]}


def build_probe(name: str, settings: ModelSettings) -> Attempt:
    return Attempt(_probe_request(settings), "probe", Place(name, _PROBE, _PROBE, 0, 0, 0, "probe"))


def _probe_request(settings: ModelSettings) -> Request:
    schema = _PROBE_QUESTIONS if settings.api == "decisions" else _PROBE_FORM.schema
    exchange = Exchange(_SYSTEM, _USER, schema)
    return build_request(settings, exchange, "dubito-preflight")


class RunServers(Protocol):
    """The model servers that a run starts itself."""

    def address(self, api: Api, server: str, model: str) -> str:
        """Start the server if need be, and return its base URL."""

    def slots(self, server: str) -> int:
        """Return how many calls may be in flight at this server."""


@dataclass(frozen=True, slots=True)
class PipelineOptions:
    """A run's options for its calls; they cannot change a completed run's results."""

    in_flight: int
    offline: bool
    suspend: bool  # `provider_errors: suspend`
    servers: RunServers
    timing: Timing
    counted: Callable[[str], None] = lambda origin: None  # receives the origin of each reply, for the progress line
    waits: bool = False  # whether its games can wait for waves


class Pipeline:
    """Everything a run's calls share: cache, budget, log, and for each account its traffic and a client."""

    def __init__(self, log: ModelLog, cache: ReplyCache, caps: Caps, options: PipelineOptions) -> None:
        self._log, self._cache, self._options = log, cache, options
        caps = Caps() if options.offline else caps  # no call is made
        past, kept = PastGames(log.ended(), *log.in_games()), WaveLog(log)
        held = kept.reserved()  # for requests in a batch
        spent, assumed = log.spent() - held, log.spent(assumed=True) - held
        self.budget = Budget(caps, options.timing.waiting, spent, past, assumed, held)
        timing, is_concurrent = options.timing, options.in_flight
        self.waves = Waves(log, kept, self.budget, timing, suspend=options.suspend, in_flight=is_concurrent)
        self._earlier = EarlierAttempts(log, options.suspend or log.begun())
        self._traffic_of_account: dict[tuple[Account, str | None], AccountTraffic] = {}
        self._probes = count(log.tries(_PROBE_KEY) + 1)
        self._providers: dict[Account, Provider] = {}
        self._beginnings: dict[Account, PromptPrefixes] = {}
        self._likely: dict[str, CostEstimator] = {}  # by player
        self._asked = set[tuple[str, str, str]]()  # what this run has asked itself: server, request, draw
        self._reading = PromptsInReading()
        self._lock = Lock()

    def build_asks(self, name: str, settings: ModelSettings, price: Price | None) -> Asks:
        """Compose the stages of a player's calls; raises UsageError if its key is not set and calls are allowed."""
        account, options, log = account_for(settings), self._options, self._log
        if options.offline:
            asks: Asks = Offline(self._cache, log, account)
        elif settings.wait is not None:
            asks = self._wait_for_batches(name, settings, price, self._build_retry(name, settings, price))
        else:
            asks = self._build_retry(name, settings, price)
        cached = CachedReplies(self._cache, account, options.timing, self._earlier, options.offline, self._asked, asks)
        return Recording(log, account, self.budget, options.timing, self._earlier, options.counted, cached)

    def _build_retry(self, name: str, settings: ModelSettings, price: Price | None) -> Retry:
        account, budget, timing = account_for(settings), self.budget, self._options.timing
        tariff = Tariff(price, settings.max_output if settings.api != "decisions" else 0)
        likely = self._likely[name] = CostEstimator(
            tariff, self._log.replies_of(name) if self._earlier.may_exist else ()
        )
        provider, traffic = self._provider(account, name, settings.model), self._traffic(account, settings.model)
        beginnings, cap = self._prefixes_for(account), settings.retry_after_cap

        logged = LoggedCalls(self._log, budget, account, settings, likely, timing.clock, provider)
        calls = ReadingProgress(self._reading, logged) if settings.parameters.get("return_progress") else logged
        paced = BudgetQueue(budget, tariff, RateLimiter(traffic, cap, BudgetGuard(budget, tariff, calls)))
        sends = Preparation(provider, WarmUp(beginnings, paced))

        suspend = self._options.suspend
        probe = None if suspend else build_probe(name, settings)
        return Retry(sends, settings, traffic, timing.sleep, probe, self._probes, self._earlier, suspend)

    def _wait_for_batches(self, name: str, settings: ModelSettings, price: Price | None, live: Asks) -> Asks:
        if not self._options.waits:
            raise UsageError(
                f"{one_line(name)}: wait: only the games of `dubito run` can wait for a batch: take it out of its entry"
            )
        tariff, account = Tariff(price, settings.max_output, batch=True), account_for(settings)
        replies = self._log.replies_of(name) if self._earlier.may_exist else ()
        lane = Lane(account, self._provider(account, name, settings.model), settings, CostEstimator(tariff, replies))
        self._likely[name] = lane.likely
        self._earlier.may_exist = True  # a game that waits is played again from the recording
        self.waves.joins(name, lane)
        return BatchOrLive(self.waves, live)

    def _traffic(self, account: Account, model: str) -> AccountTraffic:
        with self._lock:
            key = (account, model if has_limits_by_model(account) else None)
            if key not in self._traffic_of_account:
                in_flight = self._options.servers.slots(account.server)
                self._traffic_of_account[key] = AccountTraffic(account, in_flight, self._options.timing)
            return self._traffic_of_account[key]

    @property
    def paced(self) -> list[str]:
        with self._lock:
            paces = [traffic.pace_in_words for traffic in self._traffic_of_account.values()]
            return [pace for pace in paces if pace is not None]

    def reading_progress(self) -> list[str]:
        return self._reading.describe()

    @property
    def put_back(self) -> set[int]:
        return set().union(*(traffic.lost_games for traffic in self._traffic_of_account.values()))

    def try_again(self) -> None:
        for traffic in self._traffic_of_account.values():
            traffic.try_again()

    def close(self) -> None:
        """Reopen games lost to an outage, log what lost calls probably cost, and close clients and cache."""
        try:
            if self.put_back:
                self._log.reopen(self.put_back)
            for player, likely in self._likely.items():
                if (rates := likely.rates) is not None:
                    self._log.assume(player, likely.tariff.max_output, *rates)
        finally:
            for provider in self._providers.values():
                provider.close()
            self._cache.close()

    def _prefixes_for(self, account: Account) -> PromptPrefixes:
        with self._lock:
            return self._beginnings.setdefault(account, PromptPrefixes(self._options.timing))

    def _provider(self, account: Account, name: str, model: str) -> Provider:
        with self._lock:
            if account not in self._providers:
                address = account.server
                if embedded_kind(address):
                    address = self._options.servers.address(account.api, address, model)
                key = load_key(account, name)
                self._providers[account] = Provider(account, address, key, self._options.in_flight)
            return self._providers[account]


@dataclass(frozen=True, slots=True)
class Preparation:
    """A stage that builds the account's client before a call waits for its turn, since that is slow the first time."""

    provider: Provider
    inner: Sends

    def send(self, attempt: Attempt, number: int) -> Reply:
        self.provider.prepare()
        return self.inner.send(attempt, number)


@dataclass(frozen=True, slots=True)
class BatchOrLive:
    """A stage whose games wait for batches; before the first game it asks at once."""

    waves: Waves
    live: Asks

    def ask(self, attempt: Attempt) -> Reply:
        return self.waves.wait(attempt) if attempt.place.in_game else self.live.ask(attempt)
