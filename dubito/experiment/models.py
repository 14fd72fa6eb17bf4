"""The model players of an experiment: checked before the start, and given a way to ask during it."""

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from dubito.errors import UsageError, nearest_first, one_line
from dubito.experiment.config import Experiment, PlayerSpec
from dubito.experiment.course import Course, Standing
from dubito.llm.budget import Budget, Caps
from dubito.llm.cache import ReplyCache
from dubito.llm.decider import Decider, Decisions, GameServices, Journal
from dubito.llm.failures import FALLBACK_OUTCOME
from dubito.llm.gate import PATIENCE, Timing
from dubito.llm.pipeline import Options, Pipeline
from dubito.llm.preflight import preflight
from dubito.llm.prices import Price, charged_by_call, dollars, find_price, outdated, unpriced
from dubito.llm.prompts import Prompt, load_prompt
from dubito.llm.retry import MakeAttempt
from dubito.llm.settings import ModelSettings, account_of, check_settings, faults_of, is_house, key_of
from dubito.llm.wire import Protocol
from dubito.player import FiveNodes, PlayerAI
from dubito.registry import Registry
from dubito.store.model_log import ModelLog
from dubito.store.run_db import RunDb

if TYPE_CHECKING:
    from dubito.house.server import House

_NO_CAPS: Final = Caps()
_LOGGED: Final = 60.0  # seconds for which a wait that goes on is not logged again


@dataclass(frozen=True, slots=True)
class CallOptions:
    """What a user says of a run's calls; nothing here changes a completed run's results."""

    in_flight: int
    cache: Path
    offline: bool
    working_directory: Path
    caps: Caps = _NO_CAPS  # the budget
    prices: Mapping[str, Price] = field(default_factory=dict)  # the config's own, by model
    preflight: bool = True
    patience: float = PATIENCE


@dataclass(slots=True)
class Watch:
    """What the progress line shows of the models; threads count under a lock."""

    clock: Callable[[], float] = time.monotonic
    outcomes: Counter[str] = field(default_factory=Counter)
    replies: Counter[str] = field(default_factory=Counter)  # by origin
    waiting: Counter[str] = field(default_factory=Counter)
    logged: dict[str, float] = field(default_factory=dict)  # when it was last logged that somebody waits for this
    used: Callable[[], str] = lambda: ""  # of the budget, in words
    standing: Callable[[], Standing | None] = lambda: None
    log: Callable[..., None] = lambda event, **facts: None  # the run's log
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _start: float | None = None

    def count(self, outcome: str) -> None:
        """A decision ended so."""
        with self._lock:
            self._start = self.clock() if self._start is None else self._start
            self.outcomes[outcome] += 1

    def replied(self, origin: str) -> None:
        """A reply came from there."""
        with self._lock:
            self.replies[origin] += 1

    @property
    def new_replies(self) -> int:
        """How many replies this process had that did not stand on the tape."""
        return self.replies.total() - self.replies["tape"]

    def sleep(self, seconds: float, why: str) -> None:
        """Wait before another try, visibly."""
        with self.waits(why):
            time.sleep(seconds)

    def waits_for(self, why: str) -> None:
        """Somebody begins to wait."""
        with self._lock:
            self.waiting[why] += 1
            now = self.clock()
            news = now - self.logged.get(why, -_LOGGED) >= _LOGGED
            if news:
                self.logged[why] = now
        if news:
            self.log("waits", why=why)

    def waited_for(self, why: str) -> None:
        """Somebody goes on."""
        with self._lock:
            self.waiting[why] -= 1

    @contextmanager
    def waits(self, why: str) -> Iterator[None]:
        """A time of waiting, for the progress line."""
        self.waits_for(why)
        try:
            yield
        finally:
            self.waited_for(why)

    def sentence(self) -> str:
        """All figures in one line."""
        return ", ".join(self.figures())

    def figures(self) -> list[str]:
        """How it goes, the most important first: fallbacks, who waits for what, calls, speed, the cache, how far."""
        with self._lock:
            decisions = sum(self.outcomes.values())
            failed = {name: count for name, count in self.outcomes.items() if name.startswith(FALLBACK_OUTCOME)}
            replies, cached = sum(self.replies.values()), self.replies["cache"]
            waiting = [f"{count} waiting {why}" for why, count in self.waiting.items() if count]
            seconds = self.clock() - self._start if self._start is not None else 0.0
        speed = decisions / max(seconds, 1e-3)
        causes = ", ".join(f"{name.partition(':')[2]} {_percent(count, decisions)}" for name, count in failed.items())
        fallback = f"fallback {_percent(sum(failed.values()), decisions)}" + (f" ({causes})" if causes else "")
        course = f"{decisions:,} decisions, {speed:,.0f}/s, cache {_percent(cached, replies)}"
        return [part for part in (fallback, *waiting, self.used(), course, str(self.standing() or "")) if part]


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole if whole else 0:.1f} %"


