"""Golden renderings: what a prompt says at the example position of each node, kept beside its templates."""

from pathlib import Path

from dubito.games.dubito.player import NODES
from dubito.games.dubito.positions import example_position
from dubito.llm.prompts import Prompt


def golden_files(prompt: Prompt) -> dict[Path, str]:
    """The file of each node in the prompt's folder, and what belongs into it."""
    return {prompt.folder / "golden" / f"{node}.txt": f"{prompt.render(example_position(node))}\n" for node in NODES}
