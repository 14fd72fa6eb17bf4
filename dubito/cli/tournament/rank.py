"""`dubito tournament rank`: the result of a tournament's log."""

from pathlib import Path

import click

from dubito.cli.output import note, say, show


@click.command()
@click.argument("run", type=click.Path(path_type=Path))
@click.option("--report/--no-report", default=True, show_default=True, help="Write the result as pages too.")
def rank(run: Path, report: bool) -> int:
    """Print the result in the folder RUN: scores, ballots, every round and tie, the final order; and write its pages.

    How firm it is stands beside each place: in how many of 1,000 resamples of the matches a bot keeps it."""
    return print_result(run, report)


def print_result(folder: Path, report: bool = True) -> int:
    """Print it all; the exit code."""
    from dubito.referee import log, tables
    from dubito.referee.standings import standings

    kept = log.opened_log(folder)
    manifest = log.read_manifest(folder)
    result = standings(kept, manifest["matches"])
    for sentence in (*result.damaged, *result.warnings(manifest)):
        note(f"warning: {sentence}")
    for number, game in enumerate(result.games):
        show(tables.cross_table(result, number))
        if game.ranking is not None and game.ranking.places:
            show(tables.ballot_table(result, number), tables.rounds_table(result, number))
    show(tables.conduct_table(result), tables.result_table(result))
    if report:
        from dubito.referee.pages import write_pages

        say(f"report: {write_pages(folder, kept, result, manifest)}")
    return 0
