"""`dubito prompts list`, `show`, `diff` and `golden`: the prompts there are, and what they say. No model is asked."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from dubito.cli.options import game_option
from dubito.cli.output import say, table
from dubito.errors import UsageError
from dubito.files import read_text
from dubito.game import Position, Spec
from dubito.game.find import find_game
from dubito.llm.prompts import load_prompt, prompt_names
from dubito.workshop.checks import golden_files
from dubito.workshop.lint import differences
from dubito.workshop.recordings import write_files


def nodes_of(game: Spec) -> list[str]:
    """The names of its nodes."""
    return [node.name for node in game.nodes]


def main_node(game: Spec) -> str:
    """The node that is shown if none is named: one that states something, if there is one."""
    return next((node.name for node in game.nodes if node.states), game.nodes[0].name)


def check_node(game: Spec, node: str | None) -> None:
    """Raise click's error for a node that the game does not have."""
    names = nodes_of(game)
    if node is not None and node not in names:
        raise click.BadParameter(f"{node!r} is not one of {', '.join(map(repr, names))}.", param_hint="'--node'")


def at_position(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options that choose a position."""
    node = click.option("--node", metavar="NODE", help="An example position of this node. [default: C, in Dubito]")
    file = click.option("--position", "file", type=click.Path(path_type=Path), metavar="FILE", help="This position.")
    return node(file(command))


def position_of(game: Spec, node: str | None, file: Path | None) -> Position:
    """The position that these options choose; raises UsageError."""
    check_node(game, node)
    if node is not None and file is not None:
        raise UsageError("--node shows an example and --position a file, which has a node of its own: give one of them")
    position: Position
    if file is None:
        position = game.facts.example_position(node or main_node(game))
    else:
        position = game.facts.from_json(read_text(file))
    return position


@click.command("list")
@game_option
def list_prompts(game: str) -> None:
    """List the prompts of the project and of `prompts` in this folder: name, title, digest, folder."""
    here, spec = Path.cwd(), find_game(game, Path.cwd())
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


@click.command()
@click.argument("one", metavar="A")
@click.argument("other", metavar="B")
@at_position
@game_option
def diff(one: str, other: str, node: str | None, file: Path | None, game: str) -> int:
    """Show how prompt B (a name, or a folder's path) differs from A in what it says at one position. Exit code 1 if it
    does."""
    spec, here = find_game(game, Path.cwd()), Path.cwd()
    position = position_of(spec, node, file)
    old, new = load_prompt(one, here, spec), load_prompt(other, here, spec)
    lines = list(differences(old, new, position))
    for line in lines:
        say(line)
    if lines:
        return 1
    elsewhere = []
    if node is None and file is None:
        example = spec.facts.example_position
        elsewhere = [name for name in nodes_of(spec) if any(differences(old, new, example(name)))]
    same = f"the same at node {main_node(spec)}, but not at {', '.join(elsewhere)}: see it with --node"
    say(same if elsewhere else "the same")
    return 1 if elsewhere else 0


@click.command()
@click.argument("name")
@game_option
def golden(name: str, game: str) -> None:
    """Write what prompt NAME says at the example position of each node into its folder, as `golden/NODE.txt`."""
    files = golden_files(load_prompt(name, Path.cwd(), find_game(game, Path.cwd())))
    write_files(files)
    for file in files:
        say(f"written: {file}")
