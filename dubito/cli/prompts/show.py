"""`dubito prompts list` and `show`: the prompts there are, and what one says for a position. No model is asked."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from dubito.cli.output import say, table
from dubito.errors import UsageError
from dubito.games.dubito.facts import Position
from dubito.games.dubito.player import NODES
from dubito.games.dubito.positions import example_position, from_json
from dubito.llm.prompts import load_prompt, prompt_names
from dubito.workshop.recorded import read_text


def at_position(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options that choose a position."""
    node = click.option("--node", type=click.Choice([*NODES]), help="An example position of this node. [default: C]")
    file = click.option("--position", "file", type=click.Path(path_type=Path), metavar="FILE", help="This position.")
    return node(file(command))


def position_of(node: str | None, file: Path | None) -> Position:
    """The position that these options choose; raises UsageError."""
    if node is not None and file is not None:
        raise UsageError("--node shows an example and --position a file, which has a node of its own: give one of them")
    return example_position(node or "C") if file is None else from_json(read_text(file))


@click.command("list")
def list_prompts() -> None:
    """List the prompts of the project and of `prompts` in this folder: name, title, digest, folder."""
    here = Path.cwd()
    found = [load_prompt(name, here) for name in prompt_names(here)]
    rows = [[prompt.name, prompt.title, prompt.digest[:12], str(prompt.folder)] for prompt in found]
    table(f"{len(rows)} prompts", ["prompt", "title", "digest", "folder"], rows)


@click.command()
@click.argument("name")
@at_position
def show(name: str, node: str | None, file: Path | None) -> None:
    """Show the system and user text of prompt NAME (or of a folder's path) for one position."""
    position = position_of(node, file)
    say(str(load_prompt(name, Path.cwd()).render(position)))
