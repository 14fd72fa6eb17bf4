"""The object that `dubito deception --json` prints."""

from collections.abc import Iterator, Sequence
from typing import Literal

from pydantic import Field

from dubito.experiment.stored import Run
from dubito.game import PlayerKind
from dubito.plugins.deception.sheet import (
    ALL,
    BELIEF_BANDS,
    COUNTS,
    GAPS,
    PARTS,
    RATES,
    BeliefQuality,
    CostlyMove,
    Part,
    PlayerSheet,
    Sheet,
)
from dubito.report.documents import Document, DocumentPart, Interval
from dubito.stats.rates import Rate


class PartResult(DocumentPart):
    """A player's moves, all or one part of them."""

    by: Literal["all", "stake", "hand", "cards", "half"]
    part: str = Field(description="the part, such as `4 to 7` cards; empty for all moves")
    counts: dict[str, int]
    rates: dict[str, Interval]
    d_prime: Interval
    criterion: Interval


class BeliefResult(DocumentPart):
    """The probabilities that a player stated."""

    statements: int
    nulls: int
    impossible: int = Field(description="number of values outside 0 to 1")
    auroc: Interval
    brier: Interval
    ece: Interval


class WinResult(DocumentPart):
    """The probabilities to win that a player stated, one per turn."""

    statements: int
    auroc: Interval
    brier: Interval
    ece: Interval


class GapResult(DocumentPart):
    """How far a player's answers are from the reference's belief and from its own."""

    reference_loss: Interval
    against_reference: Interval
    reference_cards: Interval
    loss: Interval
    divergence: Interval
    calls_against: Interval
    passes_against: Interval
    own_cards: Interval
    calls_by_belief: dict[str, Interval] = Field(
        description="share of plays that the player called lies, by the reference's belief in %"
    )


class PlayerDeception(DocumentPart):
    """A player's deception sheet."""

    name: str
    kind: PlayerKind
    parts: list[PartResult]
    beliefs: BeliefResult | None = Field(description="null if the player was never asked for a probability")
    wins: WinResult | None = Field(description="null if the player never stated a probability to win")
    gap: GapResult


class CostlyDecision(DocumentPart):
    """A decision that cost its player cards."""

    game: int
    turn: int = Field(description="of the game, as in `dubito fork RUN:GAME:TURN`")
    player: str
    decision: Literal["caught lie", "false call"] = Field(description="only voluntary lies")
    cards: int = Field(description="number of cards at stake")


class DeceptionObject(Document):
    """The deception sheet of a run."""

    format: Literal["dubito deception 1"] = "dubito deception 1"
    run: str
    game: str
    games: int = Field(description="number of games covered: all that are counted")
    reference: str | None = Field(description="the source of the reference beliefs, such as a bot")
    players: list[PlayerDeception]
    costliest: list[CostlyDecision] = Field(description="by the contenders, or else by all models or all players")


def build_document(run: Run, sheet: Sheet, costliest: Sequence[CostlyMove]) -> DeceptionObject:
    players = [
        PlayerDeception(
            name=one.name,
            kind=run.kinds[one.name],
            parts=[*_parts(one)],
            beliefs=_beliefs(one),
            wins=_wins(one),
            gap=GapResult.model_validate({key: one.gap.rate(key) for key in GAPS} | {"calls_by_belief": _calls(one)}),
        )
        for one in sheet.players
    ]
    return DeceptionObject(
        run=str(run),
        game=run.game.name,
        games=sheet.games,
        reference=sheet.reference,
        players=players,
        costliest=[
            CostlyDecision(
                game=one.game,
                turn=one.turn,
                player=one.player,
                decision="false call" if one.is_call else "caught lie",
                cards=one.cards,
            )
            for one in costliest
        ],
    )


def _parts(player: PlayerSheet) -> Iterator[PartResult]:
    yield _result("all", ALL[1], player.whole)
    for kind in PARTS:
        yield from (_result(kind, name, part) for name, part in player.split(kind))


def _result(kind: str, name: str, part: Part) -> PartResult:
    found = part.detection
    return PartResult.model_validate(
        {
            "by": kind,
            "part": name,
            "counts": {count: part.count(count) for count in COUNTS},
            "rates": {key: part.rate(key) for key in RATES},
            "d_prime": found.sensitivity,
            "criterion": found.criterion,
        }
    )


def _calls(player: PlayerSheet) -> dict[str, Rate]:
    return {band: player.gap.rate(band) for band in BELIEF_BANDS if player.gap.count(band)}


def _beliefs(player: PlayerSheet) -> BeliefResult | None:
    stated = player.calibration
    if stated is None:
        return None
    return BeliefResult.model_validate(
        {
            "statements": stated.statements,
            "nulls": stated.nulls,
            "impossible": stated.impossible,
            **_quality(player.quality),
        }
    )


def _wins(player: PlayerSheet) -> WinResult | None:
    if not player.wins:
        return None
    return WinResult.model_validate({"statements": len(player.wins), **_quality(BeliefQuality(player.wins))})


def _quality(quality: BeliefQuality) -> dict[str, Rate]:
    return {"auroc": quality.area, "brier": quality.brier, "ece": quality.calibration_error}
