"""The summary of a run: ranking, contenders, neighbours, turns, digest."""

from typing import Final

from dubito.cli.output import note, percent, percent_with_interval, say, table
from dubito.experiment.ranking import Row, by_table_size, contender_ranking, ranking
from dubito.experiment.runner import Run

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
    _print_contenders(run)
    _print_neighbours(rows)
    if run.models:
        _print_models(run)
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


def _print_contenders(run: Run) -> None:
    names = [player.name for player in run.experiment.contenders]
    rows = contender_ranking(run.tally, names)
    if not rows:
        return
    cells = []
    for row in rows:
        differences = [
            "best" if rate is None else percent_with_interval(rate, signed=True)
            for rate in (row.score_difference, row.hard_difference)
        ]
        rates = (percent_with_interval(row.rates[measure]) for measure in ("score", "hard_wins"))
        cells.append([row.name, f"{row.deals}", *rates, *differences])
    headers = ["contender", "deals", "Score %", "hard %", "Score - best", "hard - best"]
    table("Contenders, in the same seat of the same deals; paired differences", headers, cells)


def _print_neighbours(rows: list[Row]) -> None:
    cells = [[row.name, _decimal(row.deviation_by_next), _decimal(row.deviation_by_prev)] for row in rows]
    title = "Who sits beside: deviation of the hard-win rate over the identities of the next and the previous player"
    table(title, ["bot", "by next", "by prev"], cells)


def _print_models(run: Run) -> None:
    causes = sorted({outcome for log in run.models.values() for outcome in log.outcomes if ":" in outcome})
    headers = ["model player", "decisions", "fallback %", *causes, "re-asks", "calls", "cache %"]
    headers += ["tokens in", "of them cached", "out"]
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
            ]
        )
    table("Model players", headers, cells)


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


def _print_fallbacks(run: Run, rows: list[Row]) -> None:
    for row in rows:
        if row.fallback_turns:
            say(f"fallback: {row.fallback_turns} turns of {row.name} were played by the fallback after bot errors")
    if run.first_fallback is not None:
        say(f"first bot error: {run.first_fallback}")


def _print_turns(run: Run) -> None:
    games, turns, free = (sum(values[place] for _, values in run.tally.rows("sizes")) for place in range(3))
    say(f"turns a game: {turns / games:.1f} without free turns, {(turns + free) / games:.1f} with them")
