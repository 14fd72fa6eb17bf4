"""`dubito prompts diff`: how what two prompts say differs. No model is asked."""

from pathlib import Path

import click

from dubito.cli.output import say
from dubito.cli.prompts.show import at_position, position_of
from dubito.games.dubito.player import NODES
from dubito.games.dubito.positions import example_position
from dubito.llm.prompts import load_prompt
from dubito.workshop.differ import differences


@click.command()
@click.argument("one", metavar="A")
@click.argument("other", metavar="B")
@at_position
def diff(one: str, other: str, node: str | None, file: Path | None) -> int:
    """Show how prompt B (a name, or a folder's path) differs from A in what it says at one position. Exit code 1 if it
    does."""
    position, here = position_of(node, file), Path.cwd()
    old, new = load_prompt(one, here), load_prompt(other, here)
    lines = list(differences(old, new, position))
    for line in lines:
        say(line)
    if lines:
        return 1
    elsewhere = []
    if node is None and file is None:
        elsewhere = [name for name in NODES if any(differences(old, new, example_position(name)))]
    say("the same" if not elsewhere else f"the same at node C, but not at {', '.join(elsewhere)}: see it with --node")
    return 1 if elsewhere else 0
