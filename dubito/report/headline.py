"""The answer of a run in words, computed from its figures and no surer than their intervals (ranking.py)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import combinations, starmap
from typing import Final

from dubito.errors import listed, one_line
from dubito.experiment.stored import StoredRun
from dubito.llm.prices import PICO, dollars
from dubito.report.result_table import cell_text
from dubito.report.run_tables import difference_of
from dubito.stats.players import fallback_share
from dubito.stats.ranking import FEW, Order, order_of
from dubito.store.model_log import PlayerLog

_NAMES: Final = 4  # that a sentence lists where there are more than one others
_WIDE: Final = ((10**9, "G"), (10**6, "M"), (10**3, "k"))


def headline(source: StoredRun) -> list[str]:
    """What came of the run, a sentence or two; then what its models took, if any played."""
    order = order_of(source.tally, source.names, source.compared(), source.game.results)
    said = [comparison_in_words(order, source.label)]
    return [*said, *(_models(source.models, source.label) if source.models else [])]


def comparison_in_words(order: Order, label: Callable[[str], str] = one_line) -> str:
    """Who is told apart from whom, in a sentence or two; `label` is what it calls a player."""
    order = replace(order, names=[*map(label, order.names)])
    if len(order.names) < 2:
        who = f"Only {order.names[0]}" if order.names else "Nobody"
        return f"{who} played: there is nobody to compare."
    if order.deals < FEW:
        deals = f"{order.deals} deal{'s' * (order.deals != 1)}"
        return f"Too few games to compare anyone: {deals}, at least {FEW} are needed."
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
    """Who of the first group is told apart from the best outside it, by how much at least; and from whom else."""
    other = min(place for group in groups[1:] for place in group)
    better = [place for place in groups[0] if place < other and order.apart(place, other)]
    rest = [place for place in range(len(order.names)) if place > other]
    least = min((order.differences[place, other] for place in better), key=lambda rate: rate.value or 0.0)
    by = cell_text(least, difference_of(order.measure)).replace("+", "")
    value, _, interval = by.partition(" ")
    unit = order.measure.name if order.measure.span else f"points of {order.measure.name}"
    said = f"{_listed([order.names[place] for place in better])} beat{'s' * (len(better) == 1)} "
    same = len({order.differences[place, other].value for place in better}) == 1
    said += f"{order.names[other]} by {'' if same else 'at least '}{value} {unit} {interval}"
    if rest and all(order.apart(one, place) for one in better for place in rest):
        whom = "everybody else" if len(rest) > 1 else order.names[rest[0]]
        said += f", and {whom} by at least as much"
    return said


def _listed(names: Sequence[str]) -> str:
    """A, B and C; of many, the first ones."""
    if len(names) > _NAMES + 1:
        return f"{', '.join(names[:_NAMES])} and {len(names) - _NAMES} others"
    return listed(names)


def _models(models: Mapping[str, PlayerLog], label: Callable[[str], str]) -> list[str]:
    """Tokens, cost and fallbacks of all model players; a player whose every answer was a fallback is named."""
    tokens = sum(log.tokens["input"] + log.tokens["output"] for log in models.values())
    costs = [log.picodollars for log in models.values()]
    cost = _dollars(sum(filter(None, costs))) if None not in costs else "at a cost that is not known"
    shares = {label(name): fallback_share(log.outcomes) for name, log in models.items() if log.decisions}
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
