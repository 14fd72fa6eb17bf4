"""`dubito prompts`: its output, and errors for bad input."""

import pytest

from dubito.game.position_file import dump_position
from dubito.games.dubito.facts import example_position
from dubito.games.dubito.game import GAME
from dubito.llm.prompts import load_prompt
from tests.cli.kit import Shell
from tests.prompts.golden import NAMES, renderings
from tests.prompts.kit import ARMS, PLAIN, PROMPTS, REPO


def test_list_names_every_prompt_with_title_and_digest(shell: Shell) -> None:
    result = shell("prompts", "list")
    assert result.code == 0
    title, _, *lines = result.out.splitlines()
    assert title == "15 prompts"
    assert [line.split()[0] for line in lines] == NAMES == sorted([*ARMS, *PROMPTS])
    for name, line in zip(NAMES, lines, strict=True):
        prompt = load_prompt(name, REPO)
        assert prompt.title in line
        assert prompt.digest[:12] in line


def test_show_prints_the_golden_rendering_and_without_a_node_that_of_c(shell: Shell) -> None:
    for name in ("plain", "mixed"):
        for file, text in renderings(name).items():
            assert shell("prompts", "show", name, "--node", file.stem).out == text
            if file.stem == "C":
                assert shell("prompts", "show", name).out == text


def test_show_renders_a_position_file(shell: Shell) -> None:
    (shell.folder / "lost.json").write_text(dump_position(GAME, example_position("E")))
    result = shell("prompts", "show", "plain", "--position", "lost.json")
    assert result.out == f"{PLAIN.render(example_position('E'))}\n"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("show", "plane"), "dubito: no prompt is named 'plane': did you mean 'plan'?"),
        (("show", "plain", "--node", "F"), "dubito: Invalid value for '--node'"),
        (("show", "plain", "--position", "none.json"), "dubito: cannot read none.json: No such file or directory"),
        (("show", "plain", "--position", "bad.json"), "dubito: this is not a position: "),
        (
            ("show", "plain", "--position", "bad.json", "--node", "A"),
            "dubito: --node and --position cannot be combined",
        ),
    ],
)
def test_bad_input_is_reported_in_one_sentence(shell: Shell, words: tuple[str, ...], sentence: str) -> None:
    (shell.folder / "bad.json").write_text("{}")
    result = shell("prompts", *words)
    assert result.code == 2
    assert result.err.startswith(sentence)
    assert result.err.count("\n") == 1
