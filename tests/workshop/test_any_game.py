"""The workshop with a user's game that has only facts."""

import json
import shutil
from pathlib import Path

import pytest

from dubito.errors import UsageError
from dubito.game.find import find_game
from dubito.game.position_file import dump_position
from dubito.llm.prompts import game_of_folder
from dubito.workshop.checks import prompt_checks
from dubito.workshop.recordings import (
    RecordedPosition,
    parse_position,
    read_folder,
    sample_games,
    write_files,
)
from tests.cli.kit import Shell
from tests.llm.test_any_game import GAME, HOME, NODES

PLAIN = HOME / "prompts" / "guess" / "plain"


@pytest.fixture
def home(shell: Shell) -> Shell:
    """Set up a working directory with the game, its bot and its prompt, and positions of two sample games."""
    for name in ("games", "bots", "prompts"):
        shutil.copytree(HOME / name, shell.folder / name)
    write_files({shell.folder / "positions" / one.file_name: one.text for one in questions()[:32]})
    return shell


def questions() -> list[RecordedPosition]:
    return [one for game in sample_games(GAME) for one in game]


@pytest.fixture(autouse=True)
def _there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(HOME)
    find_game("guess", HOME)  # reload the game, which other tests may have changed
    sample_games.cache_clear()


def test_every_move_of_a_sample_game_is_a_question() -> None:
    games = sample_games(GAME)
    assert len(games) == 6
    for number, game in enumerate(games):
        assert [one.position.node for one in game] == [*NODES] * 4
        assert [one.position.seat for one in game] == [0] * 4 + [1] * 4 + [0] * 4 + [1] * 4
        assert [len(GAME.facts.facts(one.position)["history"]) for one in game] == [*range(16)]
        sources = [one.source for one in game if one.source]
        assert [source.decision for source in sources] == [*range(4)] * 2 + [*range(4, 8)] * 2
        assert {(source.game, source.deal, source.run) for source in sources} == {(number, number, None)}
    assert len({tuple(GAME.facts.facts(game[0].position)["held"]) for game in games}) > 1


def test_position_keeps_its_source() -> None:
    for one in questions():
        assert parse_position(one.text, GAME) == one
        assert json.loads(one.text)["hidden"].keys() == {"right", "source"}
    assert parse_position(dump_position(GAME, questions()[3].position), GAME) == RecordedPosition(
        GAME, questions()[3].position
    )


@pytest.mark.parametrize(
    ("hidden", "words"),
    [
        ([], "hidden: "),
        ({}, "hidden.source: "),
        ({"hands": []}, "hidden.hands: "),
        ({"source": {"seat": 1}}, "hidden.source: the position belongs to seat 0"),
        ({"source": {"seat": -1}}, "hidden.source.seat: "),
    ],
)
def test_additional_facts_must_be_consistent(hidden: object, words: str) -> None:
    file = json.loads(questions()[0].text)
    if isinstance(hidden, dict) and hidden:
        hidden = {**file["hidden"], **hidden}
        hidden["source"] = {**file["hidden"]["source"], **hidden["source"]}
    with pytest.raises(UsageError) as refused:
        parse_position(json.dumps(file | {"hidden": hidden}), GAME)
    assert str(refused.value).startswith(f"this is not a position: {words}")


def test_prompt_is_checked_against_its_games_facts(home: Shell) -> None:
    assert home("prompts", "golden", "plain", "--game", "guess").code == 0
    folder = home.folder / "prompts" / "guess" / "plain"
    names = []
    for name, check in prompt_checks(folder, GAME):
        names.append(name)
        if name != "beginning_stays":  # the prompt is so short that most of it changes
            check()
    nodes = [f"{kind}[{node}]" for kind in ("renders", "golden") for node in NODES]
    assert names == ["loads", *nodes, "system_text_stays", "beginning_stays"]
    result = home("prompts", "lint", "plain", "--game", "guess")
    assert result.code == 0
    assert [line.split()[0] for line in result.out.splitlines()[2:6]] == [*NODES]
    assert "own_moves" not in result.out
    assert result.err == ""


def test_missing_positions_are_requested(home: Shell) -> None:
    result = home("prompts", "test", "plain", "--game", "guess", "--model", "house:house-random")
    assert result.code == 2
    assert result.err.startswith("dubito: there are no positions of guess; record some with ")
    assert result.err.endswith(" --output prompts/guess/positions`\n")


def test_show_and_diff_know_the_games_nodes(home: Shell) -> None:
    result = home("prompts", "show", "plain", "--game", "guess")
    assert "Question hint." in result.out
    file = home.folder / "positions" / next(name for name in read_folder(home.folder / "positions", GAME))
    assert "Question hint. You hold" in home("prompts", "show", "plain", "--game", "guess", "--position", str(file)).out
    wrong = home("prompts", "show", "plain", "--game", "guess", "--node", "C")
    assert wrong.err == "dubito: Invalid value for '--node': 'C' is not one of 'hint', 'stake', 'number', 'sure'.\n"
    shutil.copytree(home.folder / "prompts/guess/plain", home.folder / "prompts/guess/other")
    user = home.folder / "prompts/guess/other/user.jinja"
    user.write_text(user.read_text() + "{% if node == 'sure' %}Really?{% endif %}\n")
    result = home("prompts", "diff", "plain", "other", "--game", "guess")
    assert result.code == 1
    assert home("prompts", "list", "--game", "guess").out.startswith("2 prompts\n")


def test_a_folder_in_the_prompts_of_a_game_is_of_that_game(tmp_path: Path) -> None:
    assert game_of_folder(PLAIN, HOME).name == "guess"
    for folder in (PLAIN.parent, tmp_path, tmp_path / "prompts" / "else" / "x"):
        assert game_of_folder(folder, HOME).name == "dubito"
