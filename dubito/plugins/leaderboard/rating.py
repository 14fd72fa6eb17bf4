"""What a player is rated by: over a book's field, beside its worst neighbours, and what exploiters take."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from dubito.experiment.experiment import Experiment
from dubito.experiment.replay import replay_moves
from dubito.experiment.stored import Run, list_contenders
from dubito.game import FALLBACK_OUTCOME, Measure, Results
from dubito.llm.prices import PICO
from dubito.stats.ranking import Contender, contender_ranking
from dubito.stats.rates import Rate, clustered_rate
from dubito.stats.tally import Outcome, Tally
from dubito.store.model_log import PlayerLog

_FEWEST: Final = 5  # games beside somebody, for a mean to be trusted with a choice
_Place = tuple[str, int]  # before, after or opposite: and which player sits there


@dataclass(frozen=True, slots=True)
class BesideWorst:
    """How a player fares beside those who are worst for it: in games with one of them at its side of the table."""

    rate: Rate
    games: int
    who: Mapping[str, Sequence[str]]  # by side: the neighbours that either half of the deals names


@dataclass(frozen=True, slots=True)
class Taken:
    """What an exploiter has above an equal share at a table where all others are the player that is rated.

    A best response would have at least as much, and so would it against the player's own mean, which is no more than an
    chance level:  so it is a lower bound on how exploitable the player is.
    """

    name: str
    deals: int
    rate: Rate  # a difference of the first measure


class RatedGame(NamedTuple):
    """A game of the player that is rated."""

    deal: int
    beside: Sequence[_Place]
    came_to: int  # by the first measure, in units of 1/scale


def mean_rate(tally: Tally, contenders: Sequence[Contender], results: Results) -> Rate:
    (row,) = contender_ranking(tally, contenders, results)
    return row.rates[results.measures[0].key]


def beside_worst(games: Sequence[RatedGame], names: Sequence[str], measure: Measure) -> BesideWorst:
    """By the first measure, beside the worst neighbour at each side.

    Who is worst is a choice, and the games that made it are the player's unlucky ones. So each half of the deals is
    counted beside those whom the other half names.
    """
    named = [_worst([game for game in games if game.deal % 2 != half]) for half in (0, 1)]
    by_deal: defaultdict[int, list[int]] = defaultdict(list)
    for game in games:
        if not named[game.deal % 2].isdisjoint(game.beside):
            by_deal[game.deal].append(game.came_to)
    cells = [(len(ys), sum(ys)) for ys in by_deal.values()]
    m, y = sum(m for m, _ in cells), sum(y for _, y in cells)
    squares = [sum(one * other for one, other in pairs) for pairs in _products(cells)]
    rate = clustered_rate(len(cells), m, squares[0], y, squares[1], squares[2], measure.scale).on(measure.span)
    who: defaultdict[str, list[str]] = defaultdict(list)
    for side, player in sorted(named[0] | named[1]):
        who[side].append(names[player])
    return BesideWorst(rate, m, dict(who))


def _products(cells: Sequence[tuple[int, int]]) -> Iterator[list[tuple[int, int]]]:
    yield [(m, m) for m, _ in cells]
    yield [(y, y) for _, y in cells]
    yield [(y, m) for m, y in cells]


def rated_games(run: Run) -> Iterator[RatedGame]:
    """Those of a run over a book's field."""
    planned, results = run.planned, run.game.results
    for number, row in zip(planned.game_numbers, run.db.outcomes(), strict=False):
        outcome = run.outcome(row)
        seat = outcome.contender_seat or 0
        yield RatedGame(number // planned.games_per_deal, _beside(outcome, seat), outcome.measured(results)[seat][0])


def exploiter_entries(run: Run, names: Iterable[str]) -> list[dict[str, Any]]:
    """The exploiters as a config has them; those who can are fitted to the player's games over the field.

    A bot can whose class has `fitted`: given the player's moves, each with the state before it, it says its settings.
    """
    entries = []
    for name in names:
        fit = getattr(run.registry.find(name).cls, "fitted", None)
        entries.append({"bot": name, **(fit(_own_moves(run)) if fit else {})})
    return entries


def _own_moves(run: Run) -> Iterator[tuple[Any, Any]]:
    """The player's own, over the field."""
    for number, row in zip(run.planned.game_numbers, run.db.outcomes(), strict=False):
        seat = run.outcome(row).contender_seat
        yield from (
            (state, move) for state, move in replay_moves(run, number) if state.seat == seat and move is not None
        )


def _beside(outcome: Outcome, seat: int) -> list[_Place]:
    seats = outcome.seats
    if len(seats) == 2:
        return [("opposite", seats[1 - seat])]
    return [("before", seats[seat - 1]), ("after", seats[(seat + 1) % len(seats)])]


def _worst(games: Sequence[RatedGame]) -> set[_Place]:
    """At each side the neighbour with whom the player came to the least, the first of equals."""
    seen, sums = Counter[_Place](), Counter[_Place]()
    for game in games:
        for place in game.beside:
            seen[place] += 1
            sums[place] += game.came_to
    worst: dict[str, _Place] = {}
    for place in sorted(place for place, count in seen.items() if count >= _FEWEST):
        side = place[0]
        if side not in worst or sums[place] / seen[place] < sums[worst[side]] / seen[worst[side]]:
            worst[side] = place
    return {*worst.values()}


def taken(tally: Tally, experiment: Experiment, results: Results) -> list[Taken]:
    """What each exploiter takes, as the book names them."""
    contenders, key = list_contenders(experiment, {}), results.measures[0].key
    sizes = [(values[0], results.equal_share(size)[key]) for (size,), values in tally.rows("sizes")]
    share = sum(games * one for games, one in sizes) / sum(games for games, _ in sizes)
    rows = {row.contender.name: row for row in contender_ranking(tally, contenders, results)}
    found = [rows[contender.name] for contender in contenders]
    return [Taken(row.contender.name, row.deals, row.rates[key].times(1.0, -share)) for row in found]


@dataclass(frozen=True, slots=True)
class RatingUse:
    """What a player's decisions took, in all that it was rated by."""

    decisions: int
    fallbacks: int  # of these
    calls: int
    tokens: int  # read and written
    usd: float | None  # None: no price is known, or there is nobody to pay


def use_of(logs: Sequence[PlayerLog]) -> RatingUse:
    """Of the logs of all seats that it had, in all runs."""
    outcomes, priced = Counter[str](), [log.picodollars for log in logs if log.picodollars is not None]
    for log in logs:
        outcomes.update(log.outcomes)
    return RatingUse(
        outcomes.total(),
        sum(count for outcome, count in outcomes.items() if outcome.startswith(FALLBACK_OUTCOME)),
        sum(log.calls for log in logs),
        sum(log.tokens.get("input", 0) + log.tokens.get("output", 0) for log in logs),
        sum(priced) / PICO if logs and len(priced) == len(logs) else None,
    )
