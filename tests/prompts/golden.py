"""The golden renderings of each prompt at the example position of each node.

After an intended change of the templates, the facts or the example, run `python -m tests.prompts.golden` in the
project's root to rewrite prompts/*/golden/*.txt. Review the difference before you commit it.
"""

from pathlib import Path

from dubito.games.dubito.bot import NODES
from dubito.games.dubito.facts import example_position
from dubito.llm.prompts import OWN_PROMPTS, load_prompt, prompt_names

NAMES = prompt_names(OWN_PROMPTS.parent)


def folder(name: str) -> Path:
    return OWN_PROMPTS / name / "golden"


def renderings(name: str) -> dict[Path, str]:
    prompt = load_prompt(name, OWN_PROMPTS.parent)
    return {folder(name) / f"{node}.txt": f"{prompt.render(example_position(node))}\n" for node in NODES}


if __name__ == "__main__":
    for name in NAMES:
        folder(name).mkdir(parents=True, exist_ok=True)
        for file, text in renderings(name).items():
            file.write_text(text, encoding="utf-8", newline="\n")
            print(f"written: {file}")
