"""A tournament's log, with one file per pairing and one line per match. Lines are written atomically and never changed.

    RUN/tournament.json              the manifest
    RUN/secret                       the secret seed of all draws; not public
    RUN/matches/0-kuhn_poker/A--B.jsonl

If the same matches are played again, only the values under `times` differ.
"""

import json
import os
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, ValidationError

from dubito.errors import UsageError, one_line
from dubito.files import check_format, write_whole
from dubito.plugins.tournament.match import Strike, TableSeat
from dubito.plugins.tournament.plan import Pairing, Seeds, list_pairings, match_seats
from dubito.plugins.tournament.rules import FATAL_STRIKES
from dubito.plugins.tournament.table import Times

MANIFEST: Final = "tournament.json"
_FORMAT: Final = 1
SECRET: Final = "secret"  # noqa: S105, a name of a file
_MATCHES: Final = "matches"


class MatchLine(BaseModel):
    """A match in the log. Pairs of values are for seat 0 and seat 1."""

    model_config = ConfigDict(frozen=True)

    game: str
    match: int
    seats: tuple[str, str]
    seeds: Seeds
    history: list[int | Annotated[list[int], Field(min_length=2, max_length=2)]]
    returns: tuple[FiniteFloat, FiniteFloat]
    strikes: list[Strike]
    replaced: list[tuple[int, TableSeat]]  # node and seat of each action that the referee drew for a bot
    exit: tuple[int | str, int | str]
    stderr: tuple[str, str]
    data: tuple[int, int]  # bytes in its data folder afterwards
    times: Times

    def has_failed(self, seat: int) -> bool:
        return any(strike.seat == seat and strike.kind in FATAL_STRIKES for strike in self.strikes)

    def is_shut_down(self, seat: int, max_strikes: int) -> bool:
        kinds = Counter(strike.kind for strike in self.strikes if strike.seat == seat)
        return self.has_failed(seat) or max(kinds.values(), default=0) >= max_strikes


class _Identity(BaseModel):
    """The common fields of a tournament's identity. Other fields are preserved."""

    model_config = ConfigDict(extra="allow")

    games: list[str] = Field(min_length=1)
    bots: dict[str, list[str]] = Field(min_length=2)
    seed: int
    twins: bool
    dialect: str


class TournamentManifest(BaseModel):
    identity: _Identity
    matches: int = Field(ge=1)
    notes: list[str]
    versions: dict[str, str]
    enforced: dict[str, bool] = {}  # limits that were enforced in all matches
    programs: dict[str, dict[str, str]]  # files with their digests, by bot


@dataclass(slots=True)
class Log:
    """A tournament's folder on disk."""

    folder: Path
    games: Sequence[str]
    bots: Sequence[str]
    matches: int  # per pair and position
    damaged: list[str] = field(default_factory=list)  # one sentence per unusable line

    def path(self, pairing: Pairing) -> Path:
        safe = re.sub(r"[^\w.-]+", "_", self.games[pairing.game])[:60]
        one, other = (self.bots[place] for place in pairing.bots)
        return self.folder / _MATCHES / f"{pairing.game}-{safe}" / f"{one}--{other}.jsonl"

    def pairings(self) -> list[Pairing]:
        return list_pairings(len(self.games), len(self.bots))

    def lines(self, pairing: Pairing) -> list[MatchLine]:
        """Return the finished matches of a pairing in order. Damaged lines are skipped and described in `damaged`."""
        matches: dict[int, MatchLine] = {}
        for number, text in enumerate(_complete_lines(self.path(pairing)), 1):
            where = f"{self.path(pairing).relative_to(self.folder)}, line {number}"
            try:
                line = MatchLine.model_validate_json(text)
            except ValidationError as error:
                problem = one_line(str(error.errors()[0]["msg"]), 100)
                self.damaged.append(f"{where} is damaged and was skipped ({problem})")
                continue
            if not 0 <= line.match < 2 * self.matches:
                self.damaged.append(f"{where} is match {line.match}, which is not scheduled, and was skipped")
            elif line.game != self.games[pairing.game] or line.seats != tuple(
                self.bots[pairing.bots[place]] for place in match_seats(line.match)
            ):
                self.damaged.append(f"{where} belongs to another game or other bots and was skipped")
            elif line.match in matches:
                self.damaged.append(f"{where} repeats match {line.match} and was skipped")
            else:
                matches[line.match] = line
        return [matches[match] for match in sorted(matches)]

    def read_lines(self) -> Iterator[tuple[Pairing, list[MatchLine]]]:
        for pairing in self.pairings():
            yield pairing, self.lines(pairing)


def _complete_lines(path: Path) -> Iterator[bytes]:
    """Yield the complete lines of a file. Text after the last newline is an interrupted write."""
    try:
        with path.open("rb") as file:
            for text in file:
                if text.endswith(b"\n"):
                    yield text
    except FileNotFoundError:
        return


class LogWriter:
    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        self._cut_unfinished()

    def _cut_unfinished(self) -> None:
        """Remove an incomplete last line, in case the process was killed while writing it."""
        size = end = os.fstat(self._file).st_size
        while end and (block := os.pread(self._file, min(end, 4096), max(0, end - 4096))):
            if (newline := block.rfind(b"\n")) >= 0:
                end += newline + 1 - len(block)
                break
            end -= len(block)
        if end != size:
            os.ftruncate(self._file, end)

    def __call__(self, line: MatchLine) -> None:
        """Append a match. If the disk is full, remove the partial line and raise OSError."""
        text = line.model_dump_json().encode() + b"\n"
        if os.write(self._file, text) < len(text):
            self._cut_unfinished()
            raise OSError(28, "No space left on device")

    def close(self) -> None:
        os.close(self._file)


def write_log_manifest(folder: Path, content: dict[str, Any]) -> None:
    text = json.dumps({"format": _FORMAT, **content}, indent=1, ensure_ascii=False)
    write_whole(folder / MANIFEST, text + "\n")


def read_log_manifest(folder: Path) -> dict[str, Any]:
    """Read the manifest in this folder; raises UsageError if the folder is not a tournament."""
    shown = one_line(str(folder))
    try:
        content = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        if isinstance(content, dict) and "identity" in content:
            check_format(content.get("format"), _FORMAT, one_line(str(folder / MANIFEST)))
        return TournamentManifest.model_validate(content).model_dump()
    except (FileNotFoundError, NotADirectoryError):
        raise UsageError(f"{shown} is not a tournament because it has no {MANIFEST}") from None
    except (OSError, ValueError):
        path = one_line(str(folder / MANIFEST))
        raise UsageError(f"{path} is damaged or incomplete") from None


def write_secret(folder: Path, secret: str) -> None:
    with open(os.open(folder / SECRET, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        file.write(secret + "\n")


def read_secret(folder: Path) -> str:
    """Read the tournament's secret; raises UsageError."""
    path = folder / SECRET
    try:
        return path.read_text(encoding="utf-8").removesuffix("\n")
    except (OSError, ValueError):
        shown = one_line(str(path))
        raise UsageError(f"cannot read {shown}", hint="restore this file, or start a new tournament") from None


def open_log(folder: Path) -> Log:
    manifest = read_log_manifest(folder)
    identity = manifest["identity"]
    return Log(folder, identity["games"], list(identity["bots"]), manifest["matches"])
