"""What is printed after a run: its summary, report, `--json` object and exit code."""

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Final

from dubito.cli import output
from dubito.cli.output import note, say, table
from dubito.commands import build_command, repeat_command
from dubito.errors import BotError, GameError, RunStopped, UsageError, describe_signal, one_line
from dubito.experiment.experiment import describe_claims, describe_fake_models, list_claims, player_labels
from dubito.experiment.lies import count_lies_in_folder
from dubito.experiment.run import RunResult
from dubito.experiment.saved_config import continue_command
from dubito.game import EXTRACTED_OUTCOMES, FALLBACK_OUTCOME
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
    turns_per_game,
)
from dubito.report.tables import Column, ResultTable, cell_text, column_kind, kind_title
from dubito.report.verdicts import describe_verdict
from dubito.stats.players import calibrations
from dubito.stats.ranking import RankingRow, by_table_size, contender_ranking, ranking, relate_players
from dubito.stats.relation import Relation
from dubito.store.folder import list_not_enforced, load_manifest
from dubito.store.spend import dollars

if TYPE_CHECKING:
    from dubito.experiment.chance import ChanceLine
    from dubito.report.documents import RunObject

_MAX_SUMMARY_ROWS: Final = 5


def print_summary(run: RunResult, tables: bool, sizes: bool = False) -> None:
    """Print a summary of the run or all its tables, or only a note if no game is counted."""
    if run.tally.games == 0:
        note(run.counts.reason_for_no_results)
    elif tables:
        print_tables(run, sizes)
    else:
        if fake_models := describe_fake_models(run.experiment.kinds):
            say(fake_models)
        print_end(run)
        _print_notes(run)


def _relate(run: RunResult) -> Relation:
    return relate_players(run.tally, run.experiment.names, run.contenders, run.game.results)


def print_end(run: RunResult) -> None:
    """Print the verdict, the best players, and the models' calls and cost."""
    results, kinds = run.game.results, run.experiment.kinds
    first, relation = results.measures[0], _relate(run)
    say(fill(describe_verdict(relation, player_labels(kinds)), 79, break_on_hyphens=False))
    # Only the contenders are compared, on their common deals. The opponents filled the other seats.
    if relation.paired:
        contenders = contender_ranking(run.tally, run.contenders, results)
        rows = [(row.contender.name, row.deals, row.rates) for row in contenders]
        rows.sort(key=lambda row: relation.names.index(row[0]))
    else:
        rows = [(row.name, row.games, row.rates) for row in ranking(run.tally, run.experiment.names, results)]
    cells = [
        [
            name,
            kinds[name],
            cell_text(relation.rank(name), "count"),
            f"{of:,}",
            cell_text(rates[first.key], column_kind(first)),
        ]
        for name, of, rates in rows[:_MAX_SUMMARY_ROWS]
    ]
    rated = first.name if first.span else f"{first.name} %"
    title = f"{run.tally.games:,} games"
    if relation.paired:
        seat = "the same seat" if run.contenders[0].seats == 1 else "both seats"
        title += f"; every contender took {seat} in every deal"
    title += f"; the best {_MAX_SUMMARY_ROWS} of {len(rows)}" if len(rows) > _MAX_SUMMARY_ROWS else ""
    counted = "deals" if relation.paired else "games"
    table(title, ["player", kind_title(kinds.values()), "rank", counted, f"{rated} [95 % CI]"], cells)
    _print_chance(run)
    if run.models:
        say(_describe_model_use(run))
    if claims := describe_claims(kinds):
        say(fill(claims, 79, break_on_hyphens=False))


