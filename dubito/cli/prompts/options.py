"""What the commands of `dubito prompts` take a game and its nodes from."""

from pathlib import Path

import click

from dubito.game import Spec
from dubito.game_registry import find_game


def game_of(name: str) -> Spec:
    """The game of that name; raises UsageError."""
    return find_game(name, Path.cwd())


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
