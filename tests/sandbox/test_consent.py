"""A program that a file names is shown before its first start, and starts only with the user's consent."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

import dubito
from dubito.cli import options
from dubito.errors import UsageError
from dubito.sandbox.consent import Permits, require_consent
from dubito.sandbox.programs import BotProgram, Confinement
from dubito.store.folder import MANIFEST, note_not_enforced
from tests.cli.kit import REPO, Shell
from tests.conftest import in_gate
from tests.seats.test_program import FAULTY, write_bot_folder, write_config

HONEST = (REPO / "examples" / "programs" / "honest.py").read_text()


@pytest.fixture(autouse=True)
def no_consent_yet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def write_program(shell: Shell, **settings: Any) -> None:
    (shell.folder / "honest.py").write_text(HONEST)
    write_config(shell.folder, "python3", "honest.py", games=3, **settings)


def test_command_of_config_is_shown_and_not_started_without_consent(shell: Shell) -> None:
    write_program(shell)
    refused = shell("run", "config.yaml", "--output", "run", "--ask")
    assert refused.code == 2
    assert f"mine starts the command `python3 honest.py` in {shell.folder}, which can read" in refused.err
    assert f"{shell.folder}/honest.py" in refused.err
    assert "add --trust" in refused.err
    assert not (shell.folder / "run").exists()


STARTING_COMMANDS = [
    ["seat", "config.yaml", "--listen", "127.0.0.1:0"],
    ["play", "mine", "--config", "config.yaml"],
    ["watch", "mine", "StefaBot", "ClaudeBot", "--config", "config.yaml"],
    ["web", "config.yaml", "--port", "0", "--no-browser"],
    ["bots", "check", "Mine"],
    ["run", "--bots", "Mine,StefaBot", "--games", "3"],
    ["tournament", "play", "t.yaml"],
]


@pytest.mark.parametrize("command", in_gate(STARTING_COMMANDS, STARTING_COMMANDS[1::2]))
def test_every_command_needs_consent(shell: Shell, command: Sequence[str]) -> None:
    if command[0] == "tournament":
        pytest.importorskip("pyspiel", reason="OpenSpiel is not installed")
    write_program(shell)
    write_bot_folder(shell.folder)
    (shell.folder / "t.yaml").write_text("games: [kuhn_poker]\nbots: {a: python3 honest.py, b: python3 honest.py 2}\n")
    refused = shell(*command, "--ask")
    assert refused.code == 2
    assert " starts the command `python3 honest.py" in refused.err
    assert "add --trust" in refused.err


def test_consent_is_remembered_for_the_command_but_not_for_another(shell: Shell) -> None:
    write_program(shell)
    assert shell("run", "config.yaml", "--output", "run").code == 0
    assert shell("run", "config.yaml", "--output", "again", "--ask").code == 0
    (shell.folder / "honest.py").write_text(f"{HONEST}# edited\n")
    assert shell("run", "config.yaml", "--output", "edited", "--ask").code == 0
    (shell.folder / "data.txt").touch()
    for settings in ({"reads": ["data.txt"]}, {"process": ["python3", "-u", "honest.py"]}):
        player = {"name": "mine", "process": ["python3", "honest.py"], **settings}
        (shell.folder / "other.yaml").write_text(json.dumps({"games": 3, "bots": ["StefaBot", player]}))
        assert shell("run", "other.yaml", "--output", "other", "--ask").code == 2, settings


def test_question_at_a_terminal_decides(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    write_program(shell)
    questions = list[str]()

    def answer(text: str) -> bool:
        questions.append(text)
        return len(questions) > 1

    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    monkeypatch.setattr(options, "_ask_for_trust", answer)
    assert shell("run", "config.yaml", "--output", "run", "--ask").code == 2
    assert shell("run", "config.yaml", "--output", "run", "--ask").code == 0
    assert shell("run", "config.yaml", "--output", "again", "--ask").code == 0
    assert len(questions) == 2
    assert questions[0].startswith("mine starts the command `python3 honest.py`")


def test_typed_command_and_mapping_of_the_caller_need_no_consent(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    write_program(shell)
    for deals in ("_DEALS", "_REPEATED_DEALS"):
        monkeypatch.setattr(f"dubito.workshop.bot_check.{deals}", 1)
    checked = shell("bots", "check", "python3 honest.py", "--ask")
    assert " of 4 games" in checked.err
    player = {"name": "mine", "process": ["python3", "-u", "honest.py"]}
    dubito.run({"games": 3, "bots": ["StefaBot", player]}, output="mapping", workers=1).close()
    (shell.folder / "file.yaml").write_text(json.dumps({"games": 3, "bots": ["StefaBot", player | {"name": "x"}]}))
    (shell.folder / "state" / "dubito" / "trusted").unlink()
    with pytest.raises(UsageError, match="trust=True"):
        dubito.run("file.yaml", output="file")
    dubito.run("file.yaml", output="file", workers=1, trust=True).close()


def test_programs_of_a_foreign_run_need_consent(shell: Shell) -> None:
    write_program(shell)
    assert shell("run", "config.yaml", "--output", "run").code == 0
    (shell.folder / "state" / "dubito" / "trusted").unlink()
    refused = shell("replay", "run", "--programs", "--ask")
    assert refused.code == 2
    assert "mine starts the command `python3 honest.py`" in refused.err
    assert shell("replay", "run", "--ask").code == 0
    assert shell("replay", "run", "--programs").code == 0


def test_files_that_a_command_reaches_by_links_are_shown(tmp_path: Path) -> None:
    (tmp_path / "bot").mkdir()
    (tmp_path / "id_rsa").touch()
    (tmp_path / "bot" / "data.txt").symlink_to(tmp_path / "id_rsa")
    program = BotProgram("mine", ("python3", "data.txt"), tmp_path / "bot")
    with pytest.raises(UsageError, match=rf"{tmp_path}/id_rsa"):
        require_consent([program], Permits())


def test_config_cannot_give_consent(shell: Shell) -> None:
    for key in ("trust", "allow_unsandboxed", "permits"):
        write_program(shell, **{key: True})
        assert f"unknown key '{key}'" in shell("run", "config.yaml", "--ask").err


def without_walls(monkeypatch: pytest.MonkeyPatch) -> None:
    make = Confinement.__init__

    def init(self: Confinement, memory: int, cores: Any, methods: Any = (), **more: bool) -> None:
        make(self, memory, cores, (), **more)

    monkeypatch.setattr(Confinement, "__init__", init)


def test_run_without_walls_needs_a_flag_and_its_results_say_so(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    without_walls(monkeypatch)
    write_program(shell)
    refused = shell("run", "config.yaml", "--output", "run")
    assert refused.code == 2
    assert "it could read your keys and the cards of this run" in refused.err
    assert "--allow-unsandboxed" in refused.err
    played = shell("run", "config.yaml", "--output", "run", "--allow-unsandboxed", "--json", "--report")
    assert played.code == 0, played.err
    sentence = "programs can read and change your files, such as your keys and the cards of this run"
    assert sentence in played.err
    assert json.loads(played.out)["not_enforced"][0] == sentence
    assert yaml.safe_load((shell.folder / "run" / MANIFEST).read_text())["not_enforced"][0] == sentence
    assert sentence in (shell.folder / "run" / "report" / "index.html").read_text()
    extended = shell("run", "run", "--games", "6", "--allow-unsandboxed", "--json")
    assert json.loads(extended.out)["not_enforced"][0] == sentence
    note_not_enforced(shell.folder / "run", ["another"])
    kept = yaml.safe_load((shell.folder / "run" / MANIFEST).read_text())["not_enforced"]
    assert (kept[0], kept[-1]) == (sentence, "another")
    assert shell("replay", "run").code == 0


def test_error_names_the_file_that_the_program_cannot_read(shell: Shell) -> None:
    (shell.folder / "helper.py").write_text("")
    (shell.folder / "faulty.py").write_text(FAULTY.replace("import json", "import helper, json") + "pass")
    write_config(shell.folder, "python3", "faulty.py", games=3)
    refused = shell("run", "config.yaml", "--output", "run")
    assert refused.code == 3
    assert "it cannot read helper.py: add `reads: [helper.py]`" in refused.err
    (shell.folder / "honest.py").write_text(f"import helper\n{HONEST}")
    write_config(shell.folder, "python3", "honest.py", games=3, reads=["helper.py"])
    assert shell("run", "config.yaml", "--output", "other").code == 0
    write_config(shell.folder, "python3", "honest.py", games=3, reads=["missing.py"])
    assert "mine: reads: " in (missing := shell("run", "config.yaml", "--output", "third").err)
    assert "missing.py does not exist" in missing
