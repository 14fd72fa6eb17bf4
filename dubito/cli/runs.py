"""`dubito runs`: the runs that lie here, and how each stands."""

from datetime import UTC, datetime
from pathlib import Path

import click

from dubito.cli.documents import ListedRun, RunsObject, RunState
from dubito.cli.options import json_option
from dubito.cli.output import note, print_document, table
from dubito.errors import DubitoError, UsageError, one_line
from dubito.experiment.stored import opened_run
from dubito.llm.prices import PICO, dollars
from dubito.store.folder import RUNS, is_policy, is_trial, last_written, manifest_of, run_folders
from dubito.store.lock import is_claimed


@click.command()
@click.argument("folder", default=RUNS, type=click.Path(path_type=Path))
@json_option
def runs(folder: Path, as_json: bool) -> None:
    """List the runs in FOLDER, by default `runs`, the last written first."""
    if not folder.is_dir():
        raise UsageError(
            f"there is no folder {one_line(str(folder))}: `dubito demo` or `dubito run CONFIG` makes a run"
        )
    found = [_listed(run) for run in run_folders(folder)]
    if as_json:
        print_document(RunsObject(runs=found))
        return
    headers = ["run", "game", "state", "games", "models", "cost", "last written"]
    table(f"{len(found)} runs in {one_line(str(folder))}", headers, [_row(run) for run in found if run.fault is None])
    for run in found:
        if run.fault is not None:
            note(f"cannot be read: {run.fault}")


def state_of(kept: int, games: int | None, playing: bool) -> RunState:
    """Whether all games of a run are kept, or somebody is playing it, or it stopped before its end."""
    return "finished" if games is not None and kept >= games else "playing" if playing else "stopped"


def _listed(folder: Path) -> ListedRun:
    said = datetime.fromtimestamp(last_written(folder), UTC).strftime("%Y-%m-%d %H:%M")
    nothing = ListedRun(
        folder=str(folder),
        game=None,
        state=None,
        games=None,
        kept=None,
        models=[],
        kinds={},
        usd=None,
        date=said,
        fault=None,
    )
    try:
        manifest = manifest_of(folder)
        if is_trial(manifest):
            return nothing
        if is_policy(manifest):
            return nothing.model_copy(update={"game": str(manifest["identity"]["policy"])})
        with opened_run(folder) as run:
            costs = [log.picodollars for log in run.models.values()]
            known = [cost for cost in costs if cost is not None]
            return nothing.model_copy(
                update={
                    "game": run.identity.game,
                    "state": state_of(run.kept, run.games, is_claimed(folder)),
                    "games": run.games,
                    "kept": run.kept,
                    "models": list(run.models),
                    "kinds": {name: run.kinds[name] for name in run.models},
                    "usd": sum(known) / PICO if known and len(known) == len(costs) else None,
                }
            )
    except DubitoError as error:
        return nothing.model_copy(update={"fault": one_line(str(error))})


def _row(run: ListedRun) -> list[str]:
    if run.game is None or run.state is None:
        what = "a trial of prompts" if run.game is None else "policies"
        return [run.folder, run.game or "", what, "", "", "", run.date]
    games = f"{run.kept:,}" if run.kept == run.games else f"{run.kept:,} of {run.games:,}"
    cost = "" if not run.models else "no price" if run.usd is None else dollars(round(run.usd * PICO))
    models = ", ".join(f"{name} ({run.kinds[name]})" for name in run.models)
    return [run.folder, run.game, run.state, games, models, cost, run.date]
