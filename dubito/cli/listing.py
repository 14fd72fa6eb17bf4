"""A group of commands whose help says of each what it does in a whole sentence."""

import re
from typing import Final

import click

_SENTENCE: Final = re.compile(r".*?[.!?](?=\s|$)", re.DOTALL)


class Listing(click.Group):
    """Lists its commands with the first sentence of their help, wrapped where click would cut it."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands, by name."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, _summary(command)) for name, command in sorted(self.commands.items())])


def _summary(command: click.Command) -> str:
    text = " ".join((command.help or "").split("\n\n")[0].split())
    first = _SENTENCE.match(text)
    return first[0] if first else text
