"""`dubito export`: write a run as one file that can be replayed elsewhere, or as a dataset."""

import re
import time
from pathlib import Path

import click

from dubito.cli.options import games_path_option, open_run_folder
from dubito.cli.output import GamesProgress, note, say
from dubito.errors import UsageError, one_line
from dubito.experiment.saved_config import continue_command
from dubito.experiment.stored import open_recorded_run
from dubito.hooks import find_dataset_writer
from dubito.store import folder as run_folder
from dubito.store.folder import RUNS, missing_run_error, pack
from dubito.store.lock import lock_folder
from dubito.store.secret import is_revealed, reveal_seed

is_licence = re.compile(r"[a-z0-9][a-z0-9.-]*").fullmatch


@click.command()
@click.argument("run", type=click.Path(path_type=Path))
@click.argument("file", required=False, type=click.Path(path_type=Path))
@click.option("--dataset", type=click.Path(path_type=Path), metavar="FOLDER",
              help="Write a dataset instead: Parquet files of games, decisions and events, with a card.")  # fmt: skip
@click.option("--license", "licence", metavar="ID", help="The dataset's licence for its card, such as cc-by-4.0.")
@click.option("--reveal", is_flag=True, help="Also reveal the secret seed of an unfinished RUN, which ends it.")
@games_path_option
@click.option("--quiet", is_flag=True, help="Hide the progress line.")
def export(run: Path, file: Path | None, dataset: Path | None, licence: str | None, reveal: bool, quiet: bool) -> None:
    """Write RUN as one file that can be replayed anywhere.

    The file does not contain bots because they are code.
    """
    if (file is None) == (dataset is None):
        raise UsageError("give a FILE for `dubito replay`, or --dataset FOLDER for a dataset")
    if licence is not None and (file is not None or not is_licence(licence)):
        raise UsageError("--license is the id of a dataset's licence, such as cc-by-4.0, and needs --dataset FOLDER")
    if file is not None and file.suffix.lower() not in ("", ".zip"):
        raise UsageError(
            f"{one_line(str(file))}: an export is a zip file",
            hint=f"name it {one_line(file.with_suffix('.zip').name)}; `dubito report` writes pages, CSV and JSON",
        )
    if not run.exists():
        raise missing_run_error(run, Path(RUNS))
    if file is None:
        assert dataset is not None
        _export_dataset(run, dataset, licence, quiet)
        return
    manifest = run_folder.read_manifest(run)
    if "seed_sha256" in manifest["identity"] and not is_revealed(run):
        _end_secret(run, reveal)
    pack(run, file, run_folder.first_game(manifest))
    say(f"written: {file}")


def _end_secret(folder: Path, reveal: bool) -> None:
    """Reveal the seed of an unfinished run, which cannot be continued then. Raises UsageError if that is not asked."""
    with open_recorded_run(folder) as run:
        if not reveal or not run.game_count:
            command = continue_command(folder, run.planned)
            how = f"finish it with `{command}`" if command else "finish it"
            end = "; or end it now with --reveal, and publish its seed" if run.game_count else ""
            raise UsageError(
                f"{run} is unfinished and its seed is still secret, so an export could not be replayed", hint=how + end
            )
        with lock_folder(folder):
            reveal_seed(folder, str(run.planned.seed))


def _export_dataset(run: Path, folder: Path, licence: str | None, quiet: bool) -> None:
    from dubito.experiment.stored import read_replayable_run

    write_dataset = find_dataset_writer("parquet")
    if write_dataset is None:
        problem = "--dataset needs the `study` plugin, which is not in dubito/plugins"
        raise UsageError(problem, hint="export a FILE instead, or reinstall Dubito")
    with open_run_folder(run) as source:
        replayed_run = read_replayable_run(source)
        with replayed_run.db, GamesProgress(replayed_run.experiment.games, quiet, time.monotonic) as progress:
            progress(0)
            write_dataset(replayed_run, folder, progress, licence)
    for mismatch in replayed_run.mismatches:
        note(f"manifest mismatch: {mismatch}")
    say(f"written: {folder}")
