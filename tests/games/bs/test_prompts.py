"""The BS prompts pass all prompt checks, and the workshop's commands support the game."""

import json
import shutil
from collections import Counter
from collections.abc import Callable
from functools import cache
from itertools import product
from pathlib import Path

import pytest

from dubito.errors import IllegalOutput, UsageError
from dubito.games.bs.facts import example_position
from dubito.games.bs.game import GAME
from dubito.llm.prompts import OWN_PROMPTS, load_prompt
from dubito.workshop.checks import CheckFailed, prompt_checks
from dubito.workshop.lint import lint
from dubito.workshop.recordings import RecordedPosition, parse_position, read_folder, sample_games, shipped_positions
from tests.cli.kit import Shell
from tests.conftest import in_gate

PROMPTS = OWN_PROMPTS / "bs"
NAMES = ["plain", "reasoned", "may-deceive", "must-not-lie"]
CHECKS = [
    *("loads", "renders[cards]", "renders[bs]", "golden[cards]", "golden[bs]"),
    *("system_text_stays", "beginning_stays"),
]


@cache
def checks_of(name: str) -> dict[str, Callable[[], object]]:
    return dict(prompt_checks(PROMPTS / name, GAME))


@pytest.mark.parametrize(
    ("name", "check"),
    in_gate(product(NAMES, CHECKS), [("plain", "loads"), ("plain", "golden[bs]")]),
)
def test_a_shipped_prompt_passes_each_check(name: str, check: str) -> None:
    found = checks_of(name)
    assert [*found] == CHECKS
    found[check]()


def test_prompt_that_omits_facts_is_reported(tmp_path: Path) -> None:
    folder = tmp_path / "bs" / "mine"
    shutil.copytree(PROMPTS / "plain", folder, ignore=shutil.ignore_patterns("golden"))
    (folder / "user.jinja").write_text(
        "Turn {{ history | length }}. {{ question }}\nlegal: {{ legal | join(' | ') }}\n"
    )
    findings = lint(load_prompt(str(folder), Path(), GAME), sample_games(GAME)[:1]).findings
    assert "missing at cards, bs: hand" in findings
    assert "missing at bs: placed" in findings


def test_changed_word_breaks_the_golden_rendering(tmp_path: Path) -> None:
    folder = tmp_path / "bs" / "mine"
    shutil.copytree(PROMPTS / "plain", folder)
    (folder / "user.jinja").write_text("{{ question }}\n")
    failing = []
    for name, one in prompt_checks(folder, GAME):
        try:
            if name.startswith(("loads", "renders", "golden")):
                one()
        except CheckFailed:
            failing.append(name)
    assert failing == ["golden[cards]", "golden[bs]"]


def test_shipped_positions_come_from_the_documented_command(shell: Shell) -> None:
    """After a change to bots or the engine, delete the files and run the command in their first line."""
    line = "# dubito prompts record prompts/bs/positions/pool.yaml --count 24 --output prompts/bs/positions"
    assert line in (shipped_positions(GAME) / "pool.yaml").read_text().splitlines()
    config = shutil.copy(shipped_positions(GAME) / "pool.yaml", shell.folder)
    assert shell("prompts", "record", str(config), "--count", "24", "--output", "made").code == 0
    made = {file.name: file.read_bytes() for file in Path("made").iterdir()}
    assert {file.name: file.read_bytes() for file in shipped_positions(GAME).glob("*.json")} == made
    assert len(made) == 24


@cache
def read_shipped() -> list[RecordedPosition]:
    return [*read_folder(shipped_positions(GAME), GAME).values()]


def test_shipped_positions_cover_both_nodes_and_both_truths() -> None:
    found = read_shipped()
    assert Counter(one.position.node for one in found) == {"cards": 12, "bs": 12}
    assert 3 <= sum(one.right is True for one in found if one.position.node == "bs") <= 9
    assert {one.right for one in found if one.position.node == "cards"} == {None}


def test_position_of_another_seat_is_refused() -> None:
    plain = json.loads(read_shipped()[0].text)
    plain["hidden"]["source"]["seat"] = 9
    with pytest.raises(UsageError, match=r"hidden\.source: the position belongs to seat \d"):
        parse_position(json.dumps(plain), GAME)


@pytest.mark.parametrize("answer", [[], [12] * 4, [8, 8, 8, 8]])
def test_trial_refuses_the_same_answers_as_a_game(answer: list[int]) -> None:
    with pytest.raises(IllegalOutput):
        GAME.workshop.check(example_position("cards"), answer)


def test_prompts_are_shown_and_tried_by_the_games_name(shell: Shell) -> None:
    assert "legal: " in shell("prompts", "show", "plain", "--game", "bs", "--node", "cards").out
    result = shell("prompts", "test", "plain", "--against", "plain", "--game", "bs", "--model", "house:house-random")
    assert result.code == 0
    assert "house-random at 24 positions in 24 deals" in result.out
    assert "right: accused lies and accepted honest plays (node bs)" in result.out
    (judged,) = [line.split() for line in result.out.splitlines() if line.startswith("plain  ") and " bs " in line]
    assert "-" not in judged[:9], "the truth determines which answers are right"
    flips = [line for line in result.out.splitlines() if line.startswith("different: cards-")]
    assert flips, "two random samples differ, and cards have names"
    assert all(" [" in line.split(": ")[2] for line in flips)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("show", "plain", "--game", "bs", "--node", "C"), "'C' is not one of 'cards', 'bs'."),
        (
            ("show", "mine", "--game", "bs"),
            "no prompt of bs is named 'mine': choose from may-deceive, must-not-lie, plain, reasoned",
        ),
        (("show", "plain", "--game", "sb"), "unknown game 'sb': choose from bs, defuse, dubito, openspiel"),
        (("record", "pool.yaml", "--node", "C"), "'C' is not one of 'cards', 'bs'."),
        (
            ("test", "plain", "--game", "bs", "--model", "house:house-sharp"),
            "the built-in server has no model 'house-sharp'",
        ),
    ],
)
def test_bad_input_is_reported_in_one_sentence(shell: Shell, words: tuple[str, ...], message: str) -> None:
    shutil.copy(shipped_positions(GAME) / "pool.yaml", shell.folder)
    result = shell("prompts", *words)
    assert (result.code, result.out, result.err.count("\n")) == (2, "", 1)
    assert message in result.err
