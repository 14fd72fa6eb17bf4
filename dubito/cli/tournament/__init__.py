"""`dubito tournament`: the Hidden Information Games tournament, from a bot's first match to the final order."""

from typing import Final

import click

from dubito.cli.listing import LateListing

_PLACES: Final = {
    "check": "tournament.trial.check",
    "qualify": "tournament.trial.qualify",
    "play": "tournament.play.play",
    "rank": "tournament.play.rank",
    "replay": "tournament.replay.replay",
    "bot": "tournament.bot.bot",
}


@click.group(cls=LateListing, places=_PLACES)
def tournament() -> None:
    """Hold a tournament of programs at games of hidden information: a strict referee, ranked by instant run-off."""
