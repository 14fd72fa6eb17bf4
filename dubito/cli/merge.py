"""`dubito merge`: the shards of a run made one run."""

from pathlib import Path

import click

from dubito.cli.documents import MergeObject
from dubito.cli.options import json_option
from dubito.cli.output import print_document, say
from dubito.cli.run import document_of, written_report
from dubito.cli.summary import print_summary
from dubito.experiment import shards as merging
from dubito.experiment.run import finished_run
from dubito.game.find import find_bots


@click.command()
@click.argument("runs", nargs=-1, required=True, metavar="RUN...", type=click.Path(path_type=Path))
@click.option(
    "--output",
    metavar="FOLDER",
    type=click.Path(path_type=Path),
    help="The run folder. [default: where the whole run would be]",
)
@click.option("--out", "old_output", type=click.Path(path_type=Path), hidden=True)  # its name until now
@click.option("--report/--no-report", default=True, show_default=True, help="Write the run as pages too.")
@json_option
def merge(runs: tuple[Path, ...], output: Path | None, old_output: Path | None, report: bool, as_json: bool) -> int:
    """Join the folders RUN..., all shards of one run, into the run that one machine would have made.

    Missing shards, one that is given twice or is unfinished, and shards of different runs are refused by name.
    """
    shards = merging.shards_in(runs)
    registry = find_bots(Path.cwd(), shards[0].identity.game)
    whole = shards[0].experiment().whole
    for player in whole.players:
        registry.find(player.bot)
    folder = output or old_output or merging.default_folder(shards)
    merging.merge(shards, folder)
    run = finished_run(whole, registry, folder)
    assert run is not None  # all of its games are there
    if not as_json:
        print_summary(run, sizes=False)
    index = written_report(folder, registry, new=True) if report else None
    if as_json:
        print_document(
            MergeObject(shards=[str(shard.folder) for shard in shards], run=document_of(run, index, registry))
        )
        return 0
    if index is not None:
        say(f"report: {index}")
    say(f"run folder: {folder}")
    return 0
