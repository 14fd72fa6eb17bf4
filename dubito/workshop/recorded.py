"""Recorded positions: with the truth that the seat could not see, kept apart, and where they were taken from.

The file is a position's file (`Facts.to_json` of its game) with `hidden` in it. Only what is here reads `hidden`.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final

from pydantic import Field, TypeAdapter, ValidationError

from dubito.errors import UsageError, one_line
from dubito.game import Spec
from dubito.game_registry import DUBITO
from dubito.games.dubito.record import first_fault
from dubito.llm.prompts import OWN_PROMPTS
from dubito.workshop.craft import craft_of, game_or_dubito

SHIPPED: Final = OWN_PROMPTS / "positions"  # Dubito's; made by `dubito prompts record`, see docs/prompts.md
_STRICT: Final[dict[str, object]] = {"extra": "forbid", "strict": True}
_Count = Annotated[int, Field(ge=0)]


@dataclass(frozen=True, slots=True)
class Source:
    """Where a position was taken from."""

    __pydantic_config__: ClassVar[dict[str, object]] = _STRICT

    run: str | None  # digest of the run's identity; None: its game was played to take it
    seed: int
    deal: _Count
    game: _Count
    seat: _Count
    decision: _Count  # of this seat in this game, from 0


@dataclass(frozen=True, slots=True)
class Hidden:
    """What the engine knew when the node was asked."""

    __pydantic_config__: ClassVar[dict[str, object]] = _STRICT

    hands: tuple[tuple[_Count, ...], ...]  # by seat, each sorted
    board: tuple[_Count, ...]  # what lies face down, the last play last
    dishonest: bool | None  # whether the last play is; None where there is none to judge
    source: Source


@dataclass(frozen=True, slots=True)
class Recorded:
    """A position and the truth; None where a file does not tell it."""

    position: Any  # a Position of its game
    hidden: Hidden | None
    game: Spec | None = field(default=None, compare=False, repr=False)  # None: Dubito

    @property
    def text(self) -> str:
        """The file's text."""
        text = game_or_dubito(self.game).facts.to_json(self.position)
        if self.hidden is None:
            return text
        return text.removesuffix("}\n") + f',\n "hidden": {json.dumps(asdict(self.hidden))}' + "}\n"

    @property
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
        if self.hidden is None:
            return self.digest
        return (self.hidden.source.run, self.hidden.source.seed, self.hidden.source.deal)


def shipped(game: Spec) -> Path:
    """Where the positions of a game lie that come with the project."""
    return SHIPPED if game.name == DUBITO else OWN_PROMPTS / game.name / SHIPPED.name


def read_recorded(text: str, game: Spec | None = None) -> Recorded:
    """The position in a file's text; raises UsageError that names what is malformed, or what contradicts what."""
    position = game_or_dubito(game).facts.from_json(text)
    told = json.loads(text).get("hidden")
    if told is None:
        return Recorded(position, None, game)
    try:
        hidden = TypeAdapter(Hidden).validate_json(json.dumps(told))
    except ValidationError as error:
        raise UsageError(f"this is no position: hidden.{first_fault(error)}") from None
    fault = craft_of(game).contradiction(position, hidden.hands, hidden.board, hidden.dishonest)
    if fault is None and hidden.source.seat != position.seat:
        fault = f"source: the position is of seat {position.seat}"
    if fault is not None:
        raise UsageError(f"this is no position: hidden.{fault}")
    return Recorded(position, hidden, game)


def read_folder(folder: Path, game: Spec | None = None) -> dict[str, Recorded]:
    """The positions of a folder's `.json` files, by the files' names; raises UsageError, with the file's name."""
    try:
        files = sorted(path for path in folder.iterdir() if path.suffix == ".json")
    except OSError as error:
        raise UsageError(f"cannot read {one_line(str(folder))}: {error.strerror}") from None
    if not files:
        raise UsageError(f"{one_line(str(folder))} holds no positions: `dubito prompts record` makes some")
    return {file.name: _read(file, game) for file in files}


def _read(file: Path, game: Spec | None) -> Recorded:
    text = read_text(file)
    try:
        return read_recorded(text, game)
    except UsageError as error:
        raise UsageError(f"{one_line(str(file))}: {error}") from None


def read_text(file: Path) -> str:
    """The text of a file; raises UsageError."""
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no text in UTF-8"
        raise UsageError(f"cannot read {one_line(str(file))}: {reason}") from None


def write_files(files: Mapping[Path, str]) -> None:
    """Write these texts, making their folders; raises UsageError."""
    for file, text in files.items():
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8", newline="\n")
        except OSError as error:
            raise UsageError(f"cannot write {one_line(str(file))}: {error.strerror}") from None


def digest_of_folder(found: Mapping[str, Recorded]) -> str:
    """One hash over all of them, in their order."""
    return sha256("".join(one.digest for one in found.values()).encode()).hexdigest()
