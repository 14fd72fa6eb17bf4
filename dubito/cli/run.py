"""`dubito run`: play an experiment, or print the results of a finished one. Its output is in `summary.py`."""

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from dubito.cli.file_limit import limit_in_flight
from dubito.cli.options import (
    GameCommand,
    config_options,
    find_started_run,
    games_path_option,
    given_permits,
    json_option,
    program_options,
    refuse_other_settings,
)
from dubito.cli.output import GamesProgress, note, print_document, say
from dubito.cli.summary import build_document, exit_code, print_next_steps, print_summary, write_run_report
from dubito.errors import describe_signal, one_line
from dubito.experiment.call_options import CallOptions, call_options, check_cache
from dubito.experiment.config import SETTINGS, Config, parse_config, read_config
from dubito.experiment.plan import choose_run_folder, open_executor, plan_experiment
from dubito.experiment.progress import ModelProgress
from dubito.experiment.resolved import ResolvedRun
from dubito.experiment.run import RunOptions, RunResult, find_finished_run, play
from dubito.experiment.saved_config import (
    check_files_unchanged,
    check_same_experiment,
    config_to_store,
    load_stored_config,
    stored_shard,
)
from dubito.experiment.workers import WorkerPool, default_workers, set_from_thread
from dubito.game.find import find_bots

if TYPE_CHECKING:
    from dubito.seats.remote import AgentSeat

_OUTPUT: Final = ("by_table_size", "tables", "report", "quiet", "as_json")
_HEADINGS: Final = {
    **{setting.key: setting.group for setting in SETTINGS.values()},
    "games_path": "Games and rules",
    "shard": "Cluster",
    **dict.fromkeys(("trust", "allow_unsandboxed"), "Programs"),
    **dict.fromkeys(_OUTPUT, "Output"),
}


@click.command(cls=GameCommand, headings=_HEADINGS)
@click.argument("config", required=False, type=click.Path(path_type=Path))
@config_options()
@games_path_option
@program_options
@click.option("--shard", metavar="K/N", help="Play only shard K of N, for `dubito merge`. [default: the whole run]")
@click.option("--by-table-size", is_flag=True, help="Also print the ranking for each table size.")
@click.option("--tables", is_flag=True, help="Print all tables instead of a summary.")
@click.option("--report/--no-report", default=True, show_default=True, help="Write the report as HTML pages.")
@click.option("--quiet", is_flag=True, help="Hide the progress line.")
@json_option
def run(
    config: Path | None,
    shard: str | None,
    by_table_size: bool,
    tables: bool,
    report: bool,
    quiet: bool,
    as_json: bool,
    rules: Mapping[str, Any],
    **flags: str | bool | None,
) -> int:
    """Run an experiment and rank its players, or continue a run.

    CONFIG is a YAML file; flags override it. The ranking is printed and a report is written. RUN is the folder of a run
    that was started before. It continues with its own settings; --games extends it.
    """
    given = {**flags, **rules}
    if (started := find_started_run(config)) is not None:
        refuse_other_settings(started, "games", *_OUTPUT)
        checked, shard = load_stored_config(started, given), stored_shard(started)
    else:
        checked = parse_config(read_config(config) if config else {}, str(config or "the config"), given)
    planned, folder, calls = plan_run(checked, config, shard, started)
    result = find_finished_run(planned, folder)
    if new := result is None:
        has_games = (folder / "run.db").exists()
        if not has_games and (reach := _describe_reach(planned, calls)):
            note(reach)
        # The table of a new run with models may have no scale.
        if planned.models and not has_games:
            from dubito.experiment.chance import propose_table  # imported late, since most runs have no models

            if (proposal := propose_table(planned)) is not None:
                note(proposal)
        if warning := check_cache(planned, calls):
            note(warning)
        with open_executor(checked, note) as pool:
            stored = config_to_store(checked, planned.experiment)
            result = play_with_progress(planned, folder, calls, stored, workers=checked.workers, quiet=quiet, pool=pool)
    else:
        note(f"this run is already finished in {folder}; nothing was played")
    return print_result(result, new, tables, by_table_size, report, as_json)


def _describe_reach(run: ResolvedRun, calls: CallOptions) -> str | None:
    """Return what the budget of a new run buys, estimated from a few free games."""
    if run.experiment.shard is not None or calls.offline or calls.caps.usd is None:
        return None
    # Imported late, since few runs have a budget.
    from dubito.experiment.estimate import describe_reach, estimate
    from dubito.experiment.model_players import is_paid

    if not any(is_paid(model.settings, calls) for _, model in run.models):
        return None
    return describe_reach(estimate(run, calls, deals=0), run.experiment, calls.caps)


