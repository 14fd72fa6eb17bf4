"""`dubito prompts`: see what prompts say, and try them out before games are paid for."""

from typing import Final

import click

from dubito.cli.listing import LateListing

_PLACES: Final = {
    "list": "prompts.show.list_prompts",
    "show": "prompts.show.show",
    "diff": "prompts.show.diff",
    "golden": "prompts.show.golden",
    "lint": "prompts.lint.lint",
    "record": "prompts.record.record",
    "test": "prompts.trial.test",
}


@click.group(cls=LateListing, places=_PLACES)
def prompts() -> None:
    """List prompts, show what one says, and try them out on recorded positions."""
