"""Contenders compared, as tables: `dubito run` shows them for its run, `dubito compare` for several."""

from collections.abc import Sequence
from typing import Final

from dubito.cli.output import percent, percent_with_interval, say, table
from dubito.errors import one_line
from dubito.experiment.contenders import (
    Contender,
    ContenderRow,
    Difference,
    PairRow,
    as_systems,
    contender_pairs,
    contender_ranking,
)
from dubito.experiment.fallbacks import Bounds
from dubito.experiment.tally import Tally


def print_contenders(tally: Tally, contenders: Sequence[Contender]) -> None:
    """Print the contenders, every pair of them, and a warning if more than models is compared."""
    rows = contender_ranking(tally, contenders)
    if not rows:
        return
    _print_rows(rows)
    if pairs := contender_pairs(tally, contenders):
        _print_pairs(pairs, rows[0].deals)
    if two := as_systems(contenders):
        most, least = two
        say(
            f"warning: fallbacks took {percent(most.fallback_share)} % of the decisions of {one_line(most.name)} and "
            f"{percent(least.fallback_share)} % of those of {one_line(least.name)}: this compares systems (model, "
            "prompt and fallback), not models"
        )


def _print_rows(rows: Sequence[ContenderRow]) -> None:
    cells = []
    for row in rows:
        rates = (percent_with_interval(row.rates[measure]) for measure in ("score", "hard_wins"))
        cells.append([row.contender.name, f"{row.deals}", *rates])
    table("Contenders, in the same seat of the same deals", ["contender", "deals", "Score %", "hard %"], cells)
    if any(row.bounds.touched for row in rows):
        cells = [[row.contender.name, percent(row.contender.fallback_share), *bounds_cells(row.bounds)] for row in rows]
        title = "Fallbacks of contenders: had every game with one been lost, or been a hard win"
        table(title, ["contender", "decisions %", *BOUNDS_HEADERS], cells)


BOUNDS_HEADERS: Final = ("games %", "Score, worst to best", "hard, worst to best")


def bounds_cells(bounds: Bounds) -> list[str]:
    """The share of games with a fallback, and both ends of Score and hard wins; all in percent."""
    ends = (f"{percent(low)} to {percent(high)}" for low, high in (bounds.score, bounds.hard_wins))
    return [percent(bounds.touched / bounds.seats if bounds.seats else None), *ends]


def _print_pairs(pairs: Sequence[PairRow], deals: int) -> None:
    headers = ["contender", "against", "Score", "told apart by Score", "hard", "told apart by hard"]
    cells = []
    for pair in pairs:
        cells.append([pair.one.name, pair.other.name])
        for difference in (pair.score, pair.hard_wins):
            cells[-1] += [percent_with_interval(difference.rate, signed=True), _more(difference)]
    table(f"Every pair: differences in points on {deals:,} common deals", headers, cells)


def _more(difference: Difference) -> str:
    if difference.more_games is None:
        return "no number of games we can name"
    return f"about {difference.more_games:,} more games" if difference.more_games else "yes"
