"""`dubito deception`: how each player of a run lies and detects lies."""

import time
from contextlib import ExitStack
from pathlib import Path

import click

from dubito.cli.call_options import question_progress
from dubito.cli.options import games_path_option, json_option, open_run_folder
from dubito.cli.output import GamesProgress, note, print_document, say, show
from dubito.experiment.stored import open_recorded_run
from dubito.plugins.deception.documents import build_document
from dubito.plugins.deception.pages import SheetPage
from dubito.plugins.deception.read import count_sheet, find_beliefs
from dubito.report.render import Site
from dubito.report.site import write_pages


@click.command()
@click.argument("run", required=False, type=click.Path(path_type=Path))
@click.option("--output", type=click.Path(path_type=Path), metavar="FOLDER", help="Write a page with CSV files there.")
@json_option
@click.option("--quiet", is_flag=True, help="Hide the progress line.")
@games_path_option
def deception(run: Path | None, output: Path | None, as_json: bool, quiet: bool) -> None:
    """Measure how each player lies and detects lies.

    The games of RUN, which defaults to the latest run, are replayed without a model. The guide deception.md defines the
    figures.
    """
    with open_run_folder(run) as folder, open_recorded_run(folder, shown=str(run or "")) as stored:
        with ExitStack() as stack:
            reference = find_beliefs(stored, lambda n: stack.enter_context(question_progress(n, quiet)))
        with GamesProgress(stored.game_count, quiet, time.monotonic) as progress:
            sheet = count_sheet(stored, reference, progress)
        page = SheetPage(stored, sheet)
        if as_json:
            print_document(build_document(stored, sheet, page.costliest))
        else:
            show(*page.tables(), page.costliest_table(str(stored)), kinds=stored.kinds)
        if output is not None:
            written = page.page().with_kinds(stored.kinds)
            index = write_pages(output, Site("", pages=[(written.path, written.title)]), [written])
            (note if as_json else say)(f"page: {index}")
