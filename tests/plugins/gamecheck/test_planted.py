"""`dubito games check` finds planted bugs and names the file, the line and the fact."""

import re
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cli.kit import REPO, Shell
from tests.conftest import in_gate
from tests.games.kit import exchange, remove_parts

FOLDERS = {
    "stacks": REPO / "tests" / "games" / "stacks",
    "cups": REPO / "tests" / "games" / "cups",
    "kuhn": REPO / "examples" / "games" / "kuhn",
    "tricks": REPO / "examples" / "games" / "tricks",
    "outsider": REPO / "examples" / "games" / "outsider",
}


PLANTED = yaml.safe_load(Path(__file__).with_name("planted.yaml").read_text(encoding="utf-8"))
BUGS: dict[str, Any] = PLANTED["bugs"]
SOUND: dict[str, Any] = PLANTED["sound"]


def copy_game(name: str) -> None:
    left = shutil.ignore_patterns("pyproject.toml", "__pycache__")
    shutil.copytree(FOLDERS[name], Path.cwd(), dirs_exist_ok=True, ignore=left)


def keep_only_rules(game: str) -> None:
    main = Path("games", game, "game.py")
    remove_parts(main, *re.findall(r"@property\n    def (words|facts|fakes|courses)", main.read_text()))
    shutil.rmtree("prompts", ignore_errors=True)


def plant(change: dict[str, Any]) -> None:
    exchange(change["file"], *((pair["old"], pair["new"]) for pair in change["replace"]))


@pytest.mark.parametrize("name", in_gate(BUGS, [name for name, bug in BUGS.items() if "gate" in bug]))
def test_planted_bug_is_reported_with_its_file_and_line(shell: Shell, name: str) -> None:
    bug = BUGS[name]
    copy_game(bug["game"])
    if bug.get("alone"):
        keep_only_rules(bug["game"])
    plant(bug)
    checked = shell("games", "check", bug["game"], "--quick")
    first, message = checked.out.splitlines()[0], bug["message"]
    assert message in first, checked
    assert first.startswith(message) or not message.startswith(("games/", "prompts/", "bots/", "look: ")), checked
    assert checked.code == (not message.startswith("look: ")), checked
    if "line" in bug:
        lines = Path(bug["file"]).read_text().splitlines()
        number = next(number for number, text in enumerate(lines, 1) if bug["line"] in text)
        assert f"(line {number})" in first


@pytest.mark.parametrize("name", in_gate(SOUND, ["acts that only the view shows"]))
def test_unusual_but_legal_rules_are_not_errors(shell: Shell, name: str) -> None:
    game = SOUND[name]["game"]
    copy_game(game)
    keep_only_rules(game)
    plant(SOUND[name])
    checked = shell("games", "check", game, "--quick")
    assert checked.code == 0, checked


@pytest.mark.parametrize("name", in_gate(FOLDERS, ["cups"]))
def test_sound_games_have_no_flaw_and_no_hint(shell: Shell, name: str) -> None:
    copy_game(name)
    checked = shell("games", "check", name, "--quick")
    assert (checked.code, checked.out.count("\n")) == (0, 1), checked
