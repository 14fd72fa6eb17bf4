"""The golden renderings: what prompt `plain` says at the example position of each node.

`python -m tests.prompts.golden` in the root of the project writes prompts/plain/golden/*.txt anew, after a change of
the templates, the facts or the example that was meant; review the difference before it is committed.
"""

from pathlib import Path

from dubito.llm.prompts import OWN_PROMPTS, load_prompt
from dubito.player import NODES
from dubito.positions import example_position

FOLDER = OWN_PROMPTS / "plain" / "golden"


def renderings() -> dict[Path, str]:
    """The file of each node, and what belongs into it."""
    prompt = load_prompt("plain", OWN_PROMPTS.parent)
    return {FOLDER / f"{node}.txt": f"{prompt.render(example_position(node))}\n" for node in NODES}


if __name__ == "__main__":
    FOLDER.mkdir(parents=True, exist_ok=True)
    for file, text in renderings().items():
        file.write_text(text, encoding="utf-8", newline="\n")
        print(f"written: {file}")
