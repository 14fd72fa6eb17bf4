"""`dubito run`: play an experiment, or print a finished one again. What is printed is in summary.py."""

import os
import signal
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import click

from dubito.cli.descriptors import bound_in_flight
from dubito.cli.options import GameCommand, config_options, games_path_option, json_option
from dubito.cli.output import GamesProgress, note, print_document, say
from dubito.cli.summary import document_of, exit_code, print_summary, say_folder, written_report
from dubito.errors import one_line, signal_in_words
from dubito.experiment.config import SETTINGS, parse_config, read_config
from dubito.experiment.experiment import Experiment
from dubito.experiment.plan import default_run_folder, open_executor, plan_experiment
from dubito.experiment.progress import ModelProgress
from dubito.experiment.resolve import (
    CallOptions,
    call_options,
    check_cache,
    end_of_model_warnings,
    model_specs,
    old_price_warnings,
    unused_address_warnings,
)
from dubito.experiment.run import RunOptions, RunResult, find_finished_run, play
from dubito.experiment.workers import Stop, WorkerPool, cores, new_stop, set_from_thread
from dubito.game.find import Registry, find_bots
from dubito.llm.threads import STOP_GRACE_SECONDS

_HEADINGS: Final = {
    **{setting.key: setting.group for setting in SETTINGS.values()},
    "games_path": "Games and rules",
    "shard": "Cluster",
    **dict.fromkeys(("by_table_size", "tables", "report", "quiet", "as_json"), "Output"),
}


@click.command(cls=GameCommand, headings=_HEADINGS)
@click.argument("config", required=False, type=click.Path(path_type=Path))
@config_options()
@games_path_option
@click.option(
    "--shard", metavar="K/N", help="Play the Kth of N shards only, for `dubito merge`. [default: the whole run]"
)
@click.option("--by-table-size", is_flag=True, help="Print the ranking by table size too.")
@click.option("--tables", is_flag=True, help="Print every table, and not only how the run has ended.")
@click.option("--report/--no-report", default=True, show_default=True, help="Write the run as pages too.")
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
    """Run an experiment and rank its players.

    CONFIG is a YAML file; flags override it. The ranking is printed and a report is written.
    """
    here, content = Path.cwd(), read_config(config) if config else {}
    checked = parse_config(content, str(config or "the config"), {**flags, **rules})
    registry = find_bots(here, checked.game)
    experiment, calls = plan_experiment(checked, shard, registry, call_options(checked, here))
    folder = Path(checked.output) if checked.output else default_run_folder(config, experiment)
    warn_of(experiment, registry, calls)
    result = find_finished_run(experiment, registry, folder)
    if new := result is None:
        if warning := check_cache(experiment, registry, calls):
            note(warning)
        with open_executor(checked, note) as pool:
            result = play_and_keep(experiment, registry, folder, calls, workers=checked.workers, quiet=quiet, pool=pool)
    else:
        note(f"{folder} holds this run, finished: nothing was played")
    if not as_json:
        print_summary(result, tables or by_table_size, by_table_size)
    index = written_report(folder, new) if report and result.tally.games else None
    if as_json:
        print_document(document_of(result, index))
    elif index is not None:
        say(f"report: {index}")
    code = exit_code(result)
    if not (code or as_json):
        say_folder(result.folder, tables, result)
    return code


def warn_of(experiment: Experiment, registry: Registry, calls: CallOptions) -> None:
    """Say what a user should know before the start."""
    _warn_of_unrepeatable(experiment, registry)
    if len(experiment.players) == 1 and experiment.book is None:
        note(f"note: {one_line(experiment.players[0].name)} plays only itself: name another bot to compare it with")
    today = datetime.now(UTC).date()
    for sentence in end_of_model_warnings(experiment, registry, today) if calls.preflight and not calls.offline else ():
        note(sentence)
    for sentence in old_price_warnings(experiment, registry, calls, today) if calls.caps.usd is not None else ():
        note(sentence)
    for sentence in unused_address_warnings(experiment, registry):
        note(sentence)
    if experiment.shard and model_specs(experiment, registry) and (caps := calls.caps.describe()):
        note(f"note: of the run's budget this shard's share, by its games, is {caps}")


def _warn_of_unrepeatable(experiment: Experiment, registry: Registry) -> None:
    for bot in sorted({player.bot for player in experiment.players}):
        if not registry.find(bot).repeatable:
            note(f"note: games with {bot} are not repeatable: its file draws from randomness outside self.rng")
    if experiment.on_bot_error == "fallback" and experiment.bot_deadline is not None:
        note("note: games in which a bot takes too long are not repeatable: that depends on the machine")


def play_and_keep(
    experiment: Experiment,
    registry: Registry,
    folder: Path,
    calls: CallOptions,
    *,
    workers: int | None,
    quiet: bool,
    pool: WorkerPool | None = None,
) -> RunResult:
    """Play with a progress line and an orderly Ctrl-C."""
    asks, workers = bool(model_specs(experiment, registry)), workers or cores()
    if asks and not calls.offline:
        calls = replace(calls, in_flight=bound_in_flight(calls.in_flight))
    stop, models = new_stop(1 if asks else workers), ModelProgress(notify=note)
    more = models.figures if asks else lambda: [*filter(None, [models.decision_figure()])]
    progress = GamesProgress(experiment.games, quiet, time.monotonic, more, parts=models.parts)
    with _signals_set(stop, asks) as told, progress:
        means = RunOptions(registry, workers, calls, stop, progress, models, lambda: (*told, signal.SIGINT)[0], pool)
        return play(experiment, folder, means)


_SHOW_CURSOR: Final = "\x1b[?25h"  # which a live line hides


@contextmanager
def _signals_set(stop: Stop, models: bool) -> Iterator[list[int]]:
    """The first signal stops cleanly, after the games in progress (with models, the calls); the second ends at once.

    Yields the signals that have come. What is on disk is in order even after a `kill -9`, so nothing waits for a
    server that does not answer.
    """
    calls = f"calls in flight, or after {STOP_GRACE_SECONDS:g} s; their games resume from the answers"
    after = calls if models else "games in progress"
    told: list[int] = []

    def leave_off(number: int, _: object) -> None:
        told.append(number)
        if len(told) > 1:
            note(f"dubito: stopped at once by {signal_in_words(number)}{_SHOW_CURSOR if sys.stderr.isatty() else ''}")
            os._exit(128 + number)
        set_from_thread(stop)
        again = "" if number == signal.SIGINT else f"{signal_in_words(number)}: "
        note(f"{again}stopping after the {after}; {signal_in_words(number)} again stops at once")

    before = signal.signal(signal.SIGINT, leave_off)
    try:
        yield told
    finally:
        signal.signal(signal.SIGINT, before)
