"""`dubito prompts diff`: how what two prompts say differs. No model is asked."""

from pathlib import Path

import click

from dubito.cli.options import game_option
from dubito.cli.output import say
from dubito.cli.prompts.options import game_of, main_node, nodes_of
from dubito.cli.prompts.show import at_position, position_of
from dubito.llm.prompts import load_prompt
from dubito.workshop.differ import differences


@click.command()
@click.argument("one", metavar="A")
@click.argument("other", metavar="B")
@at_position
@game_option
def diff(one: str, other: str, node: str | None, file: Path | None, game: str) -> int:
    """Show how prompt B (a name, or a folder's path) differs from A in what it says at one position. Exit code 1 if it
    does."""
    spec, here = game_of(game), Path.cwd()
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
