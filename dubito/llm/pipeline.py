"""The path from a question to a reply: `Pipeline.build_asks` composes the stages of a player's calls.

A decision takes up to 1 + `reasks` attempts: the question, then its re-asks. Attempts pass through the stages with an
`ask` method (`Asks`): `Recording`, `CachedReplies`, `Retry`. An attempt takes one or more calls, each an HTTP request.
Calls pass through the stages with a `send` method (`Sends`): `Preparation`, `WarmUp`, `BudgetQueue`, `RateLimiter`,
`BudgetGuard`, `LoggedCalls`. Finally, `Provider` makes the request.

A finished attempt is recorded with its reply or its failure cause. No reply is used before it is on disk.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import count
from threading import Lock
from typing import Final, Protocol

from dubito.errors import UsageError, one_line
from dubito.game import Bool, Node
from dubito.hooks import find_batch_sender
from dubito.llm.answers import build_form
from dubito.llm.budget import Budget, BudgetGuard, BudgetQueue
from dubito.llm.cache import ReplyCache
from dubito.llm.client import Provider
from dubito.llm.forecast import Forecast, PastGames
from dubito.llm.limiter import AccountTraffic, RateLimiter, Timing, format_duration
from dubito.llm.prices import CostEstimator, Price, Tariff
from dubito.llm.protocols import build_request, find_protocol
from dubito.llm.protocols.wire import Exchange
from dubito.llm.request import Asks, Attempt, Place, Reply, Sends
from dubito.llm.retry import Retry
from dubito.llm.settings import build_account, load_key
from dubito.llm.stages import (
    AnswerTimes,
    CachedReplies,
    EarlierAttempts,
    LoggedCalls,
    Offline,
    PromptsInReading,
    ReadingProgress,
    Recording,
)
from dubito.llm.warm_up import PromptPrefixes, WarmUp
from dubito.model_settings import Account, Api, ModelSettings, embedded_kind
from dubito.store.model_log import ModelLog
from dubito.store.spend import Caps

_SLOW_SECONDS: Final = 5.0  # seconds per answer, from which the speed is shown
_PROBE: Final = -2  # game, deal and seat of the probes
_PROBE_KEY: Final = (_PROBE, 0, 0, 0)  # all probes are calls of the same attempt
_SYSTEM: Final = "This is a check of the connection, before a card game begins."
_USER: Final = "Reply with the JSON object that you are asked for, with `answer` true."
_PROBE_FORM: Final = build_form(("answer",), Node("probe", "", Bool()))
_PROBE_QUESTIONS: Final = {"questions": [{"type": "predicate", "name": "probe", "instructions": "This can be read."}]}


def build_probe(name: str, settings: ModelSettings) -> Attempt:
    schema = _PROBE_FORM.schema if find_protocol(settings.api).writes_text else _PROBE_QUESTIONS
    request = build_request(settings, Exchange(_SYSTEM, _USER, schema), "dubito-preflight")
    return Attempt(request, "probe", Place(name, _PROBE, _PROBE, 0, 0, 0, "probe"))


class RunServers(Protocol):
    """The model servers that a run starts."""

    def address(self, api: Api, server: str, model: str) -> str:
        """Start the server if necessary, and return its base URL."""

    def slots(self, server: str) -> int:
        """Return how many calls can be in flight at this server."""

    def call_fields(self, server: str, game: int) -> Mapping[str, int]:
        """Return what the calls of a game add to the body of a request, which does not change its digest."""


class Waves(Protocol):
    """Sends the calls of players with `wait` together, in waves (`dubito.hooks.BatchSender`)."""

    def add(
        self, player: str, settings: ModelSettings, provider: Provider, estimator: CostEstimator, live: Asks
    ) -> Asks:
        """Add a player, and return its stage. Calls outside games do not wait, and go to `live`."""

    def check(self) -> None:
        """Raise AccountFault if a player's server does not support this."""

    def run_next(self) -> None:
        """Send the calls that wait, and return when they have ended. Raises AccountFault or Interrupted."""


