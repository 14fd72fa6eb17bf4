"""`dubito tournament`: the Hidden Information Games tournament, from a bot's first match to the final order."""

import click

from dubito.cli.listing import Listing
from dubito.cli.tournament.bot import bot
from dubito.cli.tournament.play import play, rank
from dubito.cli.tournament.replay import replay
from dubito.cli.tournament.trial import check, qualify


@click.group(cls=Listing)
def tournament() -> None:
    """Hold a tournament of programs at games of hidden information: a strict referee, ranked by instant run-off."""


for command in (check, qualify, play, rank, replay, bot):
    tournament.add_command(command)
