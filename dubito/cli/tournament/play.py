"""`dubito tournament play`: a tournament, from its config to its final order."""

import time
from pathlib import Path
from typing import Any

import click

from dubito.cli.output import GamesProgress, note, say
from dubito.cli.tournament.rank import print_result


@click.command()
@click.argument("config", type=click.Path(path_type=Path))
@click.option("--matches", type=int, metavar="N", help="Matches of each pair from each position. [default: 2500]")
@click.option("--seed", type=int, metavar="N", help="Seed of the tournament. [default: 0]")
@click.option("--chance-seconds", type=float, metavar="S", help="What each draw of chance takes. [default: 0.2]")
@click.option("--pairs", type=int, metavar="N", help="Pairs that play at once. [default: one for two cores]")
@click.option("--output", metavar="FOLDER", help="The tournament's folder. [default: tournaments/NAME]")
@click.option("--quiet", is_flag=True, help="No progress.")
def play(config: Path, quiet: bool, **flags: Any) -> int:
    """Play the tournament in CONFIG (a YAML file; flags go over it), and print its result. The same command resumes
    a tournament that was stopped."""
    from dubito.referee import tournament
    from dubito.referee.config import tournament as read

    told = read(config, {key: value for key, value in flags.items() if value is not None})
    folder = Path(told.config.output or Path("tournaments") / config.stem)
    bots = len(told.bots)
    total = len(told.config.games) * bots * (bots - 1) * told.config.matches
    for sentence in tournament.notes(told.config):
        note(f"note: {sentence}")
    with GamesProgress(total, quiet, time.monotonic, unit="matches") as progress:
        tournament.play(told, folder, note, progress)
    code = print_result(folder)
    say(f"tournament: {folder}")
    return code
