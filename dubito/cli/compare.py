"""`dubito compare RUN RUN...`: the contenders of several runs on the same deals."""

from contextlib import ExitStack
from pathlib import Path

import click

from dubito.cli import result_objects
from dubito.cli.documents import ComparisonObject
from dubito.cli.options import json_option
from dubito.cli.output import note, print_document, say, show
from dubito.cli.which_run import folder_of
from dubito.experiment.compare import caveats, check_comparable, compared_runs
from dubito.experiment.experiment import stand_ins_in_words
from dubito.experiment.stored import opened_run
from dubito.report.run_tables import contender_tables


@click.command()
@click.argument("runs", nargs=-1, metavar="RUN...", type=click.Path(path_type=Path))
@json_option
def compare(runs: tuple[Path, ...], as_json: bool) -> None:
    """Compare the contenders of RUN..., paired over the deals that all of them keep.

    The runs need the same seed, table sizes and number of bots in the field: then the same cards were dealt.
    One run alone, by default the latest, shows its own pairs.
    """
    with ExitStack() as stack:
        folders = [stack.enter_context(folder_of(run)) for run in runs or (None,)]
        stored = [stack.enter_context(opened_run(folder)) for folder in folders]
        check_comparable(stored)
        notes, comparison = caveats(stored), compared_runs(stored)
    if as_json:
        names = [str(run or folder) for run, folder in zip(runs or (None,), folders, strict=True)]
        found = comparison.tally, comparison.contenders, comparison.results
        print_document(
            ComparisonObject(
                runs=names,
                notes=notes,
                contenders=result_objects.contenders(*found, names),
                pairs=result_objects.pairs(*found),
            )
        )
        return
    kinds = {contender.name: contender.kind for contender in comparison.contenders}
    if stand_ins := stand_ins_in_words(kinds):
        say(stand_ins)
    for sentence in notes:
        note(f"note: {sentence}")
    show(*contender_tables(comparison.tally, comparison.contenders, comparison.results), notes=False, kinds=kinds)
