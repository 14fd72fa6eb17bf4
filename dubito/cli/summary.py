"""The summary of a run: ranking, contenders, neighbours, turns, digest."""

from typing import Final

from dubito.cli.calibration import print_calibration
from dubito.cli.contenders import BOUNDS_HEADERS, bounds_cells, print_contenders
from dubito.cli.output import note, percent, percent_with_interval, say, table
from dubito.errors import one_line
from dubito.experiment.contenders import Contender
from dubito.experiment.fallbacks import fallback_share
from dubito.experiment.ranking import Row, by_table_size, ranking
from dubito.experiment.runner import Run
from dubito.llm.prices import dollars
from dubito.store.model_log import PlayerLog

_RATES: Final = {
    "score": "Score %",
    "hard_wins": "hard %",
    "soft_wins": "soft %",
    "losses": "loss %",
    "unfinished": "unfinished %",
}


def print_summary(run: Run, sizes: bool) -> None:
    """Print everything a run has to show; nothing but a note if no game was kept."""
    if run.tally.games == 0:
        note("no game was finished")
        return
    rows = ranking(run.tally, run.names)
    _print_ranking(run, rows)
    print_contenders(run.tally, _contenders(run))
    _print_neighbours(rows)
    if run.models:
        _print_models(run)
    _print_bounds(run, rows)
    print_calibration(run.tally, run.names)
    if sizes:
        _print_sizes(run)
    _print_fallbacks(run, rows)
    _print_turns(run)
    say(f"results digest: {run.results_digest}")


def _print_ranking(run: Run, rows: list[Row]) -> None:
    headers = ["bot", "games", *_RATES.values(), "equal share: Score", "hard"]
    cells = [
        [
            row.name,
            f"{row.games}",
            *(percent_with_interval(row.rates[measure]) for measure in _RATES),
            percent(row.equal_share["score"]),
            percent(row.equal_share["hard_wins"]),
        ]
        for row in rows
    ]
    table(f"{run.tally.games:,} games; 95 % intervals, clustered by deal", headers, cells)


def _contenders(run: Run) -> list[Contender]:
    logs = {name: log.outcomes for name, log in run.models.items()}
    names = (player.name for player in run.experiment.contenders)
    return [Contender(name, fallback_share=fallback_share(logs.get(name, {}))) for name in names]


def _print_neighbours(rows: list[Row]) -> None:
    cells = [[row.name, _decimal(row.deviation_by_next), _decimal(row.deviation_by_prev)] for row in rows]
    title = "Who sits beside: deviation of the hard-win rate over the identities of the next and the previous player"
    table(title, ["bot", "by next", "by prev"], cells)


def _print_models(run: Run) -> None:
    causes = sorted({outcome for log in run.models.values() for outcome in log.outcomes if ":" in outcome})
    headers = ["model player", "decisions", "fallback %", *causes, "re-asks", "calls", "cache %"]
    headers += ["tokens in", "of them cached", "out", "cost", "cost a game", "saved by the provider's cache"]
    cells = []
    for name, log in run.models.items():
        fallbacks = [log.outcomes.get(cause, 0) for cause in causes]
        cells.append(
            [
                name,
                f"{log.decisions}",
                percent(sum(fallbacks) / log.decisions if log.decisions else None),
                *(percent(count / log.decisions if log.decisions else None) for count in fallbacks),
                f"{log.reasks}",
                f"{log.calls}",
                percent(log.cached / log.attempts if log.attempts else None),
                f"{log.tokens['input']}",
                f"{log.tokens['cached']}",
                f"{log.tokens['output']}",
                *_costs(log),
            ]
        )
    table("Model players", headers, cells)
    for name, log in run.models.items():
        if log.assumed:
            say(f"assumed: {log.assumed} calls of {one_line(name)} did not say their cost: counted at the worst")
        if log.beyond:
            say(
                f"more than was reserved: {log.beyond} calls of {one_line(name)} used it, which no budget can prevent; "
                f"of the first {log.first_beyond}"
            )
        if log.deadlines:
            say(f"not repeatable: {log.deadlines} calls of {one_line(name)} were cut off by their deadline")


def _costs(log: PlayerLog) -> list[str]:
    """What this run's calls cost, in all and a game, and what the provider's cache saved; dashes without a price."""
    if log.picodollars is None:
        return ["-"] * 3
    each = dollars(log.picodollars // log.games) if log.games else "-"
    return [dollars(log.picodollars), each, dollars(log.saved)]


def _decimal(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def _print_sizes(run: Run) -> None:
    headers = ["bot", "size", "games", *_RATES.values(), "equal share: Score", "hard"]
    cells = [
        [
            row.name,
            f"{row.size}",
            f"{row.games}",
            *(percent(row.rates[measure]) for measure in _RATES),
            percent(row.equal_share["score"]),
            percent(row.equal_share["hard_wins"]),
        ]
        for row in by_table_size(run.tally, run.names)
    ]
    table("By table size", headers, cells)


def _print_bounds(run: Run, rows: list[Row]) -> None:
    """What Score and hard wins would be, had every game with a model's fallback been lost, or been a hard win.

    Of who sat only in the contenders' seat, the contenders' table says it.
    """
    deals = run.tally.games // run.experiment.games_per_deal
    contending = {player.name for player in run.experiment.contenders}
    cells = [
        [row.name, f"{row.games}", *bounds_cells(row.bounds)]
        for row in rows
        if row.bounds.touched and not (row.name in contending and row.games == deals)
    ]
    if cells:
        title = "Fallbacks in all seats: had every game with one been lost, or been a hard win"
        table(title, ["model player", "games", *BOUNDS_HEADERS], cells)


def _print_fallbacks(run: Run, rows: list[Row]) -> None:
    for row in rows:
        if row.fallback_turns:
            say(f"fallback: {row.fallback_turns} turns of {row.name} were played by the fallback after bot errors")
    if run.first_fallback is not None:
        say(f"first bot error: {run.first_fallback}")


def _print_turns(run: Run) -> None:
    games, turns, free = (sum(values[place] for _, values in run.tally.rows("sizes")) for place in range(3))
    say(f"turns a game: {turns / games:.1f} without free turns, {(turns + free) / games:.1f} with them")
