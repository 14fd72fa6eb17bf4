"""`dubito bots`: every bot that was found, what is missing of it, and every file that cannot be used."""

from pathlib import Path

import click

from dubito.cli.options import game_option
from dubito.cli.output import say, table
from dubito.errors import one_line
from dubito.registry import find_bots


@click.command()
@game_option
def bots(game: str) -> None:
    """List the bots of a game: name, strategy, origin, file; then unfinished bots and files that cannot be used."""
    here = Path.cwd()
    registry = find_bots(here, game)
    rows = []
    for _, bot in sorted(registry.bots.items()):
        strategy = bot.summary if bot.repeatable else f"{bot.summary} (not repeatable: draws from outside self.rng)"
        if not bot.usual:
            strategy += " (joins a field by name only)"
        rows.append([bot.name, strategy, one_line(str(bot.cls.origin)), _relative(bot.file, here)])
    table(f"{len(rows)} bots", ["bot", "strategy", "origin", "file"], rows)
    for _, bot in sorted(registry.bots.items()):
        if bot.missing:
            say(f"unfinished: {_relative(bot.file, here)}: not written yet: {', '.join(bot.missing)}")
    for broken in registry.broken:
        say(f"broken: {_relative(broken.file, here)}: {broken.reason}")


def _relative(file: Path, here: Path) -> str:
    return str(file.relative_to(here) if file.is_relative_to(here) else file)
