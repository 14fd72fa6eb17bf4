"""Recorded positions: with the truth that the seat could not see, kept apart, and where they were taken from.

The file is a position's file, as its game's `facts` write it, with `hidden` in it. Only what is here reads `hidden`.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, TypeAdapter, ValidationError

from dubito.errors import UsageError, one_line
from dubito.files import read_text
from dubito.game import Spec
from dubito.game.record import Strict
from dubito.llm.prompts import OWN_PROMPTS, prompt_root
from dubito.workshop.parts import part

_Count = Annotated[int, Field(ge=0)]


@dataclass(frozen=True, slots=True)
class Provenance(Strict):
    """Where a position was taken from."""

    run: str | None  # digest of the run's identity; None: its game was played to take it
    seed: int
    deal: _Count
    game: _Count
    seat: _Count
    decision: _Count  # of this seat in this game, from 0


@dataclass(frozen=True)
class RecordedPosition:
    """A position of a game, where it was taken from, and the truth; None where a file does not tell it."""

    game: Spec
    position: Any  # the game's own kind of `Position`
    source: Provenance | None = None
    hidden: Any = None  # the game's own dataclass, where it has one

    @cached_property
    def text(self) -> str:
        """The file's text."""
        text = self.game.facts.to_json(self.position)
        if self.source is None:
            return text
        told = {**(asdict(self.hidden) if self.hidden else {}), "source": asdict(self.source)}
        return text.rstrip().removesuffix("}") + f',\n "hidden": {json.dumps(told)}' + "}\n"

    @cached_property
    def digest(self) -> str:
        """The sha256 of the file's text, as hex."""
        return sha256(self.text.encode()).hexdigest()

    @property
    def file_name(self) -> str:
        """Node and digest: positions of many runs lie side by side, and one that is taken twice is one file."""
        return f"{self.position.node}-{self.digest[:12]}.json"

    @property
    def deal(self) -> object:
        """What positions of the same deal share, as far as anybody knows: they are not independent."""
        if self.source is None:
            return self.digest
        return (self.source.run, self.source.seed, self.source.deal)


def read_recorded(text: str, game: Spec) -> RecordedPosition:
    """The position in a file's text; raises UsageError that names what is malformed, or what contradicts what."""
    position = game.facts.from_json(text)
    told = json.loads(text).get("hidden")
    if told is None:
        return RecordedPosition(game, position)
    if not isinstance(told, dict):
        raise UsageError("this is no position: hidden: it is no JSON object")
    source = _read_as(Provenance, told.pop("source", None), "hidden.source")
    hidden = _read_as(part(game, "Hidden", _Nothing), told, "hidden")
    fault = part(game, "contradiction", lambda position, hidden: None)(position, hidden)
    if fault is None and source.seat != position.seat:
        fault = f"source: the position is of seat {position.seat}"
    if fault is not None:
        raise UsageError(f"this is no position: hidden.{fault}")
    return RecordedPosition(game, position, source, None if isinstance(hidden, _Nothing) else hidden)


@dataclass(frozen=True, slots=True)
class _Nothing(Strict):
    """The truth of a game that keeps none."""


def _read_as(kind: Any, told: object, where: str) -> Any:
    """What is told, as this dataclass; raises UsageError with the first thing that is wrong."""
    try:
        return TypeAdapter(kind).validate_json(json.dumps(told))
    except ValidationError as error:
        first = error.errors()[0]
        place = one_line(".".join(map(str, (where, *first["loc"]))))
        raise UsageError(f"this is no position: {place}: {one_line(first['msg'])}") from None


def shipped(game: Spec) -> Path:
    """Where the project keeps positions of a game, to try prompts on."""
    return prompt_root(OWN_PROMPTS, game) / "positions"


def read_folder(folder: Path, game: Spec) -> dict[str, RecordedPosition]:
    """The positions of a folder's `.json` files, by the files' names; raises UsageError, with the file's name."""
    try:
        files = sorted(path for path in folder.iterdir() if path.suffix == ".json")
    except OSError as error:
        raise UsageError(f"cannot read {one_line(str(folder))}: {error.strerror}") from None
    if not files:
        raise UsageError(f"{one_line(str(folder))} holds no positions: `dubito prompts record` makes some")
    return {file.name: _read(file, game) for file in files}


def _read(file: Path, game: Spec) -> RecordedPosition:
    text = read_text(file)
    try:
        return read_recorded(text, game)
    except UsageError as error:
        raise UsageError(f"{one_line(str(file))}: {error}") from None


def write_files(files: Mapping[Path, str]) -> None:
    """Write these texts, making their folders; raises UsageError."""
    for file, text in files.items():
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8", newline="\n")
        except OSError as error:
            raise UsageError(f"cannot write {one_line(str(file))}: {error.strerror}") from None


def digest_of_folder(found: Mapping[str, RecordedPosition]) -> str:
    """One hash over all of them, in their order."""
    return sha256("".join(one.digest for one in found.values()).encode()).hexdigest()
