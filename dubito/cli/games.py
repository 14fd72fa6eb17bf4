"""`dubito games`: what can be played."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dubito.cli.options import json_option
from dubito.cli.output import note, print_document, table
from dubito.game import Family
from dubito.game.find import find_families, find_games

if TYPE_CHECKING:
    from dubito.cli.documents import GamesObject


@click.command()
@click.option("--openspiel", is_flag=True, help="OpenSpiel's games, and why some of them cannot be played here.")
@json_option
def games(openspiel: bool, as_json: bool) -> None:
    """List the games: name, seats, and what each is."""
    families = find_families(Path.cwd())
    if as_json:
        print_document(_document(families, openspiel))
        return
    if openspiel:
        _members(next(family for family in families if family.name == "openspiel"))
        return
    rows = [[game.name, _seats(game.seats), game.summary] for game in find_games(Path.cwd())]
    more = [[f"{family.name}:NAME", "", family.summary] for family in families]
    table(f"{len(rows)} games", ["game", "seats", "what it is"], [*rows, *more])


def _document(families: Sequence[Family], openspiel: bool) -> "GamesObject":
    from dubito.cli.documents import GamesObject, ListedGame  # late: without --json nobody needs it

    if openspiel:
        family = next(family for family in families if family.name == "openspiel")
        members = [
            ListedGame(name=f"{family.name}:{one.name}", seats=one.seats, summary=one.about, why_not=one.why_not)
            for one in family.members()
        ]
        return GamesObject(games=members)
    found = [ListedGame(name=game.name, seats=game.seats, summary=game.summary) for game in find_games(Path.cwd())]
    return GamesObject(
        games=[*found, *(ListedGame(name=f"{one.name}:NAME", seats=None, summary=one.summary) for one in families)]
    )


def _members(family: Family) -> None:
    members = [*family.members()]
    open_to_all, barred = ([one for one in members if (one.why_not is None) is here] for here in (True, False))
    rows = [[f"{family.name}:{one.name}", _seats(one.seats), one.about] for one in open_to_all]
    table(f"{len(rows)} games of {family.name} can be played", ["game", "seats", "what a seat knows"], rows)
    reasons = Counter(one.why_not or "" for one in barred)
    named = [[why, ", ".join(one.name for one in barred if one.why_not == why)] for why, _ in reasons.most_common()]
    table(f"{len(barred)} cannot", ["why not", "games"], named)
    note(f"parameters stand in brackets, as {family.name}:kuhn_poker(players=3); some games need them")


def _seats(seats: tuple[int, int]) -> str:
    least, most = seats
    return f"{least}" if least == most else f"{least} to {most}"
