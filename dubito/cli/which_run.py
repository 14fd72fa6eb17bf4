"""The RUN that a command is given: a folder, a file that `dubito export` made, or nothing, which means the latest."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from dubito.cli.output import note
from dubito.errors import UsageError, one_line
from dubito.store.folder import RUNS, is_export, latest, missing, unpacked


def run_argument(command: Callable[..., Any]) -> Callable[..., Any]:
    """The argument RUN, to be opened by `folder_of`."""
    return click.argument("run", required=False, type=click.Path(path_type=Path))(command)


@contextmanager
def folder_of(run: Path | None) -> Iterator[Path]:
    """The folder of the run that was meant, for as long as it is read; that of an exported file is a copy.

    Raises UsageError that names the nearest runs, or says that the file is not an exported run.
    """
    if run is None:
        run = latest(Path(RUNS))
        note(f"the latest run: {run}")
    if not run.exists():
        raise missing(run, Path(RUNS))
    if run.is_dir():
        yield run
        return
    if not is_export(run):
        raise UsageError(f"{one_line(str(run))} is not a run: give a run folder, or a file that `dubito export` made")
    with unpacked(run) as folder:
        yield folder
