"""`dubito merge`: merge the shards of a run. `dubito compare`: compare contenders on the same deals."""

from contextlib import ExitStack
from pathlib import Path
from textwrap import fill
from typing import Any, cast

import click

from dubito.cli.call_options import limited_call_options
from dubito.cli.options import config_options, games_path_option, json_option, open_run_folder
from dubito.cli.output import note, print_document, say, show
from dubito.cli.summary import build_document, print_next_steps, print_summary, write_run_report
from dubito.experiment.compare import check_comparable, compare_runs, list_arms, list_caveats
from dubito.experiment.experiment import describe_claims, describe_fake_models, list_claims, player_labels
from dubito.experiment.resolved import ResolvedRun
from dubito.experiment.run import find_finished_run
from dubito.experiment.shards import IncompleteShards, default_folder, describe_spending, read_shards
from dubito.experiment.shards import merge as merge_shards
from dubito.experiment.stored import open_recorded_run
from dubito.game.find import find_bots
from dubito.hooks import comparison_parts
from dubito.report import documents
from dubito.report.documents import ComparisonObject, MergeObject
from dubito.report.run_tables import arm_tables, contender_tables
from dubito.report.tables import ComparisonPart
from dubito.report.verdicts import describe_verdict
from dubito.stats.ranking import contender_pairs, relate_contenders


@click.command()
@click.argument("runs", nargs=-1, required=True, metavar="RUN...", type=click.Path(path_type=Path))
@click.option(
    "--output",
    metavar="FOLDER",
    type=click.Path(path_type=Path),
    help="The new run folder. [default: the folder an unsharded run would use]",
)
@config_options("budget")
@click.option("--tables", is_flag=True, help="Print all tables instead of a summary.")
@click.option("--report/--no-report", default=True, show_default=True, help="Write the report as HTML pages.")
@games_path_option
@json_option
def merge(
    runs: tuple[Path, ...],
    output: Path | None,
    budget: str | None,
    tables: bool,
    report: bool,
    as_json: bool,
) -> int:
    """Merge the shards of a run into one run.

    RUN... are the folders of the shards. Missing, unfinished, duplicate or foreign shards are reported. The cost of all
    models is always printed.
    """
    caps = limited_call_options({"budget": budget}).caps
    try:
        shards = read_shards(runs)
    except IncompleteShards as error:
        for line in describe_spending(error.shards, caps):
            note(line)
        raise
    for line in describe_spending(shards, caps):
        note(line)
    whole = shards[0].experiment.unsharded
    resolved = ResolvedRun.load(whole, find_bots(Path.cwd(), whole.game))
    folder = output or default_folder(shards)
    merge_shards(shards, folder)
    run = find_finished_run(resolved, folder)
    assert run is not None, "a merged run is finished"
    if not as_json:
        print_summary(run, tables)
    index = write_run_report(folder, new=True) if report else None
    if as_json:
        print_document(MergeObject(shards=[str(shard.folder) for shard in shards], run=build_document(run, index)))
        return 0
    if index is not None:
        say(f"report: {index}")
    print_next_steps(folder, tables, run)
    return 0


@click.command()
@click.argument("runs", nargs=-1, metavar="RUN...", type=click.Path(path_type=Path))
@games_path_option
@json_option
def compare(runs: tuple[Path, ...], as_json: bool) -> None:
    """Compare contenders on the deals that all of them played.

    Several runs need the same seed, table sizes and number of opponents, so that their deals are the same. For one run,
    by default the latest, the command compares its contenders. The Compare page of `dubito report` shows where two of
    them decided differently.
    """
    with ExitStack() as stack:
        folders = [stack.enter_context(open_run_folder(run)) for run in runs or (None,)]
        names = [str(run or folder) for run, folder in zip(runs or (None,), folders, strict=True)]
        opened = (open_recorded_run(folder, shown=name) for name, folder in zip(names, folders, strict=True))
        stored = [stack.enter_context(run) for run in opened]
        check_comparable(stored)
        notes, comparison = list_caveats(stored), compare_runs(stored)
        arms = list_arms(stored, comparison)
        parts: list[ComparisonPart] = [*comparison_parts(stored, comparison)]
    ranking_inputs = comparison.tally, comparison.contenders, comparison.results
    kinds = {contender.name: contender.kind for contender in comparison.contenders}
    relation = relate_contenders(*ranking_inputs)
    verdict = describe_verdict(relation, player_labels(kinds)) if relation else None
    if as_json:
        print_document(
            ComparisonObject(
                runs=names,
                notes=notes,
                contenders=documents.contenders(*ranking_inputs, names),
                pairs=documents.pairs(*ranking_inputs),
                verdict=verdict,
                arms=documents.arms(arms),
                comparison=documents.comparison(*ranking_inputs),
                claimed=list_claims(kinds),
                **cast(Any, {part.key: part.rows for part in parts}),
            )
        )
        return
    if fake_models := describe_fake_models(kinds):
        say(fake_models)
    for sentence in notes:
        note(f"note: {sentence}")
    if verdict is not None:
        say(fill(verdict, 79, break_on_hyphens=False))
    show(*contender_tables(*ranking_inputs), notes=False, kinds=kinds)
    if claims := describe_claims(kinds):
        say(fill(claims, 79, break_on_hyphens=False))
    more = [block for part in parts for block in part.blocks]
    pairs = contender_pairs(*ranking_inputs) if arms else []
    show(*arm_tables(arms, pairs, comparison.results), *more, notes=False, kinds=kinds)
