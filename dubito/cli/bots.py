"""`dubito bots`: every bot that was found, what is missing of it, and every file that cannot be used."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from dubito.cli.options import game_option, json_option
from dubito.cli.output import print_document, say, table
from dubito.errors import one_line
from dubito.game.find import Registry, find_bots

if TYPE_CHECKING:
    from dubito.cli.documents import BotsObject


@click.command()
@game_option
@json_option
def bots(game: str, as_json: bool) -> None:
    """List the bots of a game: name, strategy, origin, file; then unfinished bots and files that cannot be used."""
    here = Path.cwd()
    registry = find_bots(here, game)
    if as_json:
        print_document(_document(registry, here))
        return
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


def _document(registry: Registry, here: Path) -> "BotsObject":
    from dubito.cli.documents import BotsObject, BrokenFile, ListedBot  # late: without --json nobody needs it

    return BotsObject(
        game=registry.game.name,
        bots=[
            ListedBot(
                name=bot.name,
                strategy=bot.summary,
                origin=str(bot.cls.origin),
                file=_relative(bot.file, here),
                usual=bot.usual,
                repeatable=bot.repeatable,
                missing=list(bot.missing),
            )
            for _, bot in sorted(registry.bots.items())
        ],
        broken=[BrokenFile(file=_relative(broken.file, here), reason=broken.reason) for broken in registry.broken],
    )


def _relative(file: Path, here: Path) -> str:
    return str(file.relative_to(here) if file.is_relative_to(here) else file)
