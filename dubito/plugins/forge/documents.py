"""The object that `dubito forge --json` prints."""

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from dubito.plugins.forge.compare import Comparison
from dubito.plugins.forge.forge import Forged, Order
from dubito.report.documents import Document, DocumentPart, Interval
from dubito.store.spend import PICO

_Dollars = Annotated[float, BeforeValidator(lambda picodollars: picodollars / PICO)]


class RoundResult(DocumentPart):
    """A round of a forge."""

    round: int
    file: str = Field(description="path of the file; empty if the reply contained none that could be used")
    problems: list[str] = Field(description="what is wrong with the file")
    training: Interval | None = Field(description="its result in the training deals; null if it was not played")
    held_out: Interval | None = Field(description="its result in the held-out deals")
    training_gain: Interval | None = Field(description="its gain over the reference in the training deals")
    held_out_gain: Interval | None = Field(description="its gain over the reference in the held-out deals")
    overfitted: bool = Field(description="whether it gains significantly more in training than on held-out deals")
    gains: dict[str, Interval] = Field(description="with --compare: its gains over the reference, by games")
    nash_conv: float | None = Field(
        description="with --compare: what best responses win from it in a small variant of the game; null if unknown"
    )


class ContestantResult(DocumentPart):
    """A player in the forge's table."""

    name: str
    rate: Interval
    gain: Interval | None = Field(description="over the reference; null for the reference")
    calls: int | None = Field(description="null for bots")
    tokens: int | None = Field(description="null for bots")
    usd: _Dollars | None = Field(description="null for bots, and if the price is unknown")
    seconds: float | None = Field(description="waiting for replies, a decision")


class ForgeObject(Document):
    """The rounds of a forge, and its table."""

    format: Literal["dubito forge 1"] = "dubito forge 1"
    folder: str
    game: str
    model: str
    reference: str = Field(description="the bot that the gains refer to")
    measure: str
    calls: int
    tokens: int
    usd: _Dollars
    rounds: list[RoundResult]
    chosen: int | None = Field(description="the round that is best on the held-out deals; null if none can play")
    lead: Interval | None = Field(description="of the chosen round over the second")
    compared: list[ContestantResult] = Field(description="with --compare: all players on the same deals, best first")
    run: str | None = Field(description="with --compare: the run of the table")


def build_document(
    order: Order, forged: Forged, comparison: Comparison | None, game: str, reference: str, measure: str
) -> ForgeObject:
    return ForgeObject.model_validate(
        {
            "folder": str(forged.folder),
            "game": game,
            "model": order.model,
            "reference": reference,
            "measure": measure,
            "calls": forged.spent.calls,
            "tokens": forged.spent.tokens,
            "usd": forged.spent.usd,
            "rounds": [*_list_rounds(forged, comparison)],
            "chosen": forged.chosen.number if forged.chosen else None,
            "lead": forged.lead,
            "compared": comparison.rows if comparison else [],
            "run": str(comparison.run) if comparison else None,
        }
    )


def _list_rounds(forged: Forged, comparison: Comparison | None) -> Iterator[dict[str, object]]:
    growth = {one.round.number: one for one in comparison.growth} if comparison else {}
    for one in forged.rounds:
        score, grown = forged.scores_by_round.get(one.number), growth.get(one.number)
        yield {
            "round": one.number,
            "file": str(forged.folder / one.name / "bot.py") if one.written.source else "",
            "problems": one.problems,
            **{key: getattr(score, key, None) for key in ("training", "held_out", "training_gain", "held_out_gain")},
            "overfitted": bool(score and score.is_overfitted),
            "gains": grown.gains if grown else {},
            "nash_conv": grown.nash_conv if grown else None,
        }
