"""A run folder, read: whose run it is, and its games deal by deal, in memory that does not grow with the run."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, ValidationError

from dubito.errors import RunStopped, UsageError, one_line
from dubito.experiment.contenders import Contender
from dubito.experiment.fallbacks import fallback_share
from dubito.experiment.outcome import unpack
from dubito.llm.failures import FALLBACK_OUTCOME
from dubito.store.folder import DATABASE, MANIFEST, read_manifest
from dubito.store.model_log import ModelLog
from dubito.store.run_db import RunDb

_AT_ONCE: Final = 1000  # deals whose fallbacks are looked up together


class _Kept(BaseModel):
    """A part of a manifest; it may hold keys of other versions."""

    model_config = ConfigDict(extra="allow", strict=True, frozen=True)


class Named(_Kept):
    """A player of the field or a contender; what else it has is compared as it is."""

    name: str


class Identity(_Kept):
    """What can change a run's results."""

    seed: int
    table_sizes: list[int]
    bots: list[Named]
    contenders: list[Named]
    rules: dict[str, Any]
    on_bot_error: str


class Manifest(_Kept):
    """What `manifest.yaml` says of a run."""

    games: int
    identity: Identity


@dataclass(frozen=True, slots=True)
class StoredRun:
    """A run with contenders, open to be read."""

    folder: Path
    games: int  # that it was to play
    identity: Identity
    kept: int  # games that are there
    db: RunDb

    def __str__(self) -> str:
        return one_line(str(self.folder))

    @property
    def deals(self) -> int:
        """How many deals are kept, each with a game of every contender."""
        return self.kept // len(self.identity.contenders)

    def contenders(self, run: int) -> list[Contender]:
        """Its contenders; their fallback shares are of all their decisions in the run, as its summary has them."""
        log, named = ModelLog(self.db), self.identity.contenders
        return [Contender(player.name, run, fallback_share(log.player(player.name).outcomes)) for player in named]

    def contended(self, deals: int) -> Iterator[list[tuple[int, bool]]]:
        """Of each of the first deals, for each contender: his result, a place in RESULTS, and whether a fallback
        answered for him. Raises UsageError or RunStopped where games cannot be read."""
        rows, m = self.db.outcomes(), len(self.identity.contenders)
        for first in range(0, deals * m, _AT_ONCE * m):
            last = min(first + _AT_ONCE * m, deals * m)
            touched = self._touched(first, last)
            for deal in range(first, last, m):
                games = [(game, *self._contended(next(rows))) for game in range(deal, deal + m)]
                yield [(result, (game, seat) in touched) for game, seat, result in games]

    def _contended(self, row: bytes) -> tuple[int, int]:
        """The contenders' seat and its result in a packed game."""
        outcome = unpack(row)
        if outcome.contender_seat is None:
            raise UsageError(f"{self}: {MANIFEST} and {DATABASE} do not belong together")
        return outcome.contender_seat, outcome.result(outcome.contender_seat)

    def _touched(self, first: int, last: int) -> set[tuple[int, ...]]:
        """Games, from first to before last, and seats for which a fallback answered at least once."""
        query = "SELECT DISTINCT game, seat FROM decisions WHERE game >= ? AND game < ? AND outcome LIKE ?"
        return set(self.db.read(query, (first, last, f"{FALLBACK_OUTCOME}%")))


@contextmanager
def opened(folder: Path) -> Iterator[StoredRun]:
    """The run with contenders in this folder; raises UsageError if there is none, or none that can be read."""
    shown = one_line(str(folder))
    manifest = _manifest(folder)
    if not manifest.identity.contenders:
        raise UsageError(f"{shown} has no contenders: players are compared that a config lists as `contenders`")
    try:
        with RunDb.open(folder / DATABASE) as db:
            yield StoredRun(folder, manifest.games, manifest.identity, db.games(), db)
    except RunStopped as error:  # the store's word for a file that cannot be read; here nothing had started
        raise UsageError(str(error)) from None
    except sqlite3.Error as error:
        raise UsageError(f"{shown}: {DATABASE} is damaged: {one_line(str(error))}") from None


def _manifest(folder: Path) -> Manifest:
    try:
        return Manifest.model_validate(read_manifest(folder))
    except ValidationError as error:
        first = error.errors()[0]
        where = one_line(".".join(map(str, first["loc"])))
        raise UsageError(f"{one_line(str(folder / MANIFEST))} is damaged: {where}: {one_line(first['msg'])}") from None
