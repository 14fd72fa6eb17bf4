"""The model players of an experiment: checked before the start, and given a way to ask during it."""

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dubito.errors import UsageError, one_line
from dubito.experiment.config import Experiment, PlayerSpec
from dubito.llm.budget import Budget, Caps
from dubito.llm.cache import ReplyCache
from dubito.llm.decider import GameServices, Journal, ModelPlayer
from dubito.llm.pipeline import Options, Pipeline
from dubito.llm.prompts import load_prompt
from dubito.llm.settings import ModelSettings, account_of, check_settings, key_of
from dubito.player import FiveNodes, PlayerAI
from dubito.registry import Registry
from dubito.store.model_log import ModelLog
from dubito.store.run_db import RunDb

if TYPE_CHECKING:
    from dubito.house.server import House


@dataclass(frozen=True, slots=True)
class CallOptions:
    """What a user says of a run's calls; nothing here changes a completed run's results."""

    in_flight: int
    cache: Path
    offline: bool
    calls: int | None  # the budget
    working_directory: Path


@dataclass(slots=True)
class Watch:
    """What the progress line shows of the models; threads count under a lock."""

    clock: Callable[[], float] = time.monotonic
    outcomes: Counter[str] = field(default_factory=Counter)
    replies: Counter[str] = field(default_factory=Counter)  # by origin
    waiting: Counter[str] = field(default_factory=Counter)
    calls: Callable[[], int] = lambda: 0
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

    def sleep(self, seconds: float, why: str) -> None:
        """Wait before another try, visibly."""
        with self._lock:
            self.waiting[why] += 1
        time.sleep(seconds)
        with self._lock:
            self.waiting[why] -= 1

    def sentence(self) -> str:
        """Decisions and their speed, shares of cache and fallbacks, calls, and who waits for whom and why."""
        with self._lock:
            decisions = sum(self.outcomes.values())
            fallbacks = sum(count for outcome, count in self.outcomes.items() if outcome.startswith("fallback"))
            replies, cached = sum(self.replies.values()), self.replies["cache"]
            waiting = "".join(f", {count} waiting {why}" for why, count in self.waiting.items() if count)
            seconds = self.clock() - self._start if self._start is not None else 0.0
        speed = decisions / max(seconds, 1e-3)
        shares = f"cache {_percent(cached, replies)}, fallback {_percent(fallbacks, decisions)}"
        return f"{decisions:,} decisions, {speed:,.0f}/s, {shares}, {self.calls():,} calls{waiting}"


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
        fallback_of(spec.name, settings, registry)
        if not options.offline:
            key_of(account_of(settings), spec.name)
        source = registry.find(settings.fallback).digest
        return replace(spec, settings=settings.model_dump(), prompt=prompt.digest, fallback=source)

    complete = replace(
        experiment,
        field=tuple(map(checked, experiment.field)),
        contenders=tuple(map(checked, experiment.contenders)),
    )
    if model_specs(complete, registry):
        ReplyCache(options.cache).close()  # refused here rather than after the start
    return complete


def fallback_of(name: str, settings: ModelSettings, registry: Registry) -> type[PlayerAI]:
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
) -> Iterator["Models"]:
    """The model players, ready to be asked, while the run lasts."""
    house = _Houses()
    cache = ReplyCache(options.cache)
    log = ModelLog(db)
    how = Options(options.in_flight, options.offline, house.address, watch.sleep, stopped, watch.replied)
    pipeline = Pipeline(log, cache, Budget(Caps(options.calls)), how)
    watch.calls = lambda: pipeline.budget.calls
    try:
        yield Models(
            {
                spec.name: _player(spec, experiment, registry, pipeline, log, options, watch.count)
                for spec in model_specs(experiment, registry)
            },
            pipeline,
        )
    finally:
        pipeline.close()
        house.close()


def _player(
    spec: PlayerSpec,
    experiment: Experiment,
    registry: Registry,
    pipeline: Pipeline,
    log: ModelLog,
    options: CallOptions,
    counted: Callable[[str], None],
) -> ModelPlayer:
    settings = settings_of(spec, registry)
    return ModelPlayer(
        name=spec.name,
        settings=settings,
        prompt=load_prompt(settings.prompt, options.working_directory),
        fallback=fallback_of(spec.name, settings, registry),
        ask=pipeline.asker(spec.name, settings),
        log=log,
        seed=experiment.seed,
        rules=experiment.rules,
        counted=counted,
    )


@dataclass(frozen=True, slots=True)
class Models:
    """The model players of a running experiment."""

    players: Mapping[str, ModelPlayer]
    pipeline: Pipeline

    def journal(self) -> Journal:
        """A new game's."""
        return Journal()

    def services(self, names: list[str], journal: Journal) -> list[object]:
        """What each seat of a game is given; None for hand-written bots."""
        return [GameServices(self.players[name], journal) if name in self.players else None for name in names]


class _Houses:
    """The embedded server, started when first needed."""

    def __init__(self) -> None:
        self._house: House | None = None
        self._lock = threading.Lock()

    def address(self, api: str) -> str:
        """The base URL for an SDK of this protocol."""
        with self._lock:
            if self._house is None:
                from dubito.house.server import House  # late: most runs need no server

                self._house = House()
                self._house.__enter__()
            return self._house.anthropic_base_url if api == "messages" else self._house.openai_base_url

    def close(self) -> None:
        """Stop it, if it runs."""
        if self._house is not None:
            self._house.__exit__(None, None, None)