@dataclass(frozen=True, slots=True)
class PipelineOptions:
    """Options for a run's calls. They cannot change a finished run's results."""

    in_flight: int
    offline: bool
    suspend: bool  # `provider_errors: suspend`
    servers: RunServers
    timing: Timing
    count_reply: Callable[[str], None] = lambda origin: None  # receives the origin of each reply
    can_wait: bool = False  # whether its games can wait for batches


class Pipeline:
    """Everything that a run's calls share: cache, budget, log, and each account's client and traffic."""

    def __init__(self, log: ModelLog, cache: ReplyCache, caps: Caps, options: PipelineOptions) -> None:
        self._log, self._cache, self._options = log, cache, options
        # An offline run makes no calls.
        caps = Caps() if options.offline else caps
        forecast = Forecast(PastGames(log.ended_games(), *log.cost_of_games()))
        reserved = log.reserved_spend()
        spent, assumed = log.spent() - reserved, log.spent(assumed=True) - reserved
        self.budget = Budget(caps, options.timing.waiting, spent, forecast, assumed, reserved)
        self._waves: Waves | None = None
        self._earlier = EarlierAttempts(log, options.suspend or log.has_begun())
        self._traffic_of_account: dict[tuple[Account, str | None], AccountTraffic] = {}
        self._probes = count(log.count_tries(_PROBE_KEY) + 1)
        self._providers: dict[Account, Provider] = {}
        self._prefixes: dict[Account, PromptPrefixes] = {}
        self._estimators: dict[str, CostEstimator] = {}  # by player
        self._requested = set[tuple[str, str, str]]()  # server, request, draw
        self._reading, self._times = PromptsInReading(), AnswerTimes()
        self._lock = Lock()

    def build_asks(self, name: str, settings: ModelSettings, price: Price | None) -> Asks:
        """Compose the stages of a player's calls. Raises UsageError if a call would need a missing API key."""
        account, options, log = build_account(settings), self._options, self._log
        if options.offline:
            asks: Asks = Offline(self._cache, log, account)
        elif settings.wait is not None:
            asks = self._build_batched(name, settings, price, settings.wait)
        else:
            asks = self._build_retry(name, settings, price)
        cached = CachedReplies(
            self._cache, account, options.timing, self._earlier, options.offline, self._requested, asks
        )
        return self.record(account.server, cached)

    def record(self, server: str, inner: Asks) -> Asks:
        """Wrap a stage so that the run records its answers."""
        options = self._options
        return Recording(self._log, server, self.budget, options.timing, self._earlier, options.count_reply, inner)

    def _build_retry(self, name: str, settings: ModelSettings, price: Price | None) -> Retry:
        account, budget, timing = build_account(settings), self.budget, self._options.timing
        tariff = Tariff(price, settings.max_output if find_protocol(settings.api).writes_text else 0)
        estimator = self._estimators[name] = CostEstimator(tariff, self._earlier_replies(name))
        provider, traffic = self._provider(account, name, settings.model), self._traffic(account, settings.model)
        with self._lock:
            prefixes = self._prefixes.setdefault(account, PromptPrefixes(timing))

        logged = LoggedCalls(self._log, budget, account, settings, estimator, timing.clock, self._times, provider)
        calls = ReadingProgress(self._reading, logged) if settings.parameters.get("return_progress") else logged
        guard = BudgetGuard(budget, tariff, calls)
        paced = BudgetQueue(budget, tariff, RateLimiter(traffic, settings.retry_after_cap, guard))
        sends = Preparation(provider, WarmUp(prefixes, paced))

        suspend = self._options.suspend
        probe = None if suspend else build_probe(name, settings)
        return Retry(sends, settings, traffic, timing.sleep, probe, self._probes, self._earlier, suspend)

    def _build_batched(self, name: str, settings: ModelSettings, price: Price | None, wait: str) -> Asks:
        options, live = self._options, self._build_retry(name, settings, price)
        if not options.can_wait:
            raise UsageError(
                f"{one_line(name)}: wait: only the games of `dubito run` can wait for a batch", hint="remove it"
            )
        if self._waves is None:
            sender = find_batch_sender(wait)
            assert sender is not None
            timing, in_flight = options.timing, options.in_flight
            self._waves = sender.open_waves(
                self._log, self.budget, timing, suspend=options.suspend, in_flight=in_flight
            )
        estimator = CostEstimator(Tariff(price, settings.max_output, batch=True), self._earlier_replies(name))
        self._estimators[name] = estimator
        # A game that waited is replayed from the recording.
        self._earlier.may_exist = True
        provider = self._provider(build_account(settings), name, settings.model)
        return self._waves.add(name, settings, provider, estimator, live)

    def check_waves(self) -> None:
        """Raise AccountFault if a player waits for batches and its server has none."""
        if self._waves is not None:
            self._waves.check()

    def run_next_wave(self) -> None:
        """Send the calls that games wait for, and return when they have ended."""
        if self._waves is not None:
            self._waves.run_next()

    def _earlier_replies(self, name: str) -> list[tuple[int, tuple[int, ...], int]]:
        return self._log.sample_replies(name) if self._earlier.may_exist else []

    def _traffic(self, account: Account, model: str) -> AccountTraffic:
        with self._lock:
            # The providers' own servers limit each model separately.
            has_limits_by_model = account.server == find_protocol(account.api).address
            key = (account, model if has_limits_by_model else None)
            if key not in self._traffic_of_account:
                in_flight = self._options.servers.slots(account.server)
                self._traffic_of_account[key] = AccountTraffic(account, in_flight, self._options.timing)
            return self._traffic_of_account[key]

    @property
    def pace_descriptions(self) -> list[str]:
        with self._lock:
            paces = [traffic.describe_pace() for traffic in self._traffic_of_account.values()]
            return [pace for pace in paces if pace is not None]

    def describe_speed(self) -> list[str]:
        """Describe how long a question and a game take, if the answers are slow."""
        seconds = self._times.mean()
        if seconds < _SLOW_SECONDS:
            return []
        per_game = format_duration(seconds * self.budget.expected_questions())
        return [f"{format_duration(seconds)} per question, about {per_game} per game"]

    def reading_progress(self) -> list[str]:
        return self._reading.describe()

    @property
    def lost_games(self) -> set[int]:
        return set().union(*(traffic.lost_games for traffic in self._traffic_of_account.values()))

    def try_again(self) -> None:
        for traffic in self._traffic_of_account.values():
            traffic.try_again()

    def close(self) -> None:
        """Reopen games lost to an outage, log the probable cost of failed calls, and close clients and cache."""
        try:
            if self.lost_games:
                self._log.reopen(self.lost_games)
            for player, estimator in self._estimators.items():
                if (rates := estimator.rates) is not None:
                    self._log.estimate_unknown_costs(player, estimator.tariff.max_output, *rates)
        finally:
            for provider in self._providers.values():
                provider.close()
            self._cache.close()

    def _provider(self, account: Account, name: str, model: str) -> Provider:
        with self._lock:
            if account not in self._providers:
                address, servers = account.server, self._options.servers
                fields = partial(servers.call_fields, account.server)
                if embedded_kind(address):
                    address = servers.address(account.api, address, model)
                key = load_key(account, name)
                self._providers[account] = Provider(account, address, key, self._options.in_flight, fields)
            return self._providers[account]


@dataclass(frozen=True, slots=True)
class Preparation:
    """A stage that builds the account's client before the call waits for its turn, since that takes a while."""

    provider: Provider
    inner: Sends

    def send(self, attempt: Attempt, number: int) -> Reply:
        self.provider.prepare()
        return self.inner.send(attempt, number)
