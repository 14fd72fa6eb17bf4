"""Groups of commands whose help says of each what it does in a whole sentence; a command is loaded when it is used."""

import re
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import click

_SENTENCE: Final = re.compile(r".*?[.!?](?=\s|$)", re.DOTALL)


class Listing(click.Group):
    """Lists its commands with the first sentence of their help, wrapped where click would cut it."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands, by name."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, self.summary_of(ctx, name)) for name in self.list_commands(ctx)])

    def summary_of(self, ctx: click.Context, name: str) -> str:
        """What a command does, in a sentence."""
        command = self.get_command(ctx, name)
        return _first_sentence((command and command.help) or "")


def _first_sentence(text: str) -> str:
    words = " ".join(text.split("\n\n")[0].split())
    first = _SENTENCE.match(words)
    return first[0] if first else words


class LateListing(Listing):
    """A listing that loads a command's module when the command is used, and none for its own help."""

    def __init__(
        self, *rest: Any, places: Mapping[str, str], aliases: Mapping[str, str] | None = None, **more: Any
    ) -> None:
        """`places` says of each name where its command is: `status.status` is `status` in dubito/cli/status.py.

        `aliases` are other names, not listed.
        """
        super().__init__(*rest, **more)
        self._places, self._aliases = places, aliases or {}

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All names, in order."""
        return sorted(self._places)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """The command, loaded now; None if there is no such command."""
        name = self._aliases.get(name, name)
        if name not in self._places:
            return None
        module, _, function = self._places[name].rpartition(".")
        found: click.Command = getattr(import_module(f"dubito.cli.{module}"), function)
        return found

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As in click; for an unknown name the nearest of these is suggested."""
        try:
            return super().resolve_command(ctx, args)
        except click.NoSuchCommand as error:
            raise click.NoSuchCommand(error.command_name, possibilities=self.list_commands(ctx), ctx=ctx) from None

    def summary_of(self, ctx: click.Context, name: str) -> str:
        """The same, read in the command's source: nothing is loaded."""
        module, _, function = self._places[name].rpartition(".")
        place = Path(__file__).parent.joinpath(*module.split("."))
        source = place / "__init__.py" if place.is_dir() else place.with_suffix(".py")
        text = re.search(rf'^def {function}\(.*?"""(.*?)"""', source.read_text("utf-8"), re.DOTALL | re.MULTILINE)
        return _first_sentence(text[1] if text else "")
