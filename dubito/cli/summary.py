"""The summary of a run: ranking, contenders, neighbours, model players, turns, digest."""

from collections.abc import Sequence
from dataclasses import replace

from dubito.cli.output import note, say, show, table
from dubito.experiment.calibration import calibrations
from dubito.experiment.ranking import RankingRow, by_table_size, ranking
from dubito.experiment.runner import Run
from dubito.report.model_tables import models_table
from dubito.report.standings import (
    bot_errors,
    bounds_table,
    calibration_bins,
    calibration_table,
    contender_tables,
    ranking_table,
    sizes_table,
    turns_a_game,
)


def print_summary(run: Run, sizes: bool) -> None:
    """Print everything a run has to show; nothing but a note if no game was kept."""
    if run.tally.games == 0:
        note("no game was finished")
        return
    rows = ranking(run.tally, run.names)
    title = f"{run.tally.games:,} games; 95 % intervals, clustered by deal"
    show(replace(ranking_table(rows), title=title), notes=False)
    show(*contender_tables(run.tally, run.compared))
    _print_neighbours(rows)
    if run.models:
        show(models_table(run.models, run.names))
    deals = run.tally.games // run.experiment.games_per_deal
    show(bounds_table(rows, [player.name for player in run.experiment.contenders], deals))
    if stated := calibrations(run.tally, run.names):
        show(calibration_table(stated), calibration_bins(stated, "calibration-bins"))
    if sizes:
        show(sizes_table(by_table_size(run.tally, run.names), lambda row, measure: row.rates[measure]))
    show(*bot_errors(rows))
    if run.first_fallback is not None:
        say(f"first bot error: {run.first_fallback}")
    say(f"turns a game: {turns_a_game(run.tally)}")
    say(f"results digest: {run.results_digest}")


def _print_neighbours(rows: Sequence[RankingRow]) -> None:
    cells = [[row.name, _decimal(row.deviation_by_next), _decimal(row.deviation_by_prev)] for row in rows]
    title = "Who sits beside: deviation of the hard-win rate over the identities of the next and the previous player"
    table(title, ["bot", "by next", "by prev"], cells)


def _decimal(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"
