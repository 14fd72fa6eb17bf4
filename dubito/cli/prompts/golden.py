"""`dubito prompts golden`: keep what a prompt says, for its tests to compare with. No model is asked."""

from pathlib import Path

import click

from dubito.cli.options import game_option
from dubito.cli.output import say
from dubito.cli.prompts.options import game_of
from dubito.llm.prompts import load_prompt
from dubito.workshop.golden import golden_files
from dubito.workshop.recordings import write_files


@click.command()
@click.argument("name")
@game_option
def golden(name: str, game: str) -> None:
    """Write what prompt NAME says at the example position of each node into its folder, as `golden/NODE.txt`."""
    files = golden_files(load_prompt(name, Path.cwd(), game_of(game)))
    write_files(files)
    for file in files:
        say(f"written: {file}")
