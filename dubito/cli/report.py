"""`dubito report`: a run as pages."""

from pathlib import Path

import click

from dubito.cli.output import say
from dubito.cli.which_run import folder_of, run_argument
from dubito.experiment.stored import bots_of_run
from dubito.report.site import write_report


@click.command()
@run_argument
@click.option(
    "--output",
    metavar="FOLDER",
    type=click.Path(path_type=Path),
    help="The report. [default: RUN/report; of a file RUN-report]",
)
@click.option(
    "--games", metavar="N,N,...", help="Games to be opened turn by turn, or `all`. [default: the first and the longest]"
)
def report(run: Path | None, output: Path | None, games: str | None) -> None:
    """Write RUN, by default the latest, as pages to be opened in a browser, with no network."""
    with folder_of(run) as folder:
        if run is not None and run.is_file() and output is None:
            output = run.with_name(f"{run.name}-report")
        say(f"report: {write_report(folder, bots_of_run(folder, Path.cwd()), output=output, games=games)}")
