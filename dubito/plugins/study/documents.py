"""The object that `dubito fork --json` prints."""

from typing import Literal

from pydantic import Field

from dubito.game import PlayerKind
from dubito.report.documents import Document, DocumentPart, Interval


class PlayerForksResult(DocumentPart):
    """What happened when this player moved first."""

    name: str
    kind: PlayerKind
    results: dict[str, int] = Field(description="number of forks by result")
    score: Interval = Field(description="mean of the game's first measure")
    difference: Interval | None = Field(description="score minus the first player's; null for the first player")
    moves: dict[str, int] = Field(description="number of forks by first move")


class ForkObject(Document):
    """One moment of a game, played on many times."""

    format: Literal["dubito fork 1"] = "dubito fork 1"
    run: str
    game: int
    turn: int
    seat: int = Field(description="the seat to move")
    played: str = Field(description="the move that was made in the run")
    count: int = Field(description="number of forks per player")
    worlds: Literal["same", "sampled"]
    set: list[str] = Field(description="what was changed, such as `hand=2,2,7`")
    seed: int
    measure: str = Field(description="the game's first measure, the `score`")
    players: list[PlayerForksResult]
