"""What a run has to show once it has ended: its summary, its report, its object for `--json`, its exit code."""

import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from shlex import quote
from shutil import which
from textwrap import fill
from typing import Final

from dubito.cli import output
from dubito.cli.output import note, say, table
from dubito.errors import BotError, GameError, RunStopped, UsageError, one_line, signal_in_words
from dubito.experiment.experiment import describe_fake_models, player_labels
from dubito.experiment.replay import count_lies_in_folder
from dubito.experiment.run import RunResult
from dubito.game import EXTRACTED_OUTCOME, FALLBACK_OUTCOME
from dubito.llm.prices import PICO
from dubito.report import documents
from dubito.report.documents import RunObject
from dubito.report.run_tables import (
    bot_errors,
    bounds_table,
    calibration_bins,
    calibration_table,
    contender_tables,
    contenders_among_opponents,
    duel_tables,
    models_table,
    opponents_table,
    ranking_table,
    sizes_table,
    turns_a_game,
)
from dubito.report.tables import ResultTable, Value, cell_text, kind_of, player_columns, texts
from dubito.report.verdicts import verdict_in_words
from dubito.stats.players import calibrations
from dubito.stats.ranking import (
    Order,
    RankingRow,
    by_table_size,
    contender_ranking,
    rank_players,
    ranking,
)

_FIRST: Final = 5  # rows of a ranking that a run ends with


def print_summary(run: RunResult, tables: bool, sizes: bool = False) -> None:
    """Print how a run has ended, or all its tables; only a note if no game is counted."""
    if run.tally.games == 0:
        note(run.counts.reason_for_no_results)
    elif tables:
        print_tables(run, sizes)
    else:
        if stand_ins := describe_fake_models(run.experiment.kinds):
            say(stand_ins)
        print_end(run)
        _print_said(run)


def _order(run: RunResult) -> Order:
    return rank_players(run.tally, run.experiment.names, run.contenders, run.game.results, run.models)


def print_end(run: RunResult) -> None:
    """Print the first players, who beats whom, and what models were asked and cost."""
    results = run.game.results
    first, order = results.measures[0], _order(run)
    if order.paired:  # those who are compared, on their common deals; the others only sat there
        contenders = contender_ranking(run.tally, run.contenders, results)
        rows = [(row.contender.name, row.deals, row.rates) for row in contenders]
        rows.sort(key=lambda row: order.names.index(row[0]))
    else:
        rows = [(row.name, row.games, row.rates) for row in ranking(run.tally, run.experiment.names, results)]
    kinds = run.experiment.kinds
    cells = [
        [
            name,
            kinds[name],
            cell_text(order.rank(name), "count"),
            f"{of:,}",
            cell_text(rates[first.key], kind_of(first)),
        ]
        for name, of, rates in rows[:_FIRST]
    ]
    rated = first.name if first.span else f"{first.name} %"
    title = f"{run.tally.games:,} games"
    if order.paired:
        seat = "the same seat" if run.contenders[0].seats == 1 else "both seats"
        title += f", each contender in {seat} of each deal"
    title += f"; the first {_FIRST} of {len(rows)}" if len(rows) > _FIRST else ""
    counted = "deals" if order.paired else "games"
    table(title, ["player", "kind", "rank", counted, f"{rated} [95 % interval]"], cells)
    say(fill(verdict_in_words(order, player_labels(kinds)), 79, break_on_hyphens=False))
    if run.models:
        say(_asked_in_words(run))


def _asked_in_words(run: RunResult) -> str:
    """What models were asked, what it cost, and how often the fallback answered, by cause."""
    logs, outcomes = run.models.values(), Counter[str]()
    for log in logs:
        outcomes.update(log.outcomes)
    causes = {
        outcome.removeprefix(FALLBACK_OUTCOME): count
        for outcome, count in sorted(outcomes.items())
        if outcome.startswith(FALLBACK_OUTCOME)
    }
    whose = f" ({', '.join(f'{cause} {count}' for cause, count in causes.items())})" if causes else ""
    asked = f"{outcomes.total():,} decisions, {sum(log.calls for log in logs):,} calls"
    asked += f" ({reasks:,} re-ask{'s' * (reasks > 1)})" if (reasks := sum(log.reasks for log in logs)) else ""
    extracted = sum(count for outcome, count in outcomes.items() if outcome.endswith(EXTRACTED_OUTCOME))
    asked += f", {extracted:,} answers taken out of longer replies" if extracted else ""
    costs = [log.picodollars for log in logs if log.picodollars is not None]
    asked += f", ${sum(costs) / PICO:.4f}" if costs else ""
    kinds = {run.experiment.kinds[name] for name in run.models}
    return f"{'stand-ins' if kinds == {'stand-in'} else 'models'}: {asked}; fallbacks: {sum(causes.values())}{whose}"


