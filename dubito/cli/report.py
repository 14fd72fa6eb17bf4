"""`dubito report`: a run as pages."""

from pathlib import Path

import click

from dubito.cli.output import say
from dubito.experiment.stored import game_of
from dubito.registry import find_bots
from dubito.report.site import write_report


@click.command()
@click.argument("run", type=click.Path(path_type=Path))
@click.option("--output", metavar="FOLDER", type=click.Path(path_type=Path), help="The report. [default: RUN/report]")
@click.option("--games", metavar="N,N,...", help="Games to be opened turn by turn, or `all`. [default: the first 500]")
def report(run: Path, output: Path | None, games: str | None) -> None:
    """Write the run in folder RUN as pages to be opened in a browser, with no network."""
    here = Path.cwd()
    say(f"report: {write_report(run, find_bots(here, game_of(run)), here, output=output, games=games)}")
