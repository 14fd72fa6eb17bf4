"""What a report is made of: a run folder, opened to be read."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from dubito.errors import RunStopped, UsageError
from dubito.experiment.contenders import Contender
from dubito.experiment.fallbacks import fallback_share
from dubito.experiment.tally import Tally, kept_tally
from dubito.store import folder as run_folder
from dubito.store.model_log import ModelLog, PlayerLog
from dubito.store.run_db import RunDb


@dataclass(frozen=True)
class Source:
    """A run with at least one finished game."""

    folder: Path
    manifest: Mapping[str, Any]
    players: Sequence[Mapping[str, Any]]  # as the manifest has them, in the order of the tally's keys
    contenders: Sequence[str]  # their names
    db: RunDb
    tally: Tally
    results_digest: str

    @cached_property
    def names(self) -> list[str]:
        """The players' names, in the order of the tally's keys."""
        return [str(player["name"]) for player in self.players]

    @property
    def seed(self) -> int:
        """The run's."""
        return int(self.manifest["identity"]["seed"])

    @property
    def games_per_deal(self) -> int:
        """One, or one for each contender (R33)."""
        return max(1, len(self.contenders))

    @property
    def planned(self) -> int:
        """How many games the run is to have."""
        return int(self.manifest["games"])

    @cached_property
    def models(self) -> dict[str, PlayerLog]:
        """What each model player's decisions add up to, by name."""
        log = ModelLog(self.db)
        asked = set(log.players())
        return {name: log.player(name) for name in self.names if name in asked}

    @cached_property
    def compared(self) -> list[Contender]:
        """The contenders as they are compared, in the order of the tally's keys."""
        logs = self.models
        return [
            Contender(name, fallback_share=fallback_share(logs[name].outcomes if name in logs else {}))
            for name in self.contenders
        ]


@contextmanager
def opened(folder: Path) -> Iterator[Source]:
    """The run in this folder; raises UsageError if there is none, or none to be shown."""
    manifest = run_folder.read_manifest(folder)
    if not (folder / run_folder.DATABASE).exists():
        raise UsageError(f"{folder} has no {run_folder.DATABASE}")
    try:
        with RunDb.open(folder / run_folder.DATABASE) as db:
            tally = kept_tally(db)
            if not tally.tables.get("sizes"):
                raise UsageError(f"{folder} keeps no finished game: there is nothing to show yet")
            yield _source(folder, manifest, db, tally)
    except RunStopped as error:  # the store's word for a file that cannot be read; here nothing had started
        raise UsageError(str(error)) from None


def _source(folder: Path, manifest: Mapping[str, Any], db: RunDb, tally: Tally) -> Source:
    try:
        identity = manifest["identity"]
        field, contenders = list(identity["bots"]), list(identity["contenders"])
        players = field + [player for player in contenders if player not in field]
        names = [str(player["name"]) for player in contenders]
        return Source(folder, manifest, players, names, db, tally, db.results_digest())
    except (KeyError, TypeError):
        raise UsageError(f"{folder / run_folder.MANIFEST} is damaged: its identity cannot be read") from None
