"""`dubito prompts`: see what prompts say, and try them out before games are paid for."""

import click

from dubito.cli.listing import Listing
from dubito.cli.prompts.lint import lint
from dubito.cli.prompts.record import record
from dubito.cli.prompts.show import diff, golden, list_prompts, show
from dubito.cli.prompts.trial import test


@click.group(cls=Listing)
def prompts() -> None:
    """List prompts, show what one says, and try them out on recorded positions."""


for command in (list_prompts, show, diff, lint, record, test, golden):
    prompts.add_command(command)
