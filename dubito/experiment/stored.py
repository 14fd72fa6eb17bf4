"""A run folder, read: whose run it is, what it keeps, and what its models were asked.

Report, comparison, estimate and replay all begin here. A manifest may hold keys of other versions.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from dubito.errors import RunStopped, UsageError, one_line
from dubito.experiment.experiment import (
    Experiment,
    PlayerSpec,
    Shard,
    contender_seats,
    kind_of_player,
    labelled_by,
)
from dubito.files import fault
from dubito.game import PlayerKind, Spec
from dubito.game.find import DUBITO, Registry, find_bots, find_game
from dubito.stats.ranking import Contender, contenders_of
from dubito.stats.tally import Outcome, Tally, kept_tally, outcome_in
from dubito.store.folder import DATABASE, MANIFEST, read_manifest
from dubito.store.model_log import ModelLog, PlayerLog
from dubito.store.run_db import RunDb

_MOST_SEATS: Final = 1000  # of a table in a file
_Count = Annotated[int, Field(ge=0, le=10**12)]


class _Stated(BaseModel):
    """A part of a manifest."""

    model_config = ConfigDict(extra="allow", strict=True, frozen=True)


class StoredPlayer(_Stated):
    """A player of the field or a contender; what else it has is compared as it is."""

    name: str
    bot: str = ""
    settings: dict[str, Any] = {}
    source: str = ""
    prompt: str = ""
    fallback: str = ""


class StoredShard(_Stated):
    """Which part of a run this is (`experiment.py: Shard`)."""

    number: _Count
    of: _Count
    games: _Count
    first_game: _Count
    engine: str = ""


class Identity(_Stated):
    """What can change a run's results."""

    game: str = DUBITO
    seed: int
    table_sizes: list[Annotated[int, Field(ge=1, le=_MOST_SEATS)]] = Field(min_length=1)
    bots: list[StoredPlayer] = Field(min_length=1)
    contenders: list[StoredPlayer]
    rules: dict[str, Any]
    on_bot_error: str
    shard: StoredShard | None = None


class Manifest(_Stated):
    """What `manifest.yaml` says of a run."""

    games: _Count
    identity: Identity
    versions: dict[str, Any] = {}


def kinds_in(manifest: Mapping[str, Any]) -> dict[str, PlayerKind]:
    """What decides for each player that a manifest names, of a run or of a trial of prompts; raises UsageError."""
    every = manifest["identity"]
    entries = [one for key in ("bots", "contenders", "prompts") for one in every.get(key) or ()]
    try:
        return {player.name: kind_of_player(player) for player in map(StoredPlayer.model_validate, entries)}
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
        """What can change its results."""
        return self.manifest.identity

    @cached_property
    def game(self) -> Spec:
        """The game that was played; raises UsageError if it is not to be found here."""
        return find_game(self.identity.game, self.home)

    @property
    def seed(self) -> int:
        """The seed that all its deals come from."""
        return self.identity.seed

    @property
    def games(self) -> int:
        """How many games it is to have."""
        return self.manifest.games

    @property
    def first_game(self) -> int:
        """The number of its first game: 0 but for a shard."""
        return self.identity.shard.first_game if self.identity.shard else 0

    @cached_property
    def kept(self) -> int:
        """How many games are there."""
        return self.db.game_count()

    @property
    def games_per_deal(self) -> int:
        """One, or one for each contender (R33) in each of its seats."""
        return max(1, len(self.identity.contenders) * self.contender_seats)

    @property
    def contender_seats(self) -> int:
        """In how many seats each contender plays a deal."""
        return contender_seats(self.identity.table_sizes)

    @property
    def deals(self) -> int:
        """How many deals are kept, each with a game of every contender."""
        return self.kept // self.games_per_deal

    @cached_property
    def players(self) -> list[StoredPlayer]:
        """Field, then the contenders that are not in it: the order of the tally's keys."""
        field, contenders = self.identity.bots, self.identity.contenders
        return field + [player for player in contenders if player not in field]

    @cached_property
    def names(self) -> list[str]:
        """The players' names, in the order of the tally's keys."""
        return [player.name for player in self.players]

    @cached_property
    def kinds(self) -> dict[str, PlayerKind]:
        """What decides for each player, by name."""
        return {player.name: kind_of_player(player) for player in self.players}

    @property
    def label(self) -> Callable[[str], str]:
        """What sentences and charts call a player."""
        return labelled_by(self.kinds)

    @cached_property
    def contenders(self) -> list[str]:
        """The contenders' names."""
        return [player.name for player in self.identity.contenders]

    @cached_property
    def tally(self) -> Tally:
        """The sums over all games; raises UsageError if they are damaged."""
        return kept_tally(self.db, self.game.results)

    @cached_property
    def results_digest(self) -> str:
        """The digest over all games, in hex."""
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

    def experiment(self) -> Experiment:
        """The experiment of the games that are kept; raises UsageError if the manifest does not tell all of it."""
        identity, players = self.identity.model_dump(exclude_unset=True), TypeAdapter(tuple[PlayerSpec, ...])
        try:
            return Experiment(
                self.kept,
                tuple(identity["table_sizes"]),
                identity["seed"],
                players.validate_python(identity["bots"]),
                players.validate_python(identity["contenders"]),
                self.game.rules(**identity["rules"]).model_dump(),
                identity["on_bot_error"],
                identity["provider_errors"],
                identity.get("bot_deadline"),
                self.game.name,
                identity.get("game_source", ""),
                self.game.lineup,
                Shard(**identity["shard"]) if "shard" in identity else None,
            )
        except (KeyError, TypeError, ValueError, ValidationError):
            raise UsageError(f"{self.folder / MANIFEST} is damaged: its identity cannot be read") from None


def read_run(folder: Path, home: Path | None = None) -> StoredRun:
    """The run in this folder; whoever asks closes its store. Raises UsageError if there is none that can be read.

    A game of the user's own is looked for in `home`, or in the working directory.
    """
    manifest = _manifest(folder)
    if not (folder / DATABASE).exists():
        raise UsageError(f"{one_line(str(folder))} has no {DATABASE}")
    return StoredRun(folder, manifest, RunDb.open(folder / DATABASE), Path.cwd() if home is None else home)


@contextmanager
def opened_run(folder: Path) -> Iterator[StoredRun]:
    """The same, closed at the end; whatever in it cannot be read is a UsageError too."""
    run = read_run(folder)
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


def check_manifest(folder: Path) -> None:
    """Raise UsageError if the manifest of the run in this folder is damaged."""
    _manifest(folder)


def _manifest(folder: Path) -> Manifest:
    try:
        return Manifest.model_validate(read_manifest(folder))
    except ValidationError as error:
        raise UsageError(f"{one_line(str(folder / MANIFEST))} is damaged: {fault(error)}") from None
