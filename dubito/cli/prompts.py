"""`dubito prompts`: the prompts there are, and what one says for a position. No model is asked."""

from pathlib import Path

import click

from dubito.cli.output import say, table
from dubito.errors import UsageError
from dubito.llm.prompts import load_prompt, prompt_names
from dubito.player import NODES
from dubito.positions import example_position, from_json


@click.group()
def prompts() -> None:
    """List prompts, or show what one says."""


@prompts.command("list")
def list_prompts() -> None:
    """List the prompts of the project and of `prompts` in this folder: name, title, digest, folder."""
    here = Path.cwd()
    found = [load_prompt(name, here) for name in prompt_names(here)]
    rows = [[prompt.name, prompt.title, prompt.digest[:12], str(prompt.folder)] for prompt in found]
    table(f"{len(rows)} prompts", ["prompt", "title", "digest", "folder"], rows)


@prompts.command()
@click.argument("name")
@click.option("--node", type=click.Choice([*NODES]), help="Show an example position of this node. [default: C]")
@click.option("--position", "file", type=click.Path(path_type=Path), metavar="FILE", help="Show this position.")
def show(name: str, node: str | None, file: Path | None) -> None:
    """Show the system and user text of prompt NAME (or of a folder's path) for one position."""
    if node is not None and file is not None:
        raise UsageError("--node shows an example and --position a file, which has a node of its own: give one of them")
    prompt = load_prompt(name, Path.cwd())
    position = example_position(node or "C") if file is None else from_json(_text(file))
    say(str(prompt.render(position)))


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no text in UTF-8"
        raise UsageError(f"cannot read {file}: {reason}") from None
