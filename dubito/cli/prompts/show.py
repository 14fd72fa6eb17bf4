"""`dubito prompts list` and `show`: the prompts there are, and what one says for a position. No model is asked."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from dubito.cli.options import game_option
from dubito.cli.output import say, table
from dubito.errors import UsageError, one_line
from dubito.game import Position, Spec
from dubito.game_registry import find_game
from dubito.llm.prompts import load_prompt, prompt_names
from dubito.workshop.craft import craft_of, node_names
from dubito.workshop.recorded import read_text


def at_position(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options that choose a position."""
    node = click.option("--node", metavar="NODE", help="An example position of this node. [default: C; bs at BS]")
    file = click.option("--position", "file", type=click.Path(path_type=Path), metavar="FILE", help="This position.")
    return node(file(command))


def node_of(game: Spec, node: str) -> str:
    """This node; raises BadParameter if the game has none such."""
    if node not in node_names(game):
        known = ", ".join(node_names(game))
        raise click.BadParameter(
            f"{game.name} has no {one_line(node)!r}; its nodes are {known}.", param_hint="'--node'"
        )
    return node


def position_of(game: Spec, node: str | None, file: Path | None) -> Position:
    """The position that these options choose; raises UsageError."""
    if node is not None and file is not None:
        raise UsageError("--node shows an example and --position a file, which has a node of its own: give one of them")
    facts = game.facts
    position: Position
    if file is None:
        position = facts.example_position(craft_of(game).JUDGED if node is None else node_of(game, node))
    else:
        position = facts.from_json(read_text(file))
    return position


@click.command("list")
@game_option
def list_prompts(game: str) -> None:
    """List a game's prompts of the project and of `prompts` in this folder: name, title, digest, folder."""
    here = Path.cwd()
    spec = find_game(game, here)
    found = [load_prompt(name, here, spec) for name in prompt_names(here, spec)]
    rows = [[prompt.name, prompt.title, prompt.digest[:12], str(prompt.folder)] for prompt in found]
    table(f"{len(rows)} prompts", ["prompt", "title", "digest", "folder"], rows)


@click.command()
@click.argument("name")
@at_position
@game_option
def show(name: str, node: str | None, file: Path | None, game: str) -> None:
    """Show the system and user text of prompt NAME (or of a folder's path) for one position."""
    spec = find_game(game, Path.cwd())
    position = position_of(spec, node, file)
    say(str(load_prompt(name, Path.cwd(), spec).render(position)))
