"""Compute a rating: the mean result, the result next to the worst neighbours, and exploiters' gains."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from dubito.experiment.experiment import Experiment
from dubito.experiment.lies import replay_moves
from dubito.experiment.stored import Run, list_contenders
from dubito.game import FALLBACK_OUTCOME, Measure, Results
from dubito.stats.ranking import Contender, contender_ranking
from dubito.stats.rates import Rate, clustered_rate
from dubito.stats.tally import Outcome, Tally
from dubito.store.spend import PICO, PlayerLog

_MIN_GAMES: Final = 5  # minimum number of games with a neighbour to choose it as the worst
_Neighbour = tuple[str, int]  # the side (before, after or opposite) and the player's number


@dataclass(frozen=True, slots=True)
class WorstNeighbours:
    """A player's result in games next to its worst neighbours."""

    rate: Rate
    games: int
    who: Mapping[str, Sequence[str]]  # the worst neighbours in either half of the deals, by side


@dataclass(frozen=True, slots=True)
class ExploiterGain:
    """How far above chance level an exploiter scores when the rated player takes every other seat.

    This is a lower bound on the player's exploitability, since a best response scores at least as much, and the player
    itself scores at most chance level there.
    """

    name: str
    deals: int
    rate: Rate  # a difference in the first measure


class RatedGame(NamedTuple):
    deal: int
    neighbours: Sequence[_Neighbour]
    score: int  # the first measure, in units of 1/scale


def mean_rate(tally: Tally, contenders: Sequence[Contender], results: Results) -> Rate:
    (row,) = contender_ranking(tally, contenders, results)
    return row.rates[results.measures[0].key]


def mean_beside_worst(games: Sequence[RatedGame], names: Sequence[str], measure: Measure) -> WorstNeighbours:
    """Return the mean of the first measure in games next to the worst neighbours.

    To avoid selection bias, the neighbours used for each half of the deals are the worst in the other half.
    """
    worst = [_worst_neighbours([game for game in games if game.deal % 2 != half]) for half in (0, 1)]
    by_deal: defaultdict[int, list[int]] = defaultdict(list)
    for game in games:
        if not worst[game.deal % 2].isdisjoint(game.neighbours):
            by_deal[game.deal].append(game.score)
    cells = [(len(ys), sum(ys)) for ys in by_deal.values()]
    m, y = sum(m for m, _ in cells), sum(y for _, y in cells)
    squares = [sum(one * other for one, other in pairs) for pairs in _products(cells)]
    rate = clustered_rate(len(cells), m, squares[0], y, squares[1], squares[2], measure.scale).on_span(measure.span)
    who: defaultdict[str, list[str]] = defaultdict(list)
    for side, player in sorted(worst[0] | worst[1]):
        who[side].append(names[player])
    return WorstNeighbours(rate, m, dict(who))


def _products(cells: Sequence[tuple[int, int]]) -> Iterator[list[tuple[int, int]]]:
    yield [(m, m) for m, _ in cells]
    yield [(y, y) for _, y in cells]
    yield [(y, m) for m, y in cells]


def rated_games(run: Run) -> Iterator[RatedGame]:
    """Yield the games of a run against a book's opponents."""
    planned, results = run.planned, run.game.results
    for number, row in zip(planned.game_numbers, run.db.outcomes(), strict=False):
        outcome = run.outcome(row)
        seat = outcome.contender_seat or 0
        yield RatedGame(planned.deal_of(number), _neighbours(outcome, seat), outcome.measure_seats(results)[seat][0])


def exploiter_entries(run: Run, names: Iterable[str]) -> list[dict[str, Any]]:
    """Return the exploiters' config entries.

    If a bot class has a `fitted` function, it is called with the player's moves, each with the state before it, and
    returns the settings that exploit them.
    """
    entries = []
    for name in names:
        fit = getattr(run.registry.find(name).cls, "fitted", None)
        entries.append({"bot": name, **(fit(_player_moves(run)) if fit else {})})
    return entries


def _player_moves(run: Run) -> Iterator[tuple[Any, Any]]:
    for number, row in zip(run.planned.game_numbers, run.db.outcomes(), strict=False):
        seat = run.outcome(row).contender_seat
        yield from (
            (state, move) for state, move in replay_moves(run, number) if state.seat == seat and move is not None
        )


def _neighbours(outcome: Outcome, seat: int) -> list[_Neighbour]:
    seats = outcome.seats
    if len(seats) == 2:
        return [("opposite", seats[1 - seat])]
    return [("before", seats[seat - 1]), ("after", seats[(seat + 1) % len(seats)])]


def _worst_neighbours(games: Sequence[RatedGame]) -> set[_Neighbour]:
    """Return the neighbour on each side with the lowest mean score, or the first of several."""
    counts, sums = Counter[_Neighbour](), Counter[_Neighbour]()
    for game in games:
        for place in game.neighbours:
            counts[place] += 1
            sums[place] += game.score
    worst: dict[str, _Neighbour] = {}
    for place in sorted(place for place, count in counts.items() if count >= _MIN_GAMES):
        side = place[0]
        if side not in worst or sums[place] / counts[place] < sums[worst[side]] / counts[worst[side]]:
            worst[side] = place
    return {*worst.values()}


def exploiter_gains(tally: Tally, experiment: Experiment, results: Results) -> list[ExploiterGain]:
    """Return each exploiter's gain, in the book's order."""
    contenders, key = list_contenders(experiment), results.measures[0].key
    sizes = [(values[0], results.chance_level(size)[key]) for (size,), values in tally.rows("sizes")]
    share = sum(games * one for games, one in sizes) / sum(games for games, _ in sizes)
    rows = {row.contender.name: row for row in contender_ranking(tally, contenders, results)}
    ordered = [rows[contender.name] for contender in contenders]
    return [ExploiterGain(row.contender.name, row.deals, row.rates[key].rescale(1.0, -share)) for row in ordered]


@dataclass(frozen=True, slots=True)
class RatingUsage:
    """The cost of a player's decisions in both runs."""

    decisions: int
    fallbacks: int
    calls: int
    tokens: int  # read and written
    usd: float | None  # None if the price is unknown or no model was asked


def sum_usage(logs: Sequence[PlayerLog]) -> RatingUsage:
    """Add up the logs of all of the player's seats."""
    outcomes, priced = Counter[str](), [log.picodollars for log in logs if log.picodollars is not None]
    for log in logs:
        outcomes.update(log.outcomes)
    return RatingUsage(
        outcomes.total(),
        sum(count for outcome, count in outcomes.items() if outcome.startswith(FALLBACK_OUTCOME)),
        sum(log.calls for log in logs),
        sum(log.tokens.get("input", 0) + log.tokens.get("output", 0) for log in logs),
        sum(priced) / PICO if logs and len(priced) == len(logs) else None,
    )