def _find_chance(run: RunResult) -> "ChanceLine | None":
    if not run.run.has_records:
        return None
    from dubito.experiment.chance import find_chance  # imported late, since runs of bots need no scale

    return find_chance(run.run, run.tally.games // run.experiment.games_per_deal)


def _print_chance(run: RunResult) -> None:
    """Print where chance stands, for models to be compared with."""
    first = run.game.results.measures[0]
    if line := _find_chance(run):
        level = cell_text(line.rates[first.key], column_kind(first))
        say(f"random play ({line.bot}) in the same seats: {level}")


def _describe_model_use(run: RunResult) -> str:
    """Describe the decisions and calls of all models, their cost, and the fallbacks by cause."""
    logs, outcomes = run.models.values(), Counter[str]()
    for log in logs:
        outcomes.update(log.outcomes)
    causes = {
        outcome.removeprefix(FALLBACK_OUTCOME): count
        for outcome, count in sorted(outcomes.items())
        if outcome.startswith(FALLBACK_OUTCOME)
    }
    by_cause = f" ({', '.join(f'{cause} {count}' for cause, count in causes.items())})" if causes else ""
    use = f"{outcomes.total():,} decisions, {sum(log.calls for log in logs):,} calls"
    use += f" ({reasks:,} re-ask{'s' * (reasks > 1)})" if (reasks := sum(log.reasks for log in logs)) else ""
    for part, suffix in EXTRACTED_OUTCOMES.items():
        extracted = sum(count for outcome, count in outcomes.items() if outcome.endswith(suffix))
        source = "longer replies" if part == "last_object" else "the reasoning"
        use += f", {extracted:,} answers extracted from {source}" if extracted else ""
    costs = [log.picodollars for log in logs if log.picodollars is not None]
    use += f", {dollars(sum(costs))}" if costs else ""
    if costs and (unsure := sum(log.at_worst - log.likely for log in logs)):
        use += f" (at most {dollars(sum(costs) + unsure)}, which counts against the budget)"
    kinds = {run.experiment.kinds[name] for name in run.models}
    models = "fake models" if kinds == {"fake model"} else "models"
    return f"{models}: {use}; fallbacks: {sum(causes.values())}{by_cause}"


def _print_notes(run: RunResult) -> None:
    """Print notes about the run that belong to both the summary and the tables."""
    if run.first_fallback is not None:
        say(f"first bot error: {run.first_fallback}")
    for name, text in run.bot_notes.items():
        say(f"{one_line(name)}: {text}")
    logs = run.models.values()
    if cached := sum(log.cached for log in logs):
        days = int((time.time() - run.oldest_reply_time) / 86_400) if run.oldest_reply_time else 0
        age = f", the oldest {days:,} day{'s' * (days > 1)} old" if days > 0 else ""
        say(f"{cached:,} of {sum(log.attempts for log in logs):,} replies came from the cache{age}")


def print_tables(run: RunResult, sizes: bool) -> None:
    results, show = run.game.results, partial(output.show, kinds=run.experiment.kinds)
    if fake_models := describe_fake_models(run.experiment.kinds):
        say(fake_models)
    rows, twice = ranking(run.tally, run.experiment.names, results), run.game.lineup == "uniform"
    relation = _relate(run)
    verdict = fill(describe_verdict(relation, player_labels(run.experiment.kinds)), 79, break_on_hyphens=False)
    title = f"{run.tally.games:,} games; 95 % confidence intervals, clustered by deal"
    title += ", for a fixed number of deals" if run.experiment.stop else ""
    compared = contender_tables(run.tally, run.contenders, results)
    if relation.paired:
        say(verdict)
        show(*compared, notes=False)
        show(opponents_table(rows, relation, results, f"Opponents, in {title}", twice=twice), notes=False)
        if both := contenders_among_opponents(relation, [player.name for player in run.experiment.bots]):
            say(fill(both, 79))
    else:
        say(verdict)
        show(replace(ranking_table(rows, relation, results, twice=twice), title=title), *compared, notes=False)
    _print_chance(run)
    if run.game.has_neighbours:
        show(_neighbours_table(rows, results.rate))
    if run.game.is_duel:
        show(*duel_tables(run.tally, run.experiment.names, results, player_labels(run.experiment.kinds)))
    if run.models:
        show(models_table(run.models, run.experiment.names))
    if claims := describe_claims(run.experiment.kinds):
        say(fill(claims, 79, break_on_hyphens=False))
    # Each contender played this many games as a contender.
    own = run.tally.games // max(1, len(run.experiment.contenders))
    show(bounds_table(rows, [player.name for player in run.experiment.contenders], own, results))
    if stated := calibrations(run.tally, run.experiment.names):
        show(calibration_table(stated, results.stated), calibration_bins(stated, "calibration-bins"))
    if sizes and len(run.experiment.table_sizes) > 1:
        rows_by_size = by_table_size(run.tally, run.experiment.names, results)
        show(sizes_table(rows_by_size, lambda row, measure: row.rates[measure], results))
    show(*bot_errors(rows))
    _print_notes(run)
    say(f"turns per game: {turns_per_game(run.tally, results)}")
    say(f"results digest: {run.results_digest}")


def _neighbours_table(rows: Sequence[RankingRow], rate: str) -> ResultTable:
    title = f"Effect of neighbours: standard deviation of the {rate} across next and previous players"
    columns = [Column("bot", "bot", "player", [row.name for row in rows])]
    sides = {"by next": [row.deviation_by_next for row in rows], "by prev": [row.deviation_by_prev for row in rows]}
    for side, deviations in sides.items():
        columns.append(Column(side, side, "text", ["-" if one is None else f"{one:.2f}" for one in deviations]))
    return ResultTable("beside", title, columns)


def print_report_path(folder: Path, new: bool) -> None:
    index = write_run_report(folder, new)
    if index is not None:
        say(f"report: {index}")


def write_run_report(folder: Path, new: bool) -> Path | None:
    """Write the report if the run is new or the report is missing. Return its first page, or None if writing fails."""
    # Imported late: not every run writes a report.
    from dubito.report.site import FOLDER, write_report

    index = folder / FOLDER / "index.html"
    try:
        if new or not index.exists():
            write_report(folder)
        return index
    except (RunStopped, UsageError) as error:
        # The results are valid without a report.
        note(f"no report was written: {one_line(str(error), 400)}")
        return None


def build_document(run: RunResult, report: Path | None) -> "RunObject":
    """Return the run as the `--json` object."""
    from dubito.report import documents  # imported late: most runs print no JSON

    experiment, results, counted, folder = run.experiment, run.game.results, run.counts.counted, str(run.folder)
    stopped = describe_signal(run.stop_signal) if run.interrupted else None
    if run.failure is not None:
        stopped = one_line(str(run.failure), 600)
    lies, chance = count_lies_in_folder(run.folder) if counted else None, _find_chance(run)
    relation = _relate(run) if counted else None
    return documents.RunObject(
        folder=folder,
        game=run.game.name,
        seed=None if stopped and experiment.seed_sha256 else experiment.seed,
        seed_was="secret" if experiment.seed_sha256 else "known",
        games=experiment.games,
        kept=counted,
        finished=run.counts.finished,
        state="stopped" if stopped else "finished",
        stopped=stopped,
        resume=continue_command(run.folder, experiment) if stopped else None,
        results_digest=run.results_digest if counted else None,
        verdict=describe_verdict(relation, player_labels(experiment.kinds)) if relation else None,
        ranking=documents.players(run.tally, run.experiment.kinds, relation, results, lies) if relation else [],
        contenders=documents.contenders(run.tally, run.contenders, results, [folder]) if counted else [],
        pairs=documents.pairs(run.tally, run.contenders, results) if counted else [],
        comparison=documents.comparison(run.tally, run.contenders, results) if counted else None,
        chance=None if chance is None else documents.part_of(documents.ChanceLevel, chance),
        models=documents.model_uses(run.models, run.experiment.kinds),
        claimed=list_claims(experiment.claiming_kinds),
        not_enforced=list_not_enforced(load_manifest(run.folder)),
        report=None if report is None else str(report),
    )


_AFTER_BOT_ERROR: Final = (
    "a bot with an edited file is a new player, so the same command will start a new run (if you gave --output, choose "
    "another folder)"
)
_AFTER_GAME_ERROR: Final = (
    "on_bot_error does not apply because no player is to blame; after you fix the game, runs start from the first game"
)


def exit_code(run: RunResult, command: str | None = None) -> int:
    """Return the exit code. If the run stopped, print why, what was saved and which command resumes it.

    That is `command`, or by default the one that continues the run from its folder.
    """
    if run.failure is None and not run.interrupted:
        return 0
    why = f"stopped by {describe_signal(run.stop_signal)}" if run.failure is None else one_line(str(run.failure), 600)
    by_kind = {BotError: _AFTER_BOT_ERROR, GameError: _AFTER_GAME_ERROR}
    resume = f"`{command or continue_command(run.folder, run.experiment) or repeat_command()}` resumes the run"
    next_step = by_kind.get(type(run.failure), resume)
    if isinstance(run.failure, BotError) and run.experiment.kinds[run.failure.bot] == "agent":
        next_step = resume
    if not run.models or (not run.counts.replies and run.counts.finished == run.counts.counted):
        saved = f"{run.counts.counted:,} of {run.experiment.games:,} games are saved in {run.folder}"
    else:
        saved = f"{run.counts}, in {run.folder}; you will not pay for these replies again"
    note(f"dubito: {why}; {saved}; {next_step}")
    return 128 + run.stop_signal if run.failure is None else 3


def print_next_steps(folder: Path, tables: bool, run: RunResult) -> None:
    """Print the run folder and commands to see more of the run or to extend it."""
    if run.experiment.has_programs:
        was = "was secret during play" if run.experiment.seed_sha256 else "was known"
        say(f"seed: {run.experiment.seed} ({was})")
    say(f"run folder: {folder}")
    # A run that stops by a rule, is a shard or had a secret seed cannot be extended.
    is_fixed = run.experiment.stop or run.experiment.shard or run.experiment.seed_sha256
    # The games that would probably make the top difference significant, if it is not.
    more_games = None if is_fixed else _relate(run).more_games
    if more_games:
        a_deal = run.experiment.games_per_deal
        games = -(-(run.tally.games + more_games) // a_deal) * a_deal
        if longer := continue_command(folder, run.experiment, "--games", games):
            say(f"to settle first place: {longer}")
    if not tables:
        all_tables = continue_command(folder, run.experiment, "--tables")
        say(f"to see more: {build_command('report', folder, '--open')}{f', or {all_tables}' if all_tables else ''}")
