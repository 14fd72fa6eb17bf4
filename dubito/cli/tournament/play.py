"""`dubito tournament play` and `rank`: a tournament, from its config to its final order, which is read from its log."""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dubito.cli.output import GamesProgress, note, say, show

if TYPE_CHECKING:
    from dubito.referee.standings import Standings


@click.command()
@click.argument("config", type=click.Path(path_type=Path))
@click.option("--matches", type=int, metavar="N", help="Matches of each pair from each position. [default: 2500]")
@click.option("--seed", type=int, metavar="N", help="Seed of the tournament. [default: 0]")
@click.option("--chance-seconds", type=float, metavar="S", help="What each draw of chance takes. [default: 0.2]")
@click.option("--pairs", type=int, metavar="N", help="Pairs that play at once. [default: one for two cores]")
@click.option("--output", metavar="FOLDER", help="The tournament's folder. [default: tournaments/NAME]")
@click.option("--quiet", is_flag=True, help="Hide the progress line.")
def play(config: Path, quiet: bool, **flags: Any) -> int:
    """Play the tournament in CONFIG (a YAML file; flags go over it), and print its result. The same command resumes
    a tournament that was stopped."""
    from dubito.referee import tournament
    from dubito.referee.plan import tournament as read

    told = read(config, {key: value for key, value in flags.items() if value is not None})
    folder = Path(told.config.output or Path("tournaments") / config.stem)
    bots = len(told.bots)
    total = len(told.config.games) * bots * (bots - 1) * told.config.matches
    for sentence in tournament.notes(told.config):
        note(f"note: {sentence}")
    with GamesProgress(total, quiet, time.monotonic, unit="matches") as progress:
        tournament.play(told, folder, note, progress)
    code = _print_result(folder)
    say(f"tournament: {folder}")
    return code


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--report/--no-report", default=True, show_default=True, help="Write the result as pages too.")
def rank(folder: Path, report: bool) -> int:
    """Print the result in FOLDER: scores, ballots, every round and tie, the final order; and write its pages. FOLDER
    may also be a bare table of scores, in CSV or YAML (docs/tournament.md), which gets no pages.

    How firm it is stands beside each place: in how many of 1,000 resamples of the matches a bot keeps it."""
    if not folder.is_file():
        return _print_result(folder, report)
    from dubito.referee.pages import result_table
    from dubito.referee.standings import table_standings

    result = table_standings(folder)
    _show_games(result, result.warnings({"identity": {}}))
    show(result_table(result))
    return 0


def _print_result(folder: Path, report: bool = True) -> int:
    """Print it all; the exit code."""
    from dubito.referee import log, pages
    from dubito.referee.standings import standings

    kept = log.opened_log(folder)
    manifest = log.read_manifest(folder)
    result = standings(kept)
    _show_games(result, [*result.damaged, *result.warnings(manifest)])
    show(pages.conduct_table(result), pages.result_table(result))
    if report:
        from dubito.referee.pages import write_pages

        say(f"report: {write_pages(folder, kept, result, manifest)}")
    return 0


def _show_games(result: "Standings", warnings: Sequence[str]) -> None:
    """Every game's scores, ballots and rounds."""
    from dubito.referee import pages

    for sentence in warnings:
        note(f"warning: {sentence}")
    for number, game in enumerate(result.games):
        show(pages.cross_table(result, number))
        if game.ranking is not None and game.ranking.places:
            show(pages.ballot_table(result, number), pages.rounds_table(result, number))
