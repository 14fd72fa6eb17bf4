"""`dubito status`: the progress of a run, even while it is being played, or the runs in a folder."""

from collections import Counter, defaultdict
from collections.abc import Mapping
from contextlib import ExitStack
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import click

from dubito.cli.options import games_path_option, json_option, open_run_folder
from dubito.cli.output import note, print_document, say, table
from dubito.errors import DubitoError, UsageError, one_line
from dubito.experiment.experiment import describe_fake_models
from dubito.experiment.saved_config import continue_command
from dubito.experiment.stop import describe_standing, describe_stop_rule, pair_standings
from dubito.experiment.stored import Run, open_recorded_run, read_player_kinds, store_errors_as_usage_errors
from dubito.game import PlayerKind
from dubito.hooks import find_batch_sender
from dubito.report import documents
from dubito.report.documents import ListedRun, RunsObject, RunState, StatusObject
from dubito.store import folder as run_folder
from dubito.store.folder import is_policy, is_trial, last_written, load_manifest, runs_inside
from dubito.store.lock import is_locked
from dubito.store.model_log import ModelLog
from dubito.store.run_db import RunDb
from dubito.store.spend import PICO, PlayerLog, dollars


@click.command()
@click.argument("run", required=False, type=click.Path(path_type=Path))
@games_path_option
@json_option
def status(run: Path | None, as_json: bool) -> None:
    """Show the progress of RUN, or list the runs in a folder.

    RUN defaults to the latest run. Shows its games and its models' decisions, calls and cost. RUN can also be a folder
    written by `dubito prompts test` or `dubito policy`. The runs in a folder of runs, such as `runs`, are listed,
    newest first.
    """
    if run is not None and run.is_dir() and (runs := runs_inside(run)):
        rows = [_row_of_run(each) for each in runs]
        if as_json:
            print_document(RunsObject(runs=rows))
            return
        headers = ["run", "game", "state", "games", "models", "cost", "last written"]
        table(f"{len(rows)} runs in {one_line(str(run))}", headers, [_cells(row) for row in rows if row.fault is None])
        for row in rows:
            if row.fault is not None:
                note(f"cannot be read: {row.fault}")
        return
    with open_run_folder(run) as folder:
        name = str(run or folder)
        manifest = run_folder.load_manifest(folder)
        if run_folder.is_policy(manifest):
            _status_of_policies(folder, name, manifest["identity"], as_json)
            return
        if not (folder / run_folder.DATABASE).exists():
            raise UsageError(f"{one_line(name)} has no {run_folder.DATABASE}")
        if run_folder.is_trial(manifest):
            with store_errors_as_usage_errors(), RunDb.open(folder / run_folder.DATABASE) as db:
                _status_of_trial(ModelLog(db), name, read_player_kinds(manifest), as_json)
            return
        with open_recorded_run(folder) as stored_run:
            _status_of_run(stored_run, name, as_json)


def _status_of_run(run: Run, name: str, as_json: bool) -> None:
    log, counts, pairs, state = run.model_log, run.counts, pair_standings(run), run_state(run)
    sender = find_batch_sender("batch")
    status = _status_object(
        name,
        log,
        run.kinds,
        games=run.planned.games,
        kept=counts.counted,
        finished=counts.finished,
        state=state,
        pairs=documents.pair_statuses(pairs),
        replies=counts.replies if log.players() else None,
        results_digest=run.results_digest if counts.counted else None,
        resume=continue_command(run.folder, run.planned) if state == "stopped" and run.can_go_on else None,
        **(sender.list_awaited(log) if sender else {}),
    )
    if as_json:
        print_document(status)
        return
    if fake_models := describe_fake_models(run.kinds):
        say(fake_models)
    if shard := run.planned.shard:
        say(f"shard: {shard}, starting with game {shard.first_game:,}")
    at_most = "at most " if run.planned.stop else ""
    say(f"games: {run.counts.counted:,} of {at_most}{run.planned.games:,} counted")
    if run.planned.stop:
        say(f"stops: {describe_stop_rule(run.planned, run.game)}")
    say(f"state: {status.state}")
    if status.resume is not None:
        say(f"to continue: {status.resume}")
    for pair in pairs:
        say(describe_standing(pair, run.planned))
    if log.players():
        say(f"so far: {counts}")
    _print_models(log, run.kinds, "games")
    _print_awaited(status)
    if not counts.counted:
        say("results digest: none, since no game is counted yet")
    else:
        # The digest covers fewer games if later ones finished first.
        of = "" if counts.counted == counts.finished else f" of the first {counts.counted:,} games"
        say(f"results digest{of}: {status.results_digest}")


def _status_of_trial(log: ModelLog, name: str, kinds: Mapping[str, PlayerKind], as_json: bool) -> None:
    if as_json:
        print_document(_status_object(name, log, kinds, trial=True))
        return
    say("test of prompts: no games are played")
    # The players in this log are prompts, so they have no kinds.
    _print_models(log, {}, "positions")


