"""`dubito prompts diff` and `dubito prompts golden`, and `dubito prompts show` at a position."""

from pathlib import Path

import pytest

from dubito.game.position_file import dump_position
from dubito.games.dubito.facts import example_position
from dubito.games.dubito.game import GAME
from tests.cli.kit import Shell
from tests.prompts.golden import renderings
from tests.workshop.kit import prompt


@pytest.fixture
def two(shell: Shell) -> Shell:
    prompt(Path("prompts"), "old", "Be kind.\nSeat {{ seat }}.\n", "{{ question }}\nthe end\n")
    prompt(Path("prompts"), "new", "Be bold.\nSeat {{ seat }}.\n", "{{ question }}\nthe end\n{{ hand }}")
    return shell


def test_system_and_user_text_are_distinguished(two: Shell) -> None:
    result = two("prompts", "diff", "old", "./prompts/new", "--node", "C")
    assert result.code == 1
    lines = result.out.splitlines()
    assert lines[:6] == [
        f"--- system of {two.folder}/prompts/old",
        f"+++ system of {two.folder}/prompts/new",
        "@@ -1,3 +1,3 @@",
        "-Be kind.",
        "+Be bold.",
        " Seat 3.",
    ]
    assert f"+++ user of {two.folder}/prompts/new" in lines
    assert [line for line in lines if line.startswith("-") and "of" not in line] == ["-Be kind.", "-"]


def test_other_answer_fields_are_a_difference(two: Shell) -> None:
    Path("prompts/new/prompt.yaml").write_text("title: x\nanswer: [reasoning, answer]\n")
    lines = two("prompts", "diff", "old", "new").out.splitlines()
    assert lines[:5] == [
        f"--- answer fields of {two.folder}/prompts/old",
        f"+++ answer fields of {two.folder}/prompts/new",
        "@@ -1 +1 @@",
        "-answer",
        "+reasoning, answer",
    ]


def test_equal_prompts_are_reported_as_equal(two: Shell) -> None:
    for words in ((), ("--node", "A")):
        result = two("prompts", "diff", "old", "./prompts/old", *words)
        assert (result.code, result.out, result.err) == (0, "identical\n", "")


def test_the_same_at_one_node_only_is_not_called_the_same(two: Shell) -> None:
    Path("prompts/new/system.jinja").write_text("Be kind.\nSeat {{ seat }}.\n")
    Path("prompts/new/user.jinja").write_text("{{ question }}\nthe end{{ '!' if node in 'AB' }}\n")
    result = two("prompts", "diff", "old", "new")
    assert (result.code, result.out) == (1, "identical at node C, but different at A, B; see them with --node\n")
    assert two("prompts", "diff", "old", "new", "--node", "C").out == "identical\n"
    Path("a.json").write_text(dump_position(GAME, example_position("A")))
    assert "+the end!" in two("prompts", "diff", "old", "new", "--position", "a.json").out


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("old", "none"), "dubito: no prompt is named 'none'"),
        (("old", "new", "--position", "none.json"), "dubito: cannot read none.json: No such file"),
        (("old", "new", "--position", "x", "--node", "A"), "dubito: --node and --position cannot be combined"),
    ],
)
def test_bad_input_is_reported_in_one_sentence(two: Shell, words: tuple[str, ...], sentence: str) -> None:
    result = two("prompts", "diff", *words)
    assert result.code == 2
    assert result.err.startswith(sentence)
    assert result.err.count("\n") == 1


def test_golden_writes_the_projects_golden_files(shell: Shell) -> None:
    prompt(Path("prompts"), system='{% include "shared/system.jinja" %}', user='{% include "shared/moment.jinja" %}')
    Path("prompts/mine/history.jinja").write_text('{% include "shared/history.jinja" %}')
    result = shell("prompts", "golden", "mine")
    assert result.code == 0
    files = [shell.folder / "prompts" / "mine" / "golden" / f"{node}.txt" for node in "ABCDE"]
    assert result.out.splitlines() == [f"written: {file}" for file in files]
    own = {file.name: text for file, text in renderings("plain").items()}
    for file in files:
        assert file.read_text().split() == own[file.name].split(), "only line ends may differ"


def test_golden_that_cannot_be_written_is_reported_in_one_sentence(shell: Shell) -> None:
    prompt(Path("prompts"))
    Path("prompts/mine/golden").write_text("a file")
    result = shell("prompts", "golden", "mine")
    assert result.code == 2
    assert "cannot write " in result.err
