"""What fallbacks could have changed: which seats they touched, and the bounds of a rate if that had gone otherwise.

A game with a fallback counts as it was played and is never dropped; beside it stand the worst case, every
touched seat with nothing of the measure, and the best, every touched seat with all of it.
"""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass

from dubito.experiment.outcome import Outcome
from dubito.experiment.statistics import Rate
from dubito.experiment.tally import Tally
from dubito.game import Results
from dubito.llm.request import FALLBACK_OUTCOME


@dataclass(frozen=True, slots=True)
class FallbackBounds:
    """The headline measures per seat, from worst to best."""

    touched: int  # seats for which a fallback answered at least once
    seats: int
    rates: dict[str, tuple[float, float]]  # by the keys of the headline


def fallback_share(outcomes: Mapping[str, int]) -> float:
    """The share of decisions that the fallback took, of counts by outcome; 0 over nothing."""
    fallbacks = sum(count for outcome, count in outcomes.items() if outcome.startswith(FALLBACK_OUTCOME))
    return fallbacks / sum(outcomes.values()) if fallbacks else 0.0


def add_touched(tally: Tally, games: Sequence[tuple[Outcome, Set[int]]], results: Results) -> None:
    """Add one deal: its games with the seats that a fallback touched."""
    seats = len({outcome.contender_seat for outcome, _ in games})  # in which each contender played
    for number, (outcome, touched) in enumerate(games):
        measured = outcome.measured(results)
        for seat in touched:
            tally.add("touched", (outcome.seats[seat],), _touched(measured[seat], results))
            if seat == outcome.contender_seat:
                add_touched_contender(tally, number // seats, measured[seat], results)


def add_touched_contender(tally: Tally, contender: int, measured: Sequence[int], results: Results) -> None:
    """Add a game that a fallback touched in the contenders' seat, with what that seat came to."""
    tally.add("touched_contenders", (contender,), _touched(measured, results))


def _touched(measured: Sequence[int], results: Results) -> list[int]:
    return [1, *(measured[results.place(key)] for key in results.headline)]


def player_bounds(tally: Tally, results: Results, player: int, seats: int, measured: Sequence[int]) -> FallbackBounds:
    """The bounds of a player's rates over all its seats; `measured` are its sums of all measures as played."""
    return _bounds(tally.tables["touched"].get((player,)), results, seats, measured)


def contender_bounds(tally: Tally, results: Results, contender: int, seats: int = 1) -> FallbackBounds:
    """The bounds of a contender's rates in the contenders' seat, or seats of each deal."""
    deals, *measured = tally.tables["contended"][contender,]
    return _bounds(tally.tables["touched_contenders"].get((contender,)), results, seats * deals, measured)


def _bounds(sums: Sequence[int] | None, results: Results, seats: int, measured: Sequence[int]) -> FallbackBounds:
    if not seats:
        return FallbackBounds(0, 0, {key: results.measure(key).span or (0.0, 1.0) for key in results.headline})
    touched, *theirs = sums or (0, *(0 for _ in results.headline))
    rates = {}
    for key, their in zip(results.headline, theirs, strict=True):
        place = results.place(key)
        least, scale = measured[place] - their, results.measures[place].scale
        ends = Rate(None, least / (scale * seats), (least + scale * touched) / (scale * seats))
        ends = ends.on(results.measures[place].span)
        rates[key] = (ends.low, ends.high)
    return FallbackBounds(touched, seats, rates)