def _status_of_policies(folder: Path, name: str, identity: Mapping[str, Any], as_json: bool) -> None:
    """Print the model calls of `dubito policy`, which uses a separate folder for each player."""
    with ExitStack() as stack:
        files = sorted(folder.glob(f"*/{run_folder.DATABASE}"), key=lambda file: int(file.parent.name))
        logs = [ModelLog(stack.enter_context(RunDb.open(file))) for file in files]
        kinds = {
            name: kind
            for file in files
            for name, kind in read_player_kinds(run_folder.load_manifest(file.parent)).items()
        }
        if as_json:
            models = {player: log.player(player) for log in logs for player in log.players()}
            failed = sum((Counter(log.count_failures()) for log in logs), Counter[str]())
            print_document(
                StatusObject(folder=name, models=documents.model_uses(models, kinds), failed_calls=dict(failed))
            )
            return
        say(f"policies for {one_line(str(identity['policy']))}: no games are played")
        if fake_models := describe_fake_models(kinds):
            say(fake_models)
        for log in logs:
            _print_models(log, kinds, "states")


def _status_object(name: str, log: ModelLog, kinds: Mapping[str, PlayerKind], **of_run: Any) -> StatusObject:
    models = documents.model_uses({player: log.player(player) for player in log.players()}, kinds)
    return StatusObject(folder=name, models=models, failed_calls=log.count_failures(), **of_run)


def _print_awaited(status: StatusObject) -> None:
    groups = defaultdict[tuple[str, bool], list[documents.AwaitedBatch]](list)
    for batch in status.awaited:
        groups[batch.account, batch.id is None].append(batch)
    for (account, unconfirmed), batches in groups.items():
        name = (
            "unconfirmed; a resumed run looks for it, and sends it again if it is missing"
            if unconfirmed
            else one_line(str(batches[0].id))
        )
        more = f" and {len(batches) - 1:,} more" if len(batches) > 1 and not unconfirmed else ""
        ends = sorted(batch.expires for batch in batches if batch.expires)
        until = f", expires {ends[0]}" if ends else ""
        to = f"{sum(batch.requests for batch in batches):,} requests to {one_line(account)}"
        say(f"pending: {to} since {min(batch.since for batch in batches)}{until} (UTC; {name}{more})")
    if status.to_be_sent:
        say(f"next batch: {status.to_be_sent:,} requests")


def _cost(own: PlayerLog) -> str:
    if own.picodollars is None or own.billed is None:
        return "unknown (no price for this model)"
    if not own.assumed:
        return dollars(own.picodollars)
    parts = f"{dollars(own.billed)} billed, {dollars(own.likely)} assumed for {own.assumed:,} calls without a bill"
    return f"{dollars(own.picodollars)} ({parts}; the budget counts these as {dollars(own.at_worst)})"


def _print_models(log: ModelLog, kinds: Mapping[str, PlayerKind], places: str) -> None:
    from dubito.report.tables import cell_text

    for name in log.players():
        own = log.player(name)
        kind = " (fake model)" if kinds.get(name) == "fake model" else ""
        say(f"{one_line(name)}{kind}: {own.decisions:,} decisions in {own.games:,} {places}, {own.calls:,} calls, "
            f"cache {cell_text(own.cached / own.attempts if own.attempts else None, 'rate')} %")  # fmt: skip
        for outcome, count in sorted(own.outcomes.items()):
            say(f"  {outcome}: {count:,}")
        tokens = ", ".join(f"{kind} {count:,}" for kind, count in own.tokens.items())
        say(f"  tokens: {tokens}")
        say(f"  cost: {_cost(own)}")
        if own.has_other_names:
            say(f"  answered by: {', '.join(f'{one_line(model)} ({count:,})' for model, count in own.ids.items())}")
        if own.beyond:
            say(f"  calls that exceeded their budget reservation: {own.beyond:,}; the first: {own.first_beyond}")
    for kind, count in sorted(log.count_failures().items()):
        say(f"failed calls, {kind}: {count:,}")


def run_state(run: Run) -> RunState:
    return "finished" if run.is_finished else "playing" if is_locked(run.folder) else "stopped"


def _row_of_run(folder: Path) -> ListedRun:
    date = datetime.fromtimestamp(last_written(folder), UTC).strftime("%Y-%m-%d %H:%M")
    listed = partial(ListedRun, folder=str(folder), date=date)
    try:
        manifest = load_manifest(folder)
        if is_trial(manifest):
            return listed()
        if is_policy(manifest):
            return listed(game=str(manifest["identity"]["policy"]))
        with open_recorded_run(folder) as run:
            costs = [log.picodollars for log in run.models.values()]
            known = [cost for cost in costs if cost is not None]
            return listed(
                game=run.planned.game,
                state=run_state(run),
                games=run.planned.games,
                kept=run.game_count,
                models=[*run.models],
                kinds={name: run.kinds[name] for name in run.models},
                usd=sum(known) / PICO if known and len(known) == len(costs) else None,
            )
    except DubitoError as error:
        return listed(fault=one_line(str(error)))


def _cells(run: ListedRun) -> list[str]:
    if run.game is None or run.state is None:
        what = "test of prompts" if run.game is None else "policies"
        return [run.folder, run.game or "", what, "", "", "", run.date]
    games = f"{run.kept:,}" if run.kept == run.games else f"{run.kept:,} of {run.games:,}"
    cost = "" if not run.models else "no price" if run.usd is None else dollars(round(run.usd * PICO))
    models = ", ".join(f"{name} ({run.kinds[name]})" for name in run.models)
    return [run.folder, run.game, run.state, games, models, cost, run.date]
