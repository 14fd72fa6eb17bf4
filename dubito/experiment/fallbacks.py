"""What fallbacks could have changed: which seats they touched, and the bounds of a rate if that had gone otherwise.

A game with a fallback counts as it was played and is never dropped; beside it stand the worst case, every
touched seat lost, and the best, every touched seat a hard win.
"""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass

from dubito.experiment.outcome import Outcome
from dubito.experiment.tally import Tally, measures_of
from dubito.llm.failures import FALLBACK_OUTCOME


@dataclass(frozen=True, slots=True)
class Bounds:
    """Score and hard wins per seat, from worst to best."""

    touched: int  # seats for which a fallback answered at least once
    seats: int
    score: tuple[float, float]
    hard_wins: tuple[float, float]


def fallback_share(outcomes: Mapping[str, int]) -> float:
    """The share of decisions that the fallback took, of counts by outcome; 0 over nothing."""
    fallbacks = sum(count for outcome, count in outcomes.items() if outcome.startswith(FALLBACK_OUTCOME))
    return fallbacks / sum(outcomes.values()) if fallbacks else 0.0


def add_touched(tally: Tally, games: Sequence[tuple[Outcome, Set[int]]]) -> None:
    """Add one deal: its games with the seats that a fallback touched."""
    for contender, (outcome, touched) in enumerate(games):
        for seat in touched:
            tally.add("touched", (outcome.seats[seat],), _touched(outcome.result(seat)))
            if seat == outcome.contender_seat:
                add_touched_contender(tally, contender, outcome.result(seat))


def add_touched_contender(tally: Tally, contender: int, result: int) -> None:
    """Add a game that a fallback touched in the contenders' seat, with its result, a place in RESULTS."""
    tally.add("touched_contenders", (contender,), _touched(result))


def _touched(result: int) -> list[int]:
    score, hard, *_ = measures_of(result)
    return [1, score, hard]


def player_bounds(tally: Tally, player: int, seats: int, score: int, hard: int) -> Bounds:
    """The bounds of a player's rates over all its seats; `score` in halves and `hard` as played."""
    return _bounds(tally.tables["touched"].get((player,)), seats, score, hard)


def contender_bounds(tally: Tally, contender: int) -> Bounds:
    """The bounds of a contender's rates in the contenders' seat."""
    seats, score, hard, *_ = tally.tables["contended"][contender,]
    return _bounds(tally.tables["touched_contenders"].get((contender,)), seats, score, hard)


def _bounds(sums: Sequence[int] | None, seats: int, score: int, hard: int) -> Bounds:
    if not seats:
        return Bounds(0, 0, (0.0, 1.0), (0.0, 1.0))
    touched, their_score, their_hard = sums or (0, 0, 0)
    least, least_hard = score - their_score, hard - their_hard
    return Bounds(
        touched,
        seats,
        (least / (2 * seats), (least + 2 * touched) / (2 * seats)),
        (least_hard / seats, (least_hard + touched) / seats),
    )
