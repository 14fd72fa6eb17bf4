"""`dubito export`: write a run as one file that can be replayed elsewhere, or as a dataset."""

import time
from pathlib import Path

import click

from dubito.cli.options import games_path_option, open_run_folder
from dubito.cli.output import GamesProgress, note, say
from dubito.errors import UsageError, one_line
from dubito.store import folder as run_folder
from dubito.store.folder import RUNS, missing_run_error, pack


@click.command()
@click.argument("run", type=click.Path(path_type=Path))
@click.argument("file", required=False, type=click.Path(path_type=Path))
@click.option("--parquet", type=click.Path(path_type=Path), metavar="FOLDER",
              help="Write a dataset instead: Parquet files of games and decisions, with a card.")  # fmt: skip
@games_path_option
@click.option("--quiet", is_flag=True, help="Hide the progress line.")
def export(run: Path, file: Path | None, parquet: Path | None, quiet: bool) -> None:
    """Write RUN as one file that can be replayed anywhere.

    The file does not contain bots because they are code.
    """
    if (file is None) == (parquet is None):
        raise UsageError("give a FILE for `dubito replay`, or --parquet FOLDER for a dataset")
    if file is not None and file.suffix.lower() not in ("", ".zip"):
        raise UsageError(
            f"{one_line(str(file))}: an export is a zip file",
            hint=f"name it {one_line(file.with_suffix('.zip').name)}; `dubito report` writes pages, CSV and JSON",
        )
    if not run.exists():
        raise missing_run_error(run, Path(RUNS))
    if file is None:
        assert parquet is not None
        _export_dataset(run, parquet, quiet)
        return
    pack(run, file, run_folder.first_game(run_folder.read_manifest(run)))
    say(f"written: {file}")


def _export_dataset(run: Path, parquet: Path, quiet: bool) -> None:
    from dubito.experiment.replay import read_replayable_run
    from dubito.workshop.dataset import write_dataset

    with open_run_folder(run) as folder:
        replayed_run = read_replayable_run(folder)
        with replayed_run.db, GamesProgress(replayed_run.experiment.games, quiet, time.monotonic) as progress:
            progress(0)
            write_dataset(replayed_run, parquet, progress)
    for mismatch in replayed_run.mismatches:
        note(f"manifest mismatch: {mismatch}")
    say(f"written: {parquet}")
