"""A run folder, read: whose run it is, what it keeps, and what its models were asked.

Report, comparison, estimate and replay all begin here. A manifest may hold keys of other versions.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, cast

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from dubito import __version__
from dubito.errors import RunStopped, UsageError, one_line
from dubito.experiment.experiment import (
    Count,
    Experiment,
    OnBotError,
    PlayerSpec,
    Shard,
    contender_seats,
    kind_of_player,
    labelled_by,
)
from dubito.files import fault
from dubito.game import Game, PlayerKind
from dubito.game.find import DUBITO, Registry, find_bots, find_game
from dubito.stats.ranking import Contender, contenders_of
from dubito.stats.tally import Outcome, Tally, kept_tally, outcome_in
from dubito.store.folder import DATABASE, MANIFEST, read_manifest
from dubito.store.model_log import ModelLog, PlayerLog
from dubito.store.run_db import RunDb

if TYPE_CHECKING:
    from dubito.experiment.models import Models
    from dubito.experiment.play import ChunkPlayer
    from dubito.llm.prompts import Prompt
    from dubito.llm.tape import ReplayTape

_MOST_SEATS: Final = 1000  # of a table in a file


class _Stated(BaseModel):
    """A part of a manifest."""

    model_config = ConfigDict(extra="allow", strict=True, frozen=True)


class Identity(_Stated):
    """What can change a run's results."""

    game: str = DUBITO
    seed: int
    table_sizes: list[Annotated[int, Field(ge=1, le=_MOST_SEATS)]] = Field(min_length=1)
    bots: list[PlayerSpec] = Field(min_length=1)
    contenders: list[PlayerSpec]
    rules: dict[str, Any]
    on_bot_error: str
    shard: Shard | None = None


class Manifest(_Stated):
    """What `manifest.yaml` says of a run."""

    games: Count
    identity: Identity
    versions: dict[str, Any] = {}


_PLAYER: Final = TypeAdapter(PlayerSpec)


def kinds_in(manifest: Mapping[str, Any]) -> dict[str, PlayerKind]:
    """What decides for each player that a manifest names, of a run or of a trial of prompts; raises UsageError."""
    every = manifest["identity"]
    entries = [one for key in ("bots", "contenders", "prompts") for one in every.get(key) or ()]
    try:
        return {player.name: kind_of_player(player) for player in map(_PLAYER.validate_python, entries)}
    except ValidationError as error:
        raise UsageError(f"{MANIFEST} is damaged: {fault(error)}") from None


