"""A run as its folder has it, ready to be played again."""

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from dubito import __version__
from dubito.errors import UsageError, one_line
from dubito.experiment.chunk import ChunkPlayer
from dubito.experiment.experiment import Experiment, PlayerSpec
from dubito.experiment.model_checks import model_specs, settings_of
from dubito.experiment.stored_run import read_run
from dubito.handlers import Table
from dubito.llm.decider import Journal
from dubito.llm.replay_tape import HearReply, ReplayTape
from dubito.registry import Registry
from dubito.store.model_log import ModelLog
from dubito.store.run_db import RunDb

if TYPE_CHECKING:  # a run of hand-written bots needs no templates, retries and clients
    from dubito.experiment.models import Models
    from dubito.llm.prompts import Prompt


@dataclass(frozen=True)
class RunToReplay:
    """A run as its folder has it, ready to be played again."""

    folder: Path
    db: RunDb
    experiment: Experiment
    registry: Registry
    mismatches: list[str] = field(default_factory=list)

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
