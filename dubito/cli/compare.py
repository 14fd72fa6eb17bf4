"""`dubito compare RUN RUN...`: the contenders of several runs on the same deals."""

from contextlib import ExitStack
from pathlib import Path

import click

from dubito.cli.output import note, show
from dubito.experiment.compare import caveats, check_comparable, compared
from dubito.experiment.stored import opened
from dubito.report.standings import contender_tables


@click.command()
@click.argument("runs", nargs=-1, required=True, metavar="RUN...", type=click.Path(path_type=Path))
def compare(runs: tuple[Path, ...]) -> None:
    """Compare the contenders of the run folders RUN..., paired over the deals that all of them keep.

    The runs need the same seed, table sizes and number of bots in the field: then the same cards were dealt.
    One run alone shows its own pairs.
    """
    with ExitStack() as stack:
        stored = [stack.enter_context(opened(folder)) for folder in runs]
        check_comparable(stored)
        for sentence in caveats(stored):
            note(f"note: {sentence}")
        comparison = compared(stored)
    show(*contender_tables(comparison.tally, comparison.contenders, comparison.results))