def model_specs(experiment: Experiment, registry: Registry) -> list[PlayerSpec]:
    """The players that ask a model."""
    return [player for player in experiment.players if registry.find(player.bot).cls.is_model]


def settings_of(spec: PlayerSpec, registry: Registry) -> ModelSettings:
    """A model player's settings, checked, its class's defaults under them."""
    defaults: Mapping[str, Any] = getattr(registry.find(spec.bot).cls, "defaults", {})
    return check_settings(spec.name, {**defaults, **spec.settings})


def checked_models(experiment: Experiment, registry: Registry, options: CallOptions) -> Experiment:
    """The experiment with its model players' settings complete and their prompts and fallbacks identified.

    Raises UsageError for everything that can be wrong before a call is made.
    """

    def checked(spec: PlayerSpec) -> PlayerSpec:
        if not registry.find(spec.bot).cls.is_model:
            return spec
        settings = settings_of(spec, registry)
        prompt = load_prompt(settings.prompt, options.working_directory)
        _fallback_of(spec.name, settings, registry)
        if not options.offline:
            key_of(account_of(settings), spec.name)
        check_house(spec.name, settings)
        if options.caps.usd is not None:
            _check_price(spec.name, settings, options)
        source = registry.find(settings.fallback).digest
        return replace(spec, settings=settings.model_dump(), prompt=prompt.digest, fallback=source)

    return replace(
        experiment,
        field=tuple(map(checked, experiment.field)),
        contenders=tuple(map(checked, experiment.contenders)),
    )


def _check_price(name: str, settings: ModelSettings, options: CallOptions) -> None:
    if price_of_model(settings, options) is None:
        raise UsageError(
            f"{one_line(name)}: budget.usd needs a price of {one_line(settings.model)!r} at "
            f"{account_of(settings).server}, and there is none: say it in `prices`, or take budget.usd away"
        )
    check_surcharges(name, settings, options)


def check_surcharges(name: str, settings: ModelSettings, options: CallOptions) -> None:
    """Raise UsageError if a player's parameters ask for what costs more than its price says: no budget would hold."""
    price = price_of_model(settings, options)
    if price is None or not price.worst(1, 1):  # what costs nothing costs nothing in any mode
        return
    if (called := charged_by_call(settings.parameters)) is not None:
        raise UsageError(
            f"{one_line(name)}: parameters.{called}: the server charges for its tools by the call, which no price here "
            "says: take the parameter away, or budget.usd"
        )
    dear, model = unpriced(settings.parameters), one_line(settings.model)
    if dear is not None and settings.model not in options.prices:
        raise UsageError(
            f"{one_line(name)}: parameters.{one_line(dear)}: it costs more than the list price of {model!r}: say in "
            f"`prices.{model}` what it costs so, or take the parameter away, or budget.usd"
        )


def check_cache(experiment: Experiment, registry: Registry, options: CallOptions) -> str | None:
    """What a user should know of the cache before the start; raises UsageError if it is needed and cannot be used."""
    if not model_specs(experiment, registry):
        return None
    with closing(ReplyCache(options.cache)) as cache:
        return cache.unshared


def check_house(name: str, settings: ModelSettings) -> None:
    """Raise UsageError if the house has not the model that it is to be asked for, or not the faults."""
    if not settings.base_url or not is_house(settings.base_url):
        return
    from dubito.house.policy import MODELS  # late: most runs need no server

    if settings.model not in MODELS:
        known = ", ".join(nearest_first(settings.model, MODELS))
        raise UsageError(f"{one_line(name)}: the house has no model {one_line(settings.model, 80)!r}; it has {known}")
    faults = faults_of(settings.base_url)
    if faults:
        from dubito.house.faults import Faults  # late: most runs need no server

        try:
            Faults.parse(faults)
        except UsageError as error:
            raise UsageError(f"{one_line(name)}: base_url: {error}") from None


def _fallback_of(name: str, settings: ModelSettings, registry: Registry) -> type[PlayerAI]:
    """The fallback's class; raises UsageError unless it is a hand-written bot that answers A-E."""
    cls = registry.find(settings.fallback).cls
    if cls.is_model or not issubclass(cls, FiveNodes) or cls.play is not FiveNodes.play:
        raise UsageError(
            f"{one_line(name)}: fallback: {settings.fallback} does not answer the nodes A-E one by one: "
            "choose a hand-written bot that does, such as RandomBoi"
        )
    return cls


@contextmanager
def serving(
    experiment: Experiment,
    registry: Registry,
    db: RunDb,
    options: CallOptions,
    watch: Watch,
    stopped: Callable[[], bool],
    first: int = 0,
) -> Iterator["Models"]:
    """The model players, ready to be asked, while the run lasts.

    `first` is the number of the first one's preflight, for a store that serves more than one run.
    """
    log, suspend = ModelLog(db), experiment.provider_errors == "suspend"
    with asking(log, ReplyCache(options.cache), options, watch, stopped, suspend) as pipeline:
        course = Course(log, pipeline.budget, experiment.games_per_deal)
        watch.used = lambda: ", ".join([_in_words(pipeline.budget, options.caps), *pipeline.paced])
        watch.standing = lambda: course.standing(watch.new_replies)
        players = {
            spec.name: _player(spec, experiment, registry, pipeline, log, options, watch.count)
            for spec in model_specs(experiment, registry)
        }
        if options.preflight and not options.offline:
            for number, player in enumerate(players.values(), first):
                preflight(player.name, number, player.settings, player.prompt.fields, player.ask)
        yield Models(players, lambda: pipeline.put_back, pipeline.try_again, course)


