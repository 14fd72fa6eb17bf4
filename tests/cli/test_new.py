"""`dubito new`: what it writes works at once, and it never overwrites anything."""

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from dubito.game.find import find_bots
from tests.cli.kit import Shell
from tests.conftest import in_gate

BOTS = {
    ("MyBot",): ("bots/manual/my_bot.py", "MyBot"),
    ("my_bot",): ("bots/manual/my_bot.py", "MyBot"),
    ("gemini",): ("bots/manual/gemini.py", "Gemini"),
    ("GPTBot2",): ("bots/manual/gpt_bot2.py", "GPTBot2"),
    ("ConLady", "--game", "bs"): ("bots/manual/bs/con_lady.py", "ConLady"),
    ("Brave", "--game", "defuse"): ("bots/manual/defuse/brave.py", "Brave"),
}


def suggested(out: str) -> list[list[str]]:
    return [shlex.split(line)[2:] for line in out.splitlines() if line.startswith("try: dubito ")]


@pytest.mark.parametrize("words", in_gate(BOTS, 5))
def test_new_bot_passes_its_checks_and_the_suggested_commands_work(shell: Shell, words: tuple[str, ...]) -> None:
    file, name = BOTS[words]
    result = shell("new", "bot", *words)
    assert (result.code, result.out.splitlines()[0]) == (0, f"written: {file}")
    assert name in find_bots(Path.cwd(), words[-1] if "--game" in words else "dubito").bots
    commands = suggested(result.out)
    assert [command[:2] for command in commands] == [["bots", "check"], ["run", *commands[1][1:2]]]
    for command in commands:
        assert shell(*command).code == 0


PROMPTS = [("mine",), ("mine", "--game", "bs"), ("my-own_2", "--game", "defuse")]


@pytest.mark.parametrize("words", in_gate(PROMPTS, PROMPTS[::2]))
def test_new_prompt_renders_without_flaws_beside_nothing_else(shell: Shell, words: tuple[str, ...]) -> None:
    result = shell("new", "prompt", *words)
    assert result.code == 0
    for command in suggested(result.out):
        shown = shell(*command)
        assert shown.code == 0, shown.err
    assert shown.out == "identical\n"
    assert "no findings" in shell("prompts", "lint", *words).out


def test_new_game_passes_its_checks(shell: Shell) -> None:
    result = shell("new", "game", "my_game")
    assert result.code == 0
    assert "my_game passed all checks" in shell("games", "check", "my_game", "--quick").out
    assert shell(*suggested(result.out)[1], "--games", "6").code == 0
    assert "kuhn" not in "".join(path.read_text().lower() for path in Path().rglob("my_game/**/*.*") if path.is_file())


@pytest.mark.at_length
def test_new_plugin_installs_and_adds_its_command_and_its_game(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "dubito"]
    subprocess.run([*command, "new", "plugin", "foo_bar"], cwd=tmp_path, check=True)
    site = tmp_path / "site"
    pip = [sys.executable, "-m", "uv", "pip", "install", "--quiet", "--no-deps", "--target", str(site), "./foo_bar"]
    subprocess.run(pip, cwd=tmp_path, check=True)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    for words in (["foo_bar"], ["run", "--game", "foo_bar", "--games", "10", "--no-report"]):
        environment = {**os.environ, "PYTHONPATH": str(site)}
        done = subprocess.run([*command, *words], cwd=elsewhere, env=environment, text=True, capture_output=True)
        assert done.returncode == 0, done.stderr


REFUSED = [
    (("bot", "StefaBot"), "dubito already has a bot named StefaBot; choose another name"),
    (("bot", "stefa_bot"), "dubito already has a bot named StefaBot"),
    (("bot", "../Evil"), "cannot be the name of a bot; use letters, digits and underscores"),
    (("bot", ""), "cannot be the name of a bot"),
    (("bot", "-x"), "No such option"),
    (("bot", "9lives"), "cannot be the name of a bot"),
    (("bot", "class"), "cannot be the name of a bot"),
    (("bot", "a b"), "cannot be the name of a bot"),
    (("bot", "Ä"), "cannot be the name of a bot"),
    (("bot", "\x1b[31mx"), "cannot be the name of a bot"),
    (("bot", "x" * 61), "cannot be the name of a bot"),
    (("bot", "Mine", "--game", "nothing"), "unknown game 'nothing'"),
    (("prompt", "plain"), "prompts/plain already exists; choose another name"),
    (("prompt", "shared"), "already exists"),
    (("prompt", "bs"), "already exists"),
    (("prompt", "a/b"), "cannot be the name of a prompt"),
    (("prompt", ".."), "cannot be the name of a prompt"),
    (("game", "bs"), "there already is a game named bs"),
    (("game", "My-Game"), "cannot be the name of a game; use lower-case letters"),
    (("plugin", "defuse"), "there already is a game named defuse"),
    (("plugin", "a/x"), "cannot be the name of a plugin"),
]


@pytest.mark.parametrize(("words", "sentence"), REFUSED)
def test_wrong_name_is_refused_in_one_sentence(shell: Shell, words: tuple[str, ...], sentence: str) -> None:
    result = shell("new", *words)
    assert (result.code, result.out, result.err.count("\n")) == (2, "", 1)
    assert sentence in result.err
    assert "\x1b" not in result.err
    assert list(Path().iterdir()) == []


TARGETS: dict[tuple[str, ...], str] = {
    ("bot", "Mine"): "bots/manual/mine.py",
    ("prompt", "mine"): "prompts/mine",
    ("game", "mine"): "bots/manual/mine",
    ("plugin", "mine"): "mine",
}


@pytest.mark.parametrize("words", TARGETS)
@pytest.mark.parametrize("kind", ["file", "folder", "dead link"])
def test_nothing_is_overwritten(shell: Shell, words: tuple[str, ...], kind: str) -> None:
    target = Path(TARGETS[words])
    target.parent.mkdir(parents=True, exist_ok=True)
    if kind == "file":
        target.write_text("precious")
    elif kind == "folder":
        target.mkdir()
    else:
        target.symlink_to("nowhere")
    before = sorted(Path().rglob("*"))
    result = shell("new", *words)
    assert (result.code, result.out) == (2, "")
    assert "already" in result.err
    assert sorted(Path().rglob("*")) == before
    assert kind != "file" or target.read_text() == "precious"
    assert not Path("nowhere").exists()


def test_second_bot_of_a_name_is_refused(shell: Shell) -> None:
    assert shell("new", "bot", "Mine").code == 0
    Path("bots/manual/mine.py").write_text("broken(")
    assert shell("new", "bot", "Mine").code == 2
    assert Path("bots/manual/mine.py").read_text() == "broken("


def test_folder_that_cannot_be_written_is_one_sentence(shell: Shell) -> None:
    Path("bots").write_text("a file")
    result = shell("new", "bot", "Mine")
    assert (result.code, result.err.count("\n")) == (3, 1)
    assert result.err.startswith("dubito: cannot write bots/manual/mine.py: ")
    shutil.rmtree("bots", ignore_errors=True)