@dataclass(frozen=True)
class StoredRun:
    """A run, open to be read."""

    folder: Path
    manifest: Manifest
    db: RunDb
    home: Path  # where a game of the user's own is looked for

    def __str__(self) -> str:
        return one_line(str(self.folder))

    @property
    def identity(self) -> Identity:
        return self.manifest.identity

    @cached_property
    def game(self) -> Game:
        """The game that was played; raises UsageError if it is not to be found here."""
        return find_game(self.identity.game, self.home)

    @property
    def seed(self) -> int:
        return self.identity.seed

    @property
    def games(self) -> int:
        return self.manifest.games

    @property
    def first_game(self) -> int:
        """The number of its first game: 0 but for a shard."""
        return self.identity.shard.first_game if self.identity.shard else 0

    @cached_property
    def kept(self) -> int:
        return self.db.game_count()

    @property
    def games_per_deal(self) -> int:
        return max(1, len(self.identity.contenders) * self.contender_seats)

    @property
    def contender_seats(self) -> int:
        return contender_seats(self.identity.table_sizes)

    @property
    def deals(self) -> int:
        """How many deals are kept, each with a game of every contender."""
        return self.kept // self.games_per_deal

    @cached_property
    def players(self) -> list[PlayerSpec]:
        """Field, then the contenders that are not in it: the order of the tally's keys."""
        field, contenders = self.identity.bots, self.identity.contenders
        return field + [player for player in contenders if player not in field]

    @cached_property
    def names(self) -> list[str]:
        return [player.name for player in self.players]

    @cached_property
    def kinds(self) -> dict[str, PlayerKind]:
        return {player.name: kind_of_player(player) for player in self.players}

    @property
    def label(self) -> Callable[[str], str]:
        return labelled_by(self.kinds)

    @cached_property
    def contenders(self) -> list[str]:
        return [player.name for player in self.identity.contenders]

    @cached_property
    def tally(self) -> Tally:
        """The sums over all games; raises UsageError if they are damaged."""
        return kept_tally(self.db, self.game.results)

    @cached_property
    def results_digest(self) -> str:
        return self.db.results_digest()

    @cached_property
    def models(self) -> dict[str, PlayerLog]:
        """What each model player's decisions add up to, by name."""
        log = ModelLog(self.db)
        asked = set(log.players())
        return {name: log.player(name) for name in self.names if name in asked}

    def outcome(self, row: bytes) -> Outcome:
        """A game as it ended, of its packed row; raises UsageError if that is none which this run writes."""
        return outcome_in(row, self.game.results, len(self.players), self.folder / DATABASE)

    def compared(self, run: int = 0) -> list[Contender]:
        """The contenders as they are compared, as those of the `run`th of several runs."""
        return contenders_of(self.contenders, self.models, self.kinds, run, self.contender_seats)

    @cached_property
    def experiment(self) -> Experiment:
        """The experiment of the games that are kept; raises UsageError if the manifest does not tell all of it."""
        identity, more = self.identity, self.identity.model_extra or {}
        try:
            return Experiment(
                games=self.kept,
                table_sizes=tuple(identity.table_sizes),
                seed=identity.seed,
                field=tuple(identity.bots),
                contenders=tuple(identity.contenders),
                rules=self.game.rules(**identity.rules).model_dump(),
                on_bot_error=cast(OnBotError, identity.on_bot_error),
                provider_errors=more["provider_errors"],
                bot_deadline=more.get("bot_deadline"),
                game=self.game.name,
                game_source=more.get("game_source", ""),
                lineup=self.game.lineup,
                shard=identity.shard,
            )
        except (KeyError, TypeError, ValueError):  # of which a ValidationError is one
            raise UsageError(f"{self.folder / MANIFEST} is damaged: its identity cannot be read") from None

    @cached_property
    def registry(self) -> Registry:
        """The bots of its game, the user's own from `home`."""
        return find_bots(self.home, self.identity.game)

    @cached_property
    def mismatches(self) -> list[str]:
        """What is not as it was when the run was made, a sentence each; prompts are added as they are read."""
        found, made_with = [], self.manifest.versions.get("dubito")
        if made_with != __version__:
            found.append(f"the run was made by dubito {made_with}, this is {__version__}")
        for spec in self.experiment.players:
            if self.registry.find(spec.bot).digest != spec.source:
                found.append(f"the file of {spec.bot} was changed since")
            fallback = spec.settings.get("fallback")
            if spec.fallback and self.registry.find(str(fallback)).digest != spec.fallback:
                found.append(f"the file of {fallback}, fallback of {one_line(spec.name)}, was changed since")
        return found

    @cached_property
    def has_bots(self) -> bool:
        """Whether its games can be played again with the very bots that played: with models, from their records."""
        if any(self.registry.find(player.bot).cls.is_model for player in self.experiment.players):
            return True
        return all(self.registry.find(player.bot).digest == player.source for player in self.experiment.players)

    @cached_property
    def player(self) -> "ChunkPlayer":
        """Who plays it again."""
        from dubito.experiment.play import ChunkPlayer  # late, as what follows: to list runs takes none of it

        return ChunkPlayer(self.experiment, self.registry)

    def asking(self, tape: "ReplayTape", as_kept: bool = False) -> "Models | None":
        """The model players, who ask the tape; None in a run of hand-written bots.

        `as_kept`: with the prompts that the run kept, since those on disk may be newer.
        """
        from dubito.experiment.resolve import model_specs

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
        from dubito.experiment.resolve import settings_of
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


def read_run(folder: Path, home: Path | None = None) -> StoredRun:
    """The run in this folder; whoever asks closes its store. Raises UsageError if there is none that can be read.

    A game of the user's own is looked for in `home`, or in the working directory.
    """
    manifest = _manifest(folder)
    if not (folder / DATABASE).exists():
        raise UsageError(f"{one_line(str(folder))} has no {DATABASE}")
    return StoredRun(folder, manifest, RunDb.open(folder / DATABASE), Path.cwd() if home is None else home)


@contextmanager
def opened_run(folder: Path, home: Path | None = None) -> Iterator[StoredRun]:
    """The same, closed at the end; whatever in it cannot be read is a UsageError too."""
    run = read_run(folder, home)
    with only_read(), run.db:
        yield run


@contextmanager
def only_read() -> Iterator[None]:
    """Within, a store is read before anything starts: that it cannot be is the user's to mend."""
    try:
        yield
    except RunStopped as error:
        raise UsageError(str(error)) from None


def bots_of_run(folder: Path, home: Path) -> Registry:
    """The bots of the game of the run in this folder, the user's own from `home`.

    Raises UsageError if there is no run that can be read.
    """
    return find_bots(home, _manifest(folder).identity.game)


def _manifest(folder: Path) -> Manifest:
    try:
        return Manifest.model_validate(read_manifest(folder))
    except ValidationError as error:
        raise UsageError(f"{one_line(str(folder / MANIFEST))} is damaged: {fault(error)}") from None
