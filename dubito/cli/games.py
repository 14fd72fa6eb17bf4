"""`dubito games`: what can be played."""

from pathlib import Path

import click

from dubito.cli.output import table
from dubito.game_registry import find_games


@click.command()
def games() -> None:
    """List the games: name, seats, and what each is."""
    rows = [[game.name, _seats(game.seats), game.summary] for game in find_games(Path.cwd())]
    table(f"{len(rows)} games", ["game", "seats", "what it is"], rows)


def _seats(seats: tuple[int, int]) -> str:
    least, most = seats
    return f"{least}" if least == most else f"{least} to {most}"
