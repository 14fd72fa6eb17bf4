"""The summary of a run: ranking, contenders, neighbours, model players, turns, digest."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from dubito.cli import output
from dubito.cli.output import note, say
from dubito.errors import one_line
from dubito.experiment.experiment import labelled_by, stand_ins_in_words
from dubito.experiment.run import Run
from dubito.report.run_tables import (
    bot_errors,
    bounds_table,
    calibration_bins,
    calibration_table,
    contender_tables,
    duel_tables,
    models_table,
    ranking_table,
    sizes_table,
    turns_a_game,
)
from dubito.report.tables import ResultTable, Value, named, texts
from dubito.stats.players import calibrations
from dubito.stats.ranking import RankingRow, by_table_size, order_of, ranking


def print_summary(run: Run, sizes: bool) -> None:
    """Print everything a run has to show; nothing but a note if no game is published."""
    if run.tally.games == 0:
        finished = run.standing.finished if run.standing else 0
        note(
            f"no game is published: {finished:,} are finished, all behind a deal that is not"
            if finished
            else "no game was finished"
        )
        return
    results, show = run.game.results, partial(output.show, kinds=run.kinds)
    if stand_ins := stand_ins_in_words(run.kinds):
        say(stand_ins)
    rows = ranking(run.tally, run.names, results)
    order = order_of(run.tally, run.names, run.compared, results)
    title = f"{run.tally.games:,} games; 95 % intervals, clustered by deal"
    title += "; ranks are those of the contenders, by their paired differences" if order.paired else ""
    show(replace(ranking_table(rows, order, results, twice=run.game.lineup == "uniform"), title=title), notes=False)
    show(*contender_tables(run.tally, run.compared, results), notes=False)
    if run.game.has_neighbours:
        show(_neighbours(rows, results.rate))
    if run.game.is_duel:
        show(*duel_tables(run.tally, run.names, results, labelled_by(run.kinds)))
    if run.models:
        show(models_table(run.models, run.names))
    own = run.tally.games // max(1, len(run.experiment.contenders))  # games of each contender as one
    show(bounds_table(rows, [player.name for player in run.experiment.contenders], own, results))
    if stated := calibrations(run.tally, run.names):
        show(calibration_table(stated, results.stated), calibration_bins(stated, "calibration-bins"))
    if sizes and len(run.experiment.table_sizes) > 1:
        rows_by_size = by_table_size(run.tally, run.names, results)
        show(sizes_table(rows_by_size, lambda row, measure: row.rates[measure], results))
    show(*bot_errors(rows))
    if run.first_fallback is not None:
        say(f"first bot error: {run.first_fallback}")
    for name, text in run.said.items():
        say(f"{one_line(name)}: {text}")
    say(f"turns a game: {turns_a_game(run.tally, results)}")
    say(f"results digest: {run.results_digest}")


def _neighbours(rows: Sequence[RankingRow], rate: str) -> ResultTable:
    cells: list[list[Value]] = [
        [row.name, _decimal(row.deviation_by_next), _decimal(row.deviation_by_prev)] for row in rows
    ]
    title = f"Who sits beside: deviation of the {rate} over the identities of the next and the previous player"
    return ResultTable("beside", title, [*named("bot"), *texts("by next", "by prev")], cells)


def _decimal(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"
