"""A run as its folder has it, ready to be played again."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Final, get_args

from dubito import __version__
from dubito.errors import UsageError, one_line
from dubito.experiment.chunk import ChunkPlayer
from dubito.experiment.experiment import Experiment, PlayerSpec
from dubito.experiment.model_checks import model_specs, settings_of
from dubito.experiment.stored_run import read_run
from dubito.game import Lie, State
from dubito.game.find import Registry
from dubito.game.record import Forfeit, output_of, play
from dubito.game.streams import DealStreams
from dubito.game.table import Table, step
from dubito.llm.decide import Journal
from dubito.llm.tape import HearReply, ReplayTape
from dubito.stats.players import cluster
from dubito.stats.rates import Rate, Sums, clustered_rate
from dubito.stats.tally import outcome_in, outcome_of, record_in
from dubito.store.model_log import ModelLog
from dubito.store.run_db import RunDb

if TYPE_CHECKING:  # a run of hand-written bots needs no templates, retries and clients
    from dubito.experiment.models import Models
    from dubito.llm.prompts import Prompt

LIES: Final[tuple[Lie, ...]] = get_args(Lie)
LIES_COUNTED: Final = 1_000  # games of a run in which lies are counted, since each has to be played again


@dataclass(frozen=True)
class RunToReplay:
    """A run as its folder has it, ready to be played again."""

    folder: Path
    db: RunDb
    experiment: Experiment
    registry: Registry
    mismatches: list[str] = field(default_factory=list)

    @cached_property
    def has_bots(self) -> bool:
        """Whether its games can be played again with the very bots that played: with models, from their records."""
        experiment, find = self.experiment, self.registry.find
        if model_specs(experiment, self.registry):
            return True
        return all(find(player.bot).digest == player.source for player in experiment.players)

    @cached_property
    def player(self) -> ChunkPlayer:
        """Who plays it."""
        return ChunkPlayer(self.experiment, self.registry)

    def models(self, tape: ReplayTape, as_kept: bool = False) -> "Models | None":
        """The model players, who ask the tape; None in a run of hand-written bots.

        `as_kept`: with the prompts that the run kept, since those on disk may be newer.
        """
        experiment, registry = self.experiment, self.registry
        specs = model_specs(experiment, registry)
        if not specs:
            return None
        from dubito.experiment.models import Models, decider_of

        players = {}
        for spec in specs:
            prompt = self._prompt(spec, as_kept)
            players[spec.name] = decider_of(spec, experiment, registry, prompt, tape.ask, tape, lambda outcome: None)
        return Models(players)

    def _prompt(self, spec: PlayerSpec, as_kept: bool) -> "Prompt":
        """The prompt as the run kept it, if wanted or where there is none here; else as it stands now."""
        from dubito.llm.prompts import Prompt, load_prompt

        name, there = settings_of(spec, self.registry).prompt, ModelLog(self.db).prompt(spec.prompt)
        try:
            prompt = None if as_kept else load_prompt(name, self.registry.working_directory, self.registry.game)
        except UsageError:
            if not there:
                raise
            prompt = None
        if prompt is None:
            return Prompt(Path(name), there, self.registry.game)
        if prompt.digest != spec.prompt:
            changed = sorted(name for name in {*there, *prompt.sources} if there.get(name) != prompt.sources.get(name))
            self.mismatches.append(f"the prompt of {one_line(spec.name)} was changed since: {', '.join(changed)}")
        return prompt


def run_to_replay(folder: Path, registry: Registry) -> RunToReplay:
    """The run in this folder; raises UsageError if it cannot be played again here."""
    stored = read_run(folder, registry.working_directory)
    stored.db.check(stored.first_game)
    kept = RunToReplay(folder, stored.db, stored.experiment(), registry)
    made_with = stored.manifest.versions.get("dubito")
    if made_with != __version__:
        kept.mismatches.append(f"the run was made by dubito {made_with}, this is {__version__}")
    for spec in kept.experiment.players:
        if registry.find(spec.bot).digest != spec.source:
            kept.mismatches.append(f"the file of {spec.bot} was changed since")
        fallback = spec.settings.get("fallback")
        if spec.fallback and registry.find(str(fallback)).digest != spec.fallback:
            kept.mismatches.append(f"the file of {fallback}, fallback of {one_line(spec.name)}, was changed since")
    return kept


@dataclass(frozen=True, slots=True)
class ToldLie:
    """A move that deceived."""

    seat: int
    move: int  # which of its seat's own, from 1
    lie: Lie


@dataclass(frozen=True, slots=True)
class LieCounts:
    """Lies over the first games of a run, by player and kind, summed deal by deal: y lies of m moves that can be."""

    games: int
    sums: Mapping[tuple[int, Lie], Sums]
    meant: Mapping[str, int]  # by model player: how often it said that it lies, where a node asks just that

    def plays(self, player: int) -> int:
        """How many moves of a player can be lies."""
        return self.sums[player, LIES[0]].m

    def count(self, player: int, lie: Lie) -> int:
        """How many such lies a player told."""
        return self.sums[player, lie].y

    def share(self, player: int, lie: Lie) -> Rate:
        """Of the moves of a player that can be lies, those that were such."""
        return clustered_rate(*self.sums[player, lie])


def lies_told(kept: RunToReplay, game: int) -> list[ToldLie]:
    """The lies of a game in their order: with models from its record, else played again from its seed.

    Raises UsageError if it is not the game that the run keeps.
    """
    spec, experiment = kept.registry.game, kept.experiment
    assert spec.lie is not None
    ((row, record),) = kept.db.read("SELECT outcome, record FROM games WHERE game = ?", (game,))
    outcome = outcome_in(row, spec.results, len(experiment.players), kept.db.path)
    streams = DealStreams(experiment.seed, game // experiment.games_per_deal)
    state = spec.deal(spec.rules_of_run(experiment.rules), len(outcome.seats), streams.deck())
    ended: State = state
    if record is None:
        table, _ = kept.player.table_of(game, None, Journal())
        ended, outputs = table.game, []
        while not ended.over:
            outputs.append(step(table, announce=True)[0])
    else:
        outputs = [output_of(spec, output) for output in record_in(record, kept.db.path)["outputs"]]
    told, moves = list[ToldLie](), Counter[int]()
    for output in outputs:
        moves[state.seat] += 1
        if output is not None and not isinstance(output, Forfeit) and (lie := spec.lie(state, output)):
            told.append(ToldLie(state.seat, moves[state.seat], lie))
        if output is not None:
            play(state, output)
    came_to = outcome_of(ended, outcome.seats, outcome.contender_seat, [own[-1] for own in outcome.counts])
    if came_to.pack() != row:
        raise UsageError(f"game {game} of {one_line(str(kept.folder))} is now played differently")
    return told


def count_lies(kept: RunToReplay, most: int = LIES_COUNTED) -> LieCounts:
    """The lies of at most so many games, in whole deals; raises UsageError if a bot would now play otherwise."""
    results, experiment = kept.registry.game.results, kept.experiment
    habit = results.habit(results.lies)
    plays = results.counts.index(habit.of)
    most = min(most, kept.db.game_count())
    games = experiment.game_numbers[: most // experiment.games_per_deal * experiment.games_per_deal]
    sums = {(player, lie): [0] * 6 for player in range(len(experiment.players)) for lie in LIES}
    for first in range(games.start, games.stop, experiment.games_per_deal):
        own = Counter[tuple[int, str]]()
        for game in range(first, first + experiment.games_per_deal):
            ((row,),) = kept.db.read("SELECT outcome FROM games WHERE game = ?", (game,))
            outcome = outcome_in(row, results, len(experiment.players), kept.db.path)
            for seat, player in enumerate(outcome.seats):
                own[player, habit.of] += outcome.counts[seat][plays]
            own.update((outcome.seats[one.seat], one.lie) for one in lies_told(kept, game))
        for player, lie in sums:
            of_deal = cluster(own[player, habit.of], own[player, lie])
            sums[player, lie] = [a + b for a, b in zip(sums[player, lie], of_deal, strict=True)]
    meant = ModelLog(kept.db).yeses(results.lie_nodes, games.stop)
    return LieCounts(len(games), {key: Sums(*values) for key, values in sums.items()}, meant)


def lies_of(folder: Path, registry: Registry) -> LieCounts | None:
    """The lies of the run in this folder; None in a game without, or where bots would now play otherwise."""
    if registry.game.lie is None:
        return None
    kept = run_to_replay(folder, registry)
    with kept.db:
        return count_lies(kept) if kept.has_bots else None


def table_of(kept: RunToReplay, game: int, heard: HearReply) -> tuple[Table, list[str]]:
    """The table of one game before its first turn, and who sits there; `heard` is told each question's end.

    Raises UsageError if the run does not keep that game.
    """
    games = kept.experiment.game_numbers
    if game not in games:
        raise UsageError(f"{kept.folder} keeps the games {games.start} to {games.stop - 1}: there is no game {game}")
    models = kept.models(ReplayTape(ModelLog(kept.db), heard))
    table, lineup = kept.player.table_of(game, models, Journal())
    return table, [kept.experiment.players[player].name for player in lineup.seats]
