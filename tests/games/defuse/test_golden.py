"""Golden renderings; `dubito prompts golden --game defuse NAME` rewrites them."""

import pytest

from dubito.game.find import find_game
from dubito.llm.prompts import load_prompt
from dubito.workshop.checks import golden_files
from tests.cli.kit import REPO


@pytest.mark.parametrize("name", ["plain", "reasoned"])
def test_prompts_match_their_golden_renderings(name: str) -> None:
    files = golden_files(load_prompt(name, REPO, find_game("defuse", REPO)))
    assert {file: file.read_text() for file in files} == files
    assert sorted(next(iter(files)).parent.iterdir()) == sorted(files)
