"""The model players of a running experiment and the pipeline they share."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, field, fields, replace
from functools import partial
from pathlib import Path
from platform import python_version
from typing import Any, Final, NamedTuple

from dubito import __version__
from dubito.experiment.call_options import CallOptions
from dubito.experiment.counts import GameCounts, count_games
from dubito.experiment.experiment import Experiment, PlayerSpec
from dubito.experiment.model_players import price_of_model
from dubito.experiment.progress import GameTracker, ModelProgress
from dubito.experiment.resolved import ModelPart, ResolvedRun
from dubito.experiment.servers import EmbeddedServers
from dubito.game import Game
from dubito.game.table import Table, step
from dubito.llm.adviser import ADVICE_ATTEMPT, adviser_name
from dubito.llm.cache import ReplyCache
from dubito.llm.decide import Conversation, Decider, DecisionLog, GameServices, Journal, UnusableAnswers
from dubito.llm.limiter import Timing, format_duration
from dubito.llm.pipeline import Pipeline, PipelineOptions
from dubito.llm.preflight import Preflight
from dubito.llm.prompts import Prompt, Sample, longest_samples
from dubito.llm.request import Asks, Place
from dubito.llm.slots import GameSlots
from dubito.llm.threads import run_until_stopped
from dubito.model_settings import is_started_by_run
from dubito.sandbox.consent import Permits
from dubito.sandbox.programs import Confinement, describe_missing, guard_processes
from dubito.seats.program import (
    ProgramPlayer,
    ProgramPool,
    find_program,
    make_confinement,
)
from dubito.seats.remote import AgentSeat
from dubito.store import folder as run_folder
from dubito.store.folder import RUNS, note_not_enforced
from dubito.store.lock import lock_folder
from dubito.store.model_log import ModelLog
from dubito.store.run_db import PROGRAM_SERVER, RunDb
from dubito.store.spend import Caps, dollars


class SampledQuestions(NamedTuple):
    """The questions of a few sampled games."""

    by_player: Mapping[str, list[Sample]]
    per_game: float  # in games with a model player
    share: float  # of games with a model player


_NO_SAMPLE: Final = SampledQuestions({}, 0, 0)
_NO_SEATS: Final[Mapping[str, AgentSeat]] = {}
_IN_FLIGHT_ADVICE: Final = "; set `in_flight` to the number of calls that it answers at once"
_MAX_SAMPLE_TURNS: Final = 100  # few games have more
_MAX_SAMPLE_GAMES: Final = 10  # enough for each model player to play one game in most experiments


@contextmanager
def model_players(
    run: ResolvedRun,
    db: RunDb,
    options: CallOptions,
    progress: ModelProgress,
    stopped: Callable[[], bool],
    first: int = 0,
    table: Callable[[int, "Models"], tuple[Table, object]] | None = None,
    *,
    can_wait: bool = False,
    seats: Mapping[str, AgentSeat] = _NO_SEATS,
) -> Iterator["Models"]:
    """Yield the model players of a run, after their preflight.

    Args:
        run: The run.
        db: The store that records every call.
        options: The options of the calls.
        progress: The figures that the progress line shows.
        stopped: Returns whether the run should stop.
        first: The number of the first preflight, for a store that several runs share.
        table: Builds the table of a game, from which the preflight takes late turns. If it is missing, the preflight
            asks only about example positions.
        can_wait: Whether games can wait for batches.
        seats: The seats of agents, by player.
    """
    experiment = run.experiment
    log, suspend, slots = ModelLog(db), experiment.provider_errors == "suspend", GameSlots()
    cache = ReplyCache(options.cache, writes=not options.offline)
    with ExitStack() as running:
        pipeline = running.enter_context(
            open_pipeline(log, cache, options, progress, stopped, suspend, run.game, slots, can_wait=can_wait)
        )
        tracker = GameTracker(log, pipeline.budget, {*log.ended_games()})
        progress.run = PipelineFigures(experiment, db, cache, pipeline, options.caps)
        deciders = dict[str, Decider]()
        for spec, model in run.models:
            model.prompt.check_rules(run.rules)
            log.save_prompt(model.prompt.digest, model.prompt.sources)
            asks = pipeline.build_asks(spec.name, model.settings, price_of_model(model.settings, options))
            player = build_decider(model, run, model.prompt, asks, log, progress.count_outcome)
            stops = options.on_unusable == "stop" and not log.has_answer(spec.name)
            deciders[spec.name] = replace(player, unusable=UnusableAnswers(spec.name, stops))
        pipeline.check_waves()
        hidden = [db.path.parent, cache.folder, run.registry.working_directory / RUNS]
        opened = open_programs(run, hidden, options.permits, progress.warn, pipeline.record, seats, stopped)
        programs = running.enter_context(opened)
        if options.preflight and not options.offline:
            sampled = _sample_questions(deciders, experiment, table) if table and deciders else _NO_SAMPLE
            if sampled.per_game:
                pipeline.budget.assume_questions(sampled.per_game)
            preflights = partial(_run_preflights, deciders, sampled, first, options, progress, experiment.games)
            run_until_stopped(preflights, stopped)
        yield Models(
            deciders, programs, lambda: pipeline.lost_games, pipeline.try_again, tracker, pipeline.run_next_wave, slots
        )


def _run_preflights(
    deciders: Mapping[str, Decider],
    sampled: SampledQuestions,
    first: int,
    options: CallOptions,
    progress: ModelProgress,
    games: int,
) -> None:
    """Run the preflight of each player. If a server is slow, say once how long the games will take."""
    warn, is_said = progress.warn if options.on_unusable == "fallback" else None, False
    for number, player in enumerate(deciders.values(), first):
        asked = sampled.by_player.get(player.name, [])
        preflight = Preflight(player.name, number, player.settings, player.asks, warn)
        preflight.run(longest_samples([*player.prompt.samples, *asked]), next(iter(asked), None))
        if preflight.slow_seconds is not None and asked and not is_said:
            is_said = True
            advice = "" if is_started_by_run(player.settings.base_url or "") else _IN_FLIGHT_ADVICE
            # How long it takes if the server reads the rules only once, or for each question.
            seconds, prompt = preflight.slow_seconds, asked[0][0]
            shortest = seconds * (1 - len(prompt.system) / len(str(prompt)))
            question, game, run = (
                f"{format_duration(shortest * count)} to {format_duration(seconds * count)}"
                for count in (1, sampled.per_game, sampled.per_game * sampled.share * games)
            )
            progress.warn(
                f"the server is slow: a question takes {question}, a game {game}, and all games {run}, depending on "
                f"what it remembers of earlier questions{advice}"
            )


@dataclass(frozen=True, slots=True)
class _SampleCollector(Decider):
    """A decider that plays the fallback and collects the questions it would have asked."""

    samples: list[Sample] = field(default_factory=list)

    def decide(
        self,
        conversation: Conversation,
        place: Place,
        turn: int,
        journal: Journal,
        fallback: Callable[[], Any],
        key: str | None = None,
    ) -> Any:
        self.samples.append((conversation.rendered, conversation.form))
        return fallback()


def _sample_questions(
    deciders: Mapping[str, Decider], experiment: Experiment, table: Callable[[int, "Models"], tuple[Table, object]]
) -> SampledQuestions:
    """Return the questions to each model player in its largest early game, with fallbacks answering instead of models.

    Prompts are shortest in the first turn, and longest in late turns.
    """
    collectors = {
        name: _SampleCollector(*(getattr(decider, each.name) for each in fields(decider)))
        for name, decider in deciders.items()
    }
    tables = list[Table]()
    for game in experiment.game_numbers[: max(_MAX_SAMPLE_GAMES, experiment.games_per_deal)]:
        with suppress(Exception):  # an error in a bot or the game, which the run will report
            tables.append(table(game, Models(collectors))[0])
    games = 0
    for largest in sorted(tables, key=lambda each: -len(each.entrants)):
        if all(collector.samples for collector in collectors.values()):
            break
        turns, games = 0, games + 1
        with suppress(Exception):
            while not largest.state.over and turns < _MAX_SAMPLE_TURNS:
                step(largest)
                turns += 1
    samples = {name: collector.samples for name, collector in collectors.items()}
    with_models = sum(any(each.name in collectors for each in table.entrants) for table in tables)
    questions = sum(map(len, samples.values()))
    return SampledQuestions(samples, questions / max(1, games), with_models / max(1, len(tables)))


@contextmanager
def open_pipeline(
    log: ModelLog,
    cache: ReplyCache,
    options: CallOptions,
    progress: ModelProgress,
    stopped: Callable[[], bool],
    suspend: bool,
    game: Game,
    slots: GameSlots | None = None,
    *,
    can_wait: bool = False,
) -> Iterator[Pipeline]:
    """Open a pipeline and the embedded servers it needs, and close them together with the cache."""
    with ExitStack() as running:
        pipeline_options = PipelineOptions(
            options.in_flight,
            options.offline,
            suspend=suspend,
            servers=EmbeddedServers(game, options.in_flight, running, progress.warn, slots or GameSlots()),
            timing=Timing(options.patience, progress.sleep, progress.waiting_for, progress.clock, stopped),
            count_reply=progress.count_reply,
            can_wait=can_wait,
        )
        # Clients are closed before their servers.
        with closing(Pipeline(log, cache, options.caps, pipeline_options)) as pipeline:
            yield pipeline


@contextmanager
def open_questions(
    folder: Path,
    identity: Mapping[str, object],
    options: CallOptions,
    progress: ModelProgress,
    game: Game,
    stopped: Callable[[], bool] = lambda: False,
) -> Iterator[tuple[ModelLog, Pipeline]]:
    """Open a folder for questions that are asked without games, and its pipeline.

    Raises UsageError if the folder is used for something else.
    """
    manifest = {"games": 0, "identity": identity, "versions": {"dubito": __version__, "python": python_version()}}
    run_folder.count_kept_games(folder, manifest)
    with (
        closing(ReplyCache(options.cache, writes=not options.offline)) as cache,
        lock_folder(folder),
        ExitStack() as stack,
    ):
        run_folder.count_kept_games(folder, manifest)
        log = ModelLog(stack.enter_context(run_folder.open_run(folder, manifest)))
        yield (
            log,
            stack.enter_context(open_pipeline(log, cache, options, progress, stopped, suspend=False, game=game)),
        )


@dataclass(frozen=True, slots=True)
class PipelineFigures:
    """Progress figures of a run, taken from its store and its pipeline."""

    experiment: Experiment
    db: RunDb
    cache: ReplyCache
    pipeline: Pipeline
    caps: Caps

    def describe_use(self) -> str:
        spent, reserved = self.pipeline.budget.spent, self.pipeline.budget.reserved
        words = [f"{spent.calls:,} call{'s' * (spent.calls != 1)}"]
        for name, write in (("calls", "{:,}".format), ("tokens", "{:,}".format), ("usd", dollars)):
            cap = self.caps.limits.get(name)
            if cap is not None:
                used, held = spent.amounts[name], reserved.amounts[name]
                words.append(f"{name}: {write(used)} spent, {write(held)} reserved, {write(cap - used - held)} left")
        if self.caps.usd is None and spent.usd:
            words.append(dollars(spent.usd))
        pipeline = self.pipeline
        return ", ".join(
            [*words, *pipeline.pace_descriptions, *pipeline.describe_speed(), *pipeline.reading_progress()]
        )

    def parts(self) -> tuple[float, float] | None:
        return self.pipeline.budget.parts(self.experiment.games)

    def game_counts(self) -> GameCounts:
        return count_games(self.db, self.experiment.first_game, self.experiment.games_per_deal)

    def oldest_reply_time(self) -> float | None:
        return self.cache.oldest


def build_decider(
    model: ModelPart,
    run: ResolvedRun,
    prompt: Prompt,
    asks: Asks,
    log: DecisionLog,
    count_outcome: Callable[[str], None],
) -> Decider:
    """Return a model player with this prompt and these stages."""
    return Decider(
        name=model.name,
        settings=model.settings,
        prompt=prompt.for_api(model.settings.api),
        fallback=model.fallback.cls,
        asks=asks,
        log=log,
        seed=run.experiment.seed,
        rules=run.rules,
        count_outcome=count_outcome,
        adviser=model.adviser,
    )


@contextmanager
def open_programs(
    run: ResolvedRun,
    hidden: Sequence[Path],
    permits: Permits,
    warn: Callable[[str], None],
    record: Callable[[str, Asks], Asks],
    seats: Mapping[str, AgentSeat],
    stopped: Callable[[], bool],
) -> Iterator[dict[str, ProgramPlayer]]:
    """Yield the players of a run that are programs or agents. No process is left afterwards, however the run ends.

    Args:
        run: The run.
        hidden: Folders that programs must not see. The first one is the run folder, which marks their processes.
        permits: What the user allows programs.
        warn: Receives a sentence about the limits that cannot be enforced here.
        record: Adds the recording of the run to the answers of a program.
        seats: The seats of agents, by player.
        stopped: Returns whether the run should stop.
    """
    home, mark, players = run.registry.working_directory, str(hidden[0].resolve()), dict[str, ProgramPlayer]()
    confinement: Confinement | None = None
    with ExitStack() as running:
        for spec in run.programs:
            pool: ProgramPool | AgentSeat
            if spec.name in seats:
                pool = seats[spec.name]
                pool.stopped = stopped
            else:
                if confinement is None:
                    running.enter_context(guard_processes(mark))
                    confinement = make_confinement(permits)
                program = find_program(spec.name, spec.settings, home)
                pool = ProgramPool(program, spec.settings["deadline"], confinement, mark, hidden)
                running.callback(pool.close)
            player = build_program(spec, run, partial(record, PROGRAM_SERVER))
            players[spec.name] = replace(
                player, pool=pool, records_faults=spec in run.advisers or run.experiment.on_bot_error != "stop"
            )
        if confinement is not None and (missing := describe_missing(confinement.enforced_limits())):
            note_not_enforced(hidden[0], missing)
            warn(f"programs run without some limits that Dubito can enforce elsewhere: {'; '.join(missing)}")
        yield players


def build_program(spec: PlayerSpec, run: ResolvedRun, record: Callable[[Asks], Asks]) -> ProgramPlayer:
    """Return a player that is a program or an agent, without anything attached that answers for it."""
    return ProgramPlayer(
        name=spec.name,
        game=run.game,
        rules=run.rules,
        seed=run.experiment.seed,
        deadline=spec.settings["deadline"],
        steady_facts=run.game.facts.steady_facts(),
        record=record,
        pool=None,
        attempt=ADVICE_ATTEMPT if spec in run.advisers else 0,
    )


@dataclass(frozen=True, slots=True)
class Models:
    """The players of a running experiment whose answers are recorded: models and programs."""

    deciders: Mapping[str, Decider]
    programs: Mapping[str, ProgramPlayer] = field(default_factory=dict)
    # Return the games that an outage made worthless, so that they are played again.
    lost_games: Callable[[], set[int]] = lambda: set()
    # Let calls through again after an outage.
    try_again: Callable[[], None] = lambda: None
    tracker: GameTracker | None = None  # None in a replay
    # Send the questions that games wait for, and return when the answers have arrived.
    next_wave: Callable[[], None] = lambda: None
    slots: GameSlots = field(default_factory=GameSlots)  # of the servers that the run started

    def service(self, name: str, journal: Journal, seats: int) -> object:
        if name in self.deciders:
            return GameServices(self.deciders[name], journal, adviser=self.service(adviser_name(name), journal, seats))
        return self.programs[name].open_game(seats) if name in self.programs else None

    def needs_slot(self, name: str) -> bool:
        """Return whether a server that the run started answers for this player."""
        return name in self.deciders and is_started_by_run(self.deciders[name].settings.base_url or "")
