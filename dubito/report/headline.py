"""The answer of a run in words, computed from its figures and no surer than their intervals; and ranks with ties.

Two contenders are *told apart* if the 95 % interval of their paired difference does not hold 0. Two players of a field
have no paired difference: they are told apart if their own 95 % intervals do not overlap, which holds however much
they shared the same tables, and their difference is given as wide as both intervals together.

The *rank* of a player is one more than the number of those who are told apart from it as better. So players of a
field with the same rank are not told apart from each other.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, starmap
from typing import Final

from dubito.errors import listed, one_line
from dubito.experiment.contenders import contender_pairs, contender_ranking
from dubito.experiment.fallbacks import fallback_share
from dubito.experiment.ranking import RankingRow
from dubito.experiment.statistics import Rate
from dubito.experiment.stored_run import StoredRun
from dubito.game import Measure
from dubito.llm.prices import PICO, dollars
from dubito.report.result_table import cell_text
from dubito.report.run_tables import difference_of
from dubito.store.records import PlayerLog

_FEW: Final = 10  # deals: of fewer nobody is compared with anybody
_NAMES: Final = 4  # that a sentence lists where there are more than one others
_WIDE: Final = ((10**9, "G"), (10**6, "M"), (10**3, "k"))


@dataclass(frozen=True)
class Order:
    """Players, the best by point estimate first, and what is known of every two of them."""

    names: Sequence[str]
    differences: Mapping[tuple[int, int], Rate]  # by places, of the better one over the other
    measure: Measure
    more_games: int | None = None  # that would tell the first two apart, where that is known

    def apart(self, better: int, other: int) -> bool:
        """Whether the better one is told apart from the other."""
        rate = self.differences[better, other]
        return rate.value is not None and rate.low > 0

    @property
    def ranks(self) -> list[int]:
        """1 for the best, and the same for those that nobody is told apart from as better."""
        return [1 + sum(self.apart(better, place) for better in range(place)) for place in range(len(self.names))]


def of_field(rows: Sequence[RankingRow], measure: Measure) -> Order:
    """The order of a ranking; who never played is not in it."""
    played = [row for row in rows if row.games]
    rates = [row.rates[measure.key] for row in played]
    differences = {
        (one, other): _difference(rates[one], rates[other]) for one, other in combinations(range(len(played)), 2)
    }
    return Order([row.name for row in played], differences, measure)


def _difference(one: Rate, other: Rate) -> Rate:
    return Rate((one.value or 0.0) - (other.value or 0.0), one.low - other.high, one.high - other.low)


def of_contenders(source: StoredRun) -> Order | None:
    """The order of a run's contenders by paired differences; None where there are not two."""
    results, contenders = source.game.results, source.compared()
    measure = results.measure(results.headline[0])
    names = [row.contender.name for row in contender_ranking(source.tally, contenders, results)]
    pairs = contender_pairs(source.tally, contenders, results)
    if not pairs:
        return None
    places = combinations(range(len(names)), 2)  # in which the pairs come
    found = {place: pair.differences[measure.key].rate for place, pair in zip(places, pairs, strict=True)}
    return Order(names, found, measure, pairs[0].differences[measure.key].more_games)


def headline(source: StoredRun, rows: Sequence[RankingRow]) -> list[str]:
    """What came of the run, a sentence or two; then what its models took, if any played."""
    field = of_field(rows, source.game.results.measures[0])
    order = (of_contenders(source) if source.contenders else None) or field
    said = [comparison_in_words(order, source.deals)]
    return [*said, *(_models(source.models) if source.models else [])]


def comparison_in_words(order: Order, deals: int) -> str:
    """Who is told apart from whom after so many deals, in a sentence or two."""
    if len(order.names) < 2:
        who = f"Only {one_line(order.names[0])}" if order.names else "Nobody"
        return f"{who} played: there is nobody to compare."
    if deals < _FEW:
        return f"Too few games to compare anyone: {deals} deal{'s' * (deals != 1)}, at least {_FEW} are needed."
    ranks = order.ranks
    groups = [[place for place, rank in enumerate(ranks) if rank == one] for one in sorted({*ranks})]
    said = [_ahead(order, groups)] if len(groups) > 1 else []
    tied = [group for group in groups if len(group) > 1 and not any(starmap(order.apart, combinations(group, 2)))]
    said += [f"{_listed([order.names[place] for place in group])} are not told apart" for group in tied]
    text = "; ".join(filter(None, said)) + "."
    if ranks[:2] == [1, 1] and order.more_games:
        text += f" About {order.more_games:,} more games would tell the first two apart."
    return text


def _ahead(order: Order, groups: Sequence[Sequence[int]]) -> str:
    """Who of the first group is told apart from the best outside it, by how much; and from whom else."""
    other = min(place for group in groups[1:] for place in group)
    better = next(place for place in range(other) if order.apart(place, other))
    alone = len(groups[0]) == 1
    rest = [place for place in range(len(order.names)) if place > other]
    whom = one_line(order.names[other])
    by = cell_text(order.differences[better, other], difference_of(order.measure)).replace("+", "")
    value, _, interval = by.partition(" ")
    unit = order.measure.name if order.measure.span else f"points of {order.measure.name}"
    said = f"{one_line(order.names[better])} beats {whom} by {value} {unit} {interval}"
    if alone and rest and all(order.apart(better, place) for place in rest):
        whom = "everybody else" if len(rest) > 1 else one_line(order.names[rest[0]])
        said += f", and {whom} by at least as much"
    return said


def _listed(names: Sequence[str]) -> str:
    """A, B and C; of many, the first ones."""
    if len(names) > _NAMES + 1:
        return f"{', '.join(map(one_line, names[:_NAMES]))} and {len(names) - _NAMES} others"
    return listed([*map(one_line, names)])


def _models(models: Mapping[str, PlayerLog]) -> list[str]:
    """Tokens, cost and fallbacks of all model players; a player whose every answer was a fallback is named."""
    tokens = sum(log.tokens["input"] + log.tokens["output"] for log in models.values())
    costs = [log.picodollars for log in models.values()]
    cost = _dollars(sum(filter(None, costs))) if None not in costs else "at a cost that is not known"
    shares = {one_line(name): fallback_share(log.outcomes) for name, log in models.items() if log.decisions}
    some = {name: share for name, share in shares.items() if 0 < share < 1}
    every = [name for name, share in shares.items() if share == 1]
    said = [f"{_many(tokens)} tokens, {cost}{'' if some or every else ', no fallback'}."]
    if some:
        parts = [f"{_percent(share)} of the answers of {name}" for name, share in some.items()]
        said.append(f"Fallbacks gave {' and '.join(parts)}.")
    if every:
        said.append(f"All answers of {' and '.join(every)} were fallbacks: this run says nothing about the model.")
    return said


def _percent(share: float) -> str:
    return "less than 0.1 %" if share < 0.001 else f"{100 * min(share, 0.999):.1f} %"


def _many(count: int) -> str:
    """5.9 M."""
    for size, unit in _WIDE:
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count}"


def _dollars(pico: int) -> str:
    """To the cent, or as exact as it takes."""
    return dollars(pico) if 0 < pico < PICO // 100 else f"${pico / PICO:,.2f}"
