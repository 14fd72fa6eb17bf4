"""`dubito export`: a run as one file that another machine replays."""

from pathlib import Path

import click

from dubito.cli.output import say
from dubito.store import folder as run_folder
from dubito.store.export import pack
from dubito.store.shelf import RUNS, missing


@click.command()
@click.argument("run", type=click.Path(path_type=Path))
@click.argument("file", type=click.Path(path_type=Path))
def export(run: Path, file: Path) -> None:
    """Write the run in folder RUN into FILE, for `dubito replay FILE` elsewhere. Bots are not in it: they are code."""
    if not run.exists():
        raise missing(run, Path(RUNS))
    run_folder.read_manifest(run)
    pack(run, file)
    say(f"written: {file}")