def cached_in_words(run: RunResult, now: float) -> str:
    """Say how many replies came from the cache, and how old the oldest is where that is a day or more."""
    logs = run.models.values()
    if not (cached := sum(log.cached for log in logs)):
        return ""
    days = int((now - run.oldest_reply) / 86_400) if run.oldest_reply else 0
    age = f", the oldest {days:,} day{'s' * (days > 1)} old" if days > 0 else ""
    return f"{cached:,} of {sum(log.attempts for log in logs):,} replies came from the cache{age}"


def _print_said(run: RunResult) -> None:
    """What a user has to know of it, whatever else is shown."""
    if run.first_fallback is not None:
        say(f"first bot error: {run.first_fallback}")
    for name, text in run.bot_notes.items():
        say(f"{one_line(name)}: {text}")
    if cached := cached_in_words(run, time.time()):
        say(cached)


def print_tables(run: RunResult, sizes: bool) -> None:
    """Print everything a run has to show."""
    results, show = run.game.results, partial(output.show, kinds=run.experiment.kinds)
    if stand_ins := describe_fake_models(run.experiment.kinds):
        say(stand_ins)
    rows, twice = ranking(run.tally, run.experiment.names, results), run.game.lineup == "uniform"
    order = _order(run)
    said = fill(verdict_in_words(order, player_labels(run.experiment.kinds)), 79, break_on_hyphens=False)
    title = f"{run.tally.games:,} games; 95 % intervals, clustered by deal"
    title += ", for a fixed number of deals" if run.experiment.stop else ""
    compared = contender_tables(run.tally, run.contenders, results)
    if order.paired:
        say(said)
        show(*compared, notes=False)
        show(opponents_table(rows, order, results, f"Opponents, in {title}", twice=twice), notes=False)
        if both := contenders_among_opponents(order, [player.name for player in run.experiment.bots]):
            say(fill(both, 79))
    else:
        say(said)
        show(replace(ranking_table(rows, order, results, twice=twice), title=title), *compared, notes=False)
    if run.game.has_neighbours:
        show(_neighbours(rows, results.rate))
    if run.game.is_duel:
        show(*duel_tables(run.tally, run.experiment.names, results, player_labels(run.experiment.kinds)))
    if run.models:
        show(models_table(run.models, run.experiment.names))
    own = run.tally.games // max(1, len(run.experiment.contenders))  # games of each contender as one
    show(bounds_table(rows, [player.name for player in run.experiment.contenders], own, results))
    if stated := calibrations(run.tally, run.experiment.names):
        show(calibration_table(stated, results.stated), calibration_bins(stated, "calibration-bins"))
    if sizes and len(run.experiment.table_sizes) > 1:
        rows_by_size = by_table_size(run.tally, run.experiment.names, results)
        show(sizes_table(rows_by_size, lambda row, measure: row.rates[measure], results))
    show(*bot_errors(rows))
    _print_said(run)
    say(f"turns a game: {turns_a_game(run.tally, results)}")
    say(f"results digest: {run.results_digest}")


def _neighbours(rows: Sequence[RankingRow], rate: str) -> ResultTable:
    cells: list[list[Value]] = []
    for row in rows:
        deviations = row.deviation_by_next, row.deviation_by_prev
        cells.append([row.name, *("-" if one is None else f"{one:.2f}" for one in deviations)])
    title = f"Who sits beside: deviation of the {rate} over the identities of the next and the previous player"
    return ResultTable("beside", title, [*player_columns("bot"), *texts("by next", "by prev")], cells)


