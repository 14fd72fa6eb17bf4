"""`dubito tournament bot`: one of our players as a program for a tournament."""

import os
import sys
import time
from pathlib import Path

import click

from dubito.cli.options import server_options
from dubito.errors import UsageError


@click.command()
@click.argument("player")
@server_options
def bot(player: str, **server: str | None) -> None:
    """Play one match as PLAYER over standard input and output: a bot of OpenSpiel's games, or a model as in
    openai:MODEL@PROMPT.

    It is for small games, as kuhn_poker and leduc_poker. In a config write `solved: dubito tournament bot Solved`; a
    player that asks a model needs the network: `{command: dubito tournament bot openai:MODEL, network: true}`."""
    from dubito.cli.company import opponents
    from dubito.referee.our_player import SeatTaken
    from dubito.referee.our_player import answer_lines as play

    game, said = sys.stdin.readline().strip(), sys.stdin.readline().strip()
    if said not in ("0", "1"):
        raise UsageError("standard input begins with a game's name and a seat, a line each: a referee starts this")
    seat = int(said)
    seed, number = int(os.environ.get("DUBITO_SEED", "0")), int(time.time() * 1000)
    kept = os.environ.get("DUBITO_DATA")
    settings = server if kept is None else {**server, "cache": f"{kept}/cache"}  # a referee lets it write nowhere else
    games = Path(kept or ".") / "games"
    with opponents(None, [player], games, number, lambda: False, settings, f"openspiel:{game}") as company:
        entrant, services = company.alone(player, seed)
        play(entrant, services, SeatTaken(game, seat, seed, number), sys.stdin, sys.stdout)
