"""`dubito tournament bot`: play a tournament match as a bot or model of Dubito."""

import os
import sys
import time
from pathlib import Path

import click

from dubito.cli.opponents import open_opponents
from dubito.cli.options import config_options, program_options
from dubito.errors import UsageError
from dubito.model_settings import SHORT_FORM_SETTINGS
from dubito.plugins.tournament.our_player import MatchSeat, answer_lines


@click.command()
@click.argument("player")
@program_options
@config_options(*SHORT_FORM_SETTINGS)
def bot(player: str, **server: str | None) -> None:
    """Play one match as PLAYER over standard input and output.

    PLAYER is a bot for OpenSpiel's games, or a model such as openai:MODEL@PROMPT. Only small games such as kuhn_poker
    and leduc_poker are supported. In a config, write `solved: dubito tournament bot Solved`. A model player needs the
    network: `{command: dubito tournament bot openai:MODEL, network: true}`.
    """
    game, seat_line = sys.stdin.readline().strip(), sys.stdin.readline().strip()
    if seat_line not in ("0", "1"):
        raise UsageError(
            "standard input must come from a referee and start with the game's name and the seat on separate lines"
        )
    seat = int(seat_line)
    seed, number = int(os.environ.get("DUBITO_SEED", "0")), int(time.time() * 1000)
    data = os.environ.get("DUBITO_DATA")
    # A referee only allows writes to the data folder.
    settings = server if data is None else {**server, "cache": f"{data}/cache"}
    games = Path(data or ".") / "games"
    with open_opponents(None, [player], games, number, lambda: False, settings, f"openspiel:{game}") as opponents:
        entrant, services = opponents.seat_bot(player, seed)
        answer_lines(entrant, services, MatchSeat(game, seat, seed, number), sys.stdin, sys.stdout)
