"""Helpers: test prompts, and positions from a few games."""

from functools import cache
from pathlib import Path
from typing import Final

from dubito.llm.prompts import Prompt, load_prompt
from dubito.workshop.recordings import RecordedPosition, record_from_config
from tests.experiment.kit import REPO, experiment, resolved

PLAIN: Final = load_prompt("plain", REPO)
REASONED: Final = load_prompt("reasoned", REPO)
FIELD: Final = ["AdaptyBoi", "ClaudeBot", "StefaBot", "SusBoi"]


def prompt(
    root: Path, name: str = "mine", system: str = "Seat {{ seat }}.", user: str = "{{ question }}\n", more: str = ""
) -> Prompt:
    """Write a prompt with these templates into a folder under `root`."""
    folder = root / name
    folder.mkdir(parents=True)
    (folder / "prompt.yaml").write_text("title: A test\nanswer: [answer]\n")
    (folder / "system.jinja").write_text(system)
    (folder / "user.jinja").write_text(user)
    (folder / "more.txt").write_text(more)
    return Prompt(folder)


@cache
def positions(count: int = 20, nodes: str = "ABCDE") -> tuple[RecordedPosition, ...]:
    games = experiment(games=10, table_sizes=[3, 5], seed=5, bots=FIELD)
    return tuple(record_from_config(resolved(games), nodes, count))