@contextmanager
def asking(
    log: ModelLog, cache: ReplyCache, options: CallOptions, watch: Watch, stopped: Callable[[], bool], suspend: bool
) -> Iterator[Pipeline]:
    """A pipeline and the embedded servers that it may need, closed at the end with the cache."""
    houses = _Houses()
    pipeline = Pipeline(
        log,
        cache,
        options.caps,
        Options(
            options.in_flight,
            options.offline,
            suspend=suspend,
            house_address=houses.address,
            timing=Timing(options.patience, watch.sleep, watch.waits, watch.clock, stopped),
            counted=watch.replied,
        ),
    )
    try:
        yield pipeline
    finally:
        pipeline.close()
        houses.close()


def _in_words(budget: Budget, caps: Caps) -> str:
    """The calls, and of what is capped what is spent, reserved and left."""
    spent, reserved = budget.spent, budget.reserved
    words = [f"{spent.calls:,} calls"]
    for name, say in (("calls", "{:,}".format), ("tokens", "{:,}".format), ("usd", dollars)):
        cap = getattr(caps, name)
        if cap is not None:
            used, held = getattr(spent, name), getattr(reserved, name)
            words.append(f"{name}: {say(used)} spent, {say(held)} reserved, {say(cap - used - held)} left")
    return ", ".join(words)


def price_of_model(settings: ModelSettings, options: CallOptions) -> Price | None:
    """The price of a player's model at its server; None if nobody said it."""
    return find_price(account_of(settings).server, settings.model, options.prices)


def outdated_prices(experiment: Experiment, registry: Registry, options: CallOptions, today: date) -> list[str]:
    """A sentence for each provider whose list prices are in use and were read too long ago."""
    every = [settings_of(spec, registry) for spec in model_specs(experiment, registry)]
    said = [outdated(account_of(one).server, one.model, options.prices, today) for one in every]
    return sorted({sentence for sentence in said if sentence})


def _player(
    spec: PlayerSpec,
    experiment: Experiment,
    registry: Registry,
    pipeline: Pipeline,
    log: ModelLog,
    options: CallOptions,
    counted: Callable[[str], None],
) -> Decider:
    settings = settings_of(spec, registry)
    prompt = load_prompt(settings.prompt, options.working_directory)
    log.keep_prompt(prompt.digest, prompt.sources)
    ask = pipeline.asker(spec.name, settings, price_of_model(settings, options))
    return model_player(spec, experiment, registry, prompt, ask, log, counted)


def model_player(
    spec: PlayerSpec,
    experiment: Experiment,
    registry: Registry,
    prompt: Prompt,
    ask: MakeAttempt,
    log: Decisions,
    counted: Callable[[str], None],
) -> Decider:
    """A model player with this prompt and this way to ask."""
    settings = settings_of(spec, registry)
    return Decider(
        name=spec.name,
        settings=settings,
        prompt=prompt,
        fallback=_fallback_of(spec.name, settings, registry),
        ask=ask,
        log=log,
        seed=experiment.seed,
        rules=experiment.rules,
        counted=counted,
    )


@dataclass(frozen=True, slots=True)
class Models:
    """The model players of a running experiment."""

    players: Mapping[str, Decider]
    put_back: Callable[[], set[int]] = lambda: set()  # games that an outage takes back
    try_again: Callable[[], None] = lambda: None  # ask again after an outage
    course: Course | None = None  # None: they are only played again

    def journal(self) -> Journal:
        """A new game's."""
        return Journal()

    def services(self, names: list[str], journal: Journal) -> list[object]:
        """What each seat of a game is given; None for hand-written bots."""
        return [GameServices(self.players[name], journal) if name in self.players else None for name in names]


class _Houses:
    """The embedded servers, each started when first needed: one, or one for each kind of faults."""

    def __init__(self) -> None:
        self._houses: dict[str, House] = {}
        self._lock = threading.Lock()

    def address(self, api: Protocol, server: str) -> str:
        """The base URL for an SDK of this protocol; raises UsageError for faults that there are not."""
        from dubito.house.faults import Faults  # late: most runs need no server
        from dubito.house.server import House

        faults = faults_of(server)
        with self._lock:
            if server not in self._houses:
                self._houses[server] = House(faults=Faults.parse(faults) if faults else None).__enter__()
            return self._houses[server].base_url(api)

    def close(self) -> None:
        """Stop those that run."""
        for house in self._houses.values():
            house.__exit__(None, None, None)
