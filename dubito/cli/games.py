"""`dubito games`: what can be played."""

from collections import Counter
from pathlib import Path

import click

from dubito.cli.output import note, table
from dubito.game_registry import find_families, find_games


@click.command()
@click.option("--openspiel", is_flag=True, help="OpenSpiel's games, and why some of them cannot be played here.")
def games(openspiel: bool) -> None:
    """List the games: name, seats, and what each is."""
    if openspiel:
        _openspiel()
        return
    rows = [[game.name, _seats(game.seats), game.summary] for game in find_games(Path.cwd())]
    families = [[f"{family.name}:NAME", "", family.summary] for family in find_families(Path.cwd())]
    table(f"{len(rows)} games", ["game", "seats", "what it is"], [*rows, *families])


def _openspiel() -> None:
    from dubito.games.openspiel.engine import listed

    games = [*listed()]
    open_to_all, barred = ([one for one in games if (one.why_not is None) is here] for here in (True, False))
    rows = [
        [f"openspiel:{one.name}", _seats(one.seats), "hidden information" if one.hidden else "nothing is hidden"]
        for one in open_to_all
    ]
    table(f"{len(rows)} games of OpenSpiel's can be played here", ["game", "seats", "what a seat knows"], rows)
    counts = Counter(one.why_not for one in barred)
    reasons = [
        [reason or "", ", ".join(one.name for one in barred if one.why_not == reason)]
        for reason, _ in counts.most_common()
    ]
    table(f"{len(barred)} cannot", ["why not", "games"], reasons)
    note("parameters stand in brackets, as openspiel:kuhn_poker(players=3); some games need them")


def _seats(seats: tuple[int, int]) -> str:
    least, most = seats
    return f"{least}" if least == most else f"{least} to {most}"