def say_report(folder: Path, new: bool) -> None:
    index = written_report(folder, new)
    if index is not None:
        say(f"report: {index}")


def written_report(folder: Path, new: bool) -> Path | None:
    """The first page of the run's report, written if there is something new to show; None where it cannot be."""
    from dubito.report.site import FOLDER, write_report  # late: not every run has pages

    index = folder / FOLDER / "index.html"
    try:
        if new or not index.exists():
            write_report(folder)
        return index
    except (RunStopped, UsageError) as error:  # the run stands as it is
        note(f"no report: {one_line(str(error), 400)}")
        return None


def document_of(run: RunResult, report: Path | None) -> RunObject:
    """What the run has to show, as `--json` has it."""
    experiment, results, kept, folder = run.experiment, run.game.results, run.counts.counted, str(run.folder)
    stopped = signal_in_words(run.stop_signal) if run.interrupted else None
    if run.failure is not None:
        stopped = one_line(str(run.failure), 600)
    lies = count_lies_in_folder(run.folder) if kept else None
    return RunObject(
        folder=folder,
        game=run.game.name,
        seed=experiment.seed,
        games=experiment.games,
        kept=kept,
        finished=run.counts.finished,
        state="stopped" if stopped else "finished",
        stopped=stopped,
        results_digest=run.results_digest if kept else None,
        verdict=verdict_in_words(_order(run), player_labels(experiment.kinds)) if kept else None,
        ranking=documents.players(run.tally, run.experiment.kinds, _order(run), results, lies) if kept else [],
        contenders=documents.contenders(run.tally, run.contenders, results, [folder]) if kept else [],
        pairs=documents.pairs(run.tally, run.contenders, results) if kept else [],
        comparison=documents.comparison(run.tally, run.contenders, results) if kept else None,
        models=documents.model_uses(run.models, run.experiment.kinds),
        report=None if report is None else str(report),
    )


_EDITED: Final = (
    "a bot whose file you edit is a new player: the same command will start a new run, from the first "
    "game (where --output was given, give another)"
)
_MENDED: Final = (
    "whatever on_bot_error says, since no player is to blame; a game that was mended is a new one, whose runs start "
    "from the first game"
)


def exit_code(run: RunResult, command: str = "the same command") -> int:
    """Say why the run stopped, if it did, what was kept, and which command resumes it."""
    if run.failure is None and not run.interrupted:
        return 0
    why = f"stopped by {signal_in_words(run.stop_signal)}" if run.failure is None else one_line(str(run.failure), 600)
    edited = _EDITED if isinstance(run.failure, BotError) else _MENDED if isinstance(run.failure, GameError) else ""
    then = f"; {edited}" if edited else f", and {command} resumes from there"
    note(f"dubito: {why}; {_what_is_kept(run)}{then}")
    return 128 + run.stop_signal if run.failure is None else 3


def _what_is_kept(run: RunResult) -> str:
    if not run.counts.replies and run.counts.finished == run.counts.counted:
        return f"{run.counts.counted:,} of {run.experiment.games:,} games are kept in {run.folder}"
    return f"{run.counts} (none of them will be paid for again) in {run.folder}"


def say_folder(folder: Path, tables: bool, run: RunResult | None = None) -> None:
    """Where a run lies, what shows more of it, and what makes it longer, if it is `run` that ends here."""
    say(f"run folder: {folder}")
    if run is not None and (games := _games_that_tell_apart(run)) is not None:
        say(f"with more games: the same command with --games {games}")
    if not tables:
        say(f"in a browser: {command_called()} report {quote(str(folder))} --open; every table here: add --tables")


def _games_that_tell_apart(run: RunResult) -> int | None:
    """Return how many games would probably show a difference between the first two; None if they do, or if unknown."""
    if run.experiment.stop or run.experiment.shard:
        return None
    order = _order(run)
    if not order.more_games:
        return None
    a_deal = run.experiment.games_per_deal
    return -(-(run.tally.games + order.more_games) // a_deal) * a_deal


def command_called() -> str:
    """How this command was called: README never activates the environment that it makes."""
    path = Path(sys.argv[0])
    if path.name != "dubito" or which("dubito") == str(path):
        return "dubito"
    return quote(str(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path))
