"""The object that `dubito rate --json` prints."""

from typing import Literal

from pydantic import Field

from dubito.game import PlayerKind
from dubito.report.documents import Document, DocumentPart, Interval


class RatingWorst(DocumentPart):
    """A player's result next to its worst neighbours, chosen for each half of the deals from the other half."""

    games: int
    rate: Interval
    who: dict[str, list[str]] = Field(description="by side: before, after, or opposite")


class RatingTaken(DocumentPart):
    """How far above chance level an exploiter scores when every other seat is the player."""

    name: str
    deals: int
    rate: Interval


class RatingUsed(DocumentPart):
    """The cost of a player's decisions, in both runs."""

    decisions: int
    fallbacks: int
    calls: int
    tokens: int = Field(description="read and written")
    usd: float | None = Field(description="null if the price is unknown or no model was asked")


class RatingObject(Document):
    """A player's rating against a book."""

    format: Literal["dubito rating 1"] = "dubito rating 1"
    book: str
    book_digest: str
    game: str
    player: str
    kind: PlayerKind
    measure: str = Field(description="the measure of the rating")
    games: int
    mean: Interval = Field(description="against the book's opponents")
    beside_worst: RatingWorst
    taken: list[RatingTaken]
    exact: float | None = Field(
        description="what a best response wins; null if the game is too large or the player is a model"
    )
    exact_draws: int | None = Field(
        description="how often the bot was asked in each situation; null if it states its strategy"
    )
    use: RatingUsed
    folders: list[str] = Field(description="the two runs: against the opponents, and with the exploiters")
    results_digests: list[str] = Field(description="the digests of these runs")