def plan_run(
    checked: Config, config: Path | None, shard: str | None = None, started: Path | None = None
) -> tuple[ResolvedRun, Path, CallOptions]:
    """Return what to play and where to save it, after printing warnings. `started` is the folder of a run to continue.

    Raises UsageError.
    """
    if checked.sources.translation:
        note(f"note: {checked.sources.translation}")
    here = Path.cwd()
    registry = find_bots(here, checked.game)
    if started is not None:
        check_files_unchanged(started, registry)
    planned, calls = plan_experiment(checked, shard, registry, call_options(checked, here, given_permits()), started)
    if started is not None:
        check_same_experiment(started, planned.experiment)
    if planned.models:
        from dubito.experiment.model_players import find_paid_model  # imported late, since runs of bots load no clients

        # Explain why the run is short if nothing else limits what a model costs.
        if paid := find_paid_model(planned, checked, calls):
            note(
                f"note: this plays only {planned.experiment.games} games, since the calls of {one_line(paid.name)} may "
                "cost money; set games, budget or stop for more"
            )
    print_warnings(planned, calls)
    if started is not None:
        return planned, started, calls
    folder = choose_run_folder(checked.output, config, planned.experiment)
    if planned.experiment.seed_sha256:
        note(f"the seed is secret until the run ends; its SHA-256 is {planned.experiment.seed_sha256}")
    return planned, folder, calls


def print_result(
    result: RunResult, new: bool, tables: bool, by_table_size: bool = False, report: bool = True, as_json: bool = False
) -> int:
    """Print a run's results, write its report, and return the exit code."""
    if not as_json:
        print_summary(result, tables or by_table_size, by_table_size)
    index = write_run_report(result.folder, new) if report and result.tally.games else None
    if as_json:
        print_document(build_document(result, index))
    elif index is not None:
        say(f"report: {index}")
    code = exit_code(result)
    if not (code or as_json):
        print_next_steps(result.folder, tables, result)
    return code


def print_warnings(run: ResolvedRun, calls: CallOptions) -> None:
    """Print warnings before the run starts."""
    experiment = run.experiment
    bots = {player.bot.name: player.bot for player in run.players}
    if replacements := run.registry.describe_replaced(bots):
        note(f"note: {replacements}")
    for name, bot in sorted(bots.items()):
        if not bot.repeatable:
            note(f"note: games with {name} are not repeatable: its file uses randomness that cannot be seeded")
    if experiment.on_bot_error == "fallback" and experiment.bot_deadline is not None:
        note("note: games in which a bot exceeds bot_deadline are not repeatable, since speed depends on the machine")
    if len(experiment.players) == 1 and experiment.book is None:
        note(f"note: {one_line(experiment.players[0].name)} only plays against itself; add another bot to compare it")
    if experiment.has_programs and not experiment.seed_sha256:
        note("note: the seed is known, so programs and agents could compute all cards")
    if run.models:
        # Imported late, since runs of bots load no clients.
        from dubito.experiment.model_players import announced_ends, old_price_warnings, unused_address_warnings

        today = datetime.now(UTC).date()
        for sentence in announced_ends(run, today) if calls.preflight and not calls.offline else ():
            note(sentence)
        for sentence in old_price_warnings(run, calls, today) if calls.caps.usd is not None else ():
            note(sentence)
        for sentence in unused_address_warnings(run):
            note(sentence)
        if experiment.shard and (caps := calls.caps.describe()):
            note(f"note: this shard's share of the run's budget is {caps}")


def play_with_progress(
    run: ResolvedRun,
    folder: Path,
    calls: CallOptions,
    stored_config: Mapping[str, Any],
    *,
    workers: int | None,
    quiet: bool,
    pool: WorkerPool | None = None,
    seats: "Mapping[str, AgentSeat] | None" = None,
) -> RunResult:
    """Play with a progress line. The first Ctrl-C stops the run cleanly."""
    asks, workers = run.has_records, workers or default_workers()
    if asks and not calls.offline:
        calls = replace(calls, in_flight=limit_in_flight(calls.in_flight))
    stop, models = threading.Event(), ModelProgress(notify=note)
    more = models.figures if run.models else lambda: [*filter(None, [models.describe_decision()])]
    progress = GamesProgress(run.experiment.games, quiet, time.monotonic, more, parts=models.parts)
    with _graceful_interrupt(stop, asks) as signals, progress:
        signal_number = partial(_first_signal, signals)
        means = RunOptions(workers, calls, stop, progress, models, signal_number, pool, seats or {}, stored_config)
        return play(run, folder, means)


def _first_signal(signals: Sequence[int]) -> int:
    return signals[0] if signals else signal.SIGINT


# The live progress line hides the cursor.
_SHOW_CURSOR: Final = "\x1b[?25h"


@contextmanager
def _graceful_interrupt(stop: threading.Event, models: bool) -> Iterator[list[int]]:
    """Stop cleanly on the first signal, and exit immediately on the second. Yield the received signals.

    A clean stop finishes the games in progress or, with models, the calls in flight. The files are consistent even
    after `kill -9`, so an immediate exit is safe.
    """
    work = "games in progress"
    if models:
        from dubito.llm.threads import STOP_GRACE_SECONDS  # imported late, since runs of bots load no clients

        work = f"calls in flight (at most {STOP_GRACE_SECONDS:g} s)"
    received: list[int] = []

    def stop_run(number: int, _: object) -> None:
        received.append(number)
        if len(received) > 1:
            note(f"dubito: stopped by {describe_signal(number)}{_SHOW_CURSOR if sys.stderr.isatty() else ''}")
            os._exit(128 + number)
        set_from_thread(stop)
        cause = "" if number == signal.SIGINT else f"{describe_signal(number)}: "
        note(f"{cause}finishing {work}; {describe_signal(number)} again stops immediately")

    previous_handler = signal.signal(signal.SIGINT, stop_run)
    try:
        yield received
    finally:
        signal.signal(signal.SIGINT, previous_handler)
