"""The object that `dubito rate --json` prints."""

from typing import Literal

from pydantic import Field

from dubito.game import PlayerKind
from dubito.report.documents import Document, DocumentPart, Interval


class RatingWorst(DocumentPart):
    """How a player fares beside those who are worst for it, each half of the deals as the other half names them."""

    games: int
    rate: Interval
    who: dict[str, list[str]] = Field(description="by side: before, after, or opposite")


class RatingTaken(DocumentPart):
    """What an exploiter has above an equal share where all others are the player."""

    name: str
    deals: int
    rate: Interval


class RatingUsed(DocumentPart):
    """What a player's decisions took, in both runs."""

    decisions: int
    fallbacks: int
    calls: int
    tokens: int = Field(description="read and written")
    usd: float | None = Field(description="null: no price is known, or nobody was asked")


class RatingObject(Document):
    """A player by a book."""

    format: Literal["dubito rating 1"] = "dubito rating 1"
    book: str
    book_digest: str
    game: str
    player: str
    kind: PlayerKind
    measure: str = Field(description="what is rated")
    games: int
    mean: Interval = Field(description="over the field")
    beside_worst: RatingWorst
    taken: list[RatingTaken]
    exact: float | None = Field(description="what a best response takes; null: the game is not small, or a model plays")
    exact_draws: int | None = Field(description="how often the bot acted in each situation; null: it says how it plays")
    use: RatingUsed
    folders: list[str] = Field(description="the runs: over the field, and of the exploiters")
    results_digests: list[str] = Field(description="theirs")
