"""Golden renderings: what a prompt says at the example position of each node, kept beside its templates."""

from pathlib import Path

from dubito.llm.prompts import Prompt


def golden_files(prompt: Prompt) -> dict[Path, str]:
    """The file of each node in the prompt's folder, and what belongs into it."""
    example = prompt.game.facts.example_position
    names = [node.name for node in prompt.game.nodes]
    return {prompt.folder / "golden" / f"{name}.txt": f"{prompt.render(example(name))}\n" for name in names}
