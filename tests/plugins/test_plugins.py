"""Plugins can be added or deleted without affecting anything else."""

import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from dubito import hooks
from dubito.errors import UsageError
from dubito.packages import plugin_folders
from tests.cli.kit import REPO, Shell
from tests.conftest import in_gate

RUN = (
    *("run", "--games", "6", "--table-sizes", "3", "--max-turns", "10", "--bots", "StefaBot,UsualBot"),
    *("--contenders", "house:house-sharp,house:house-honest", "--no-report", "--tables", "--quiet"),
)
NAMES = [folder.name for folder in plugin_folders()]
PAGE = (REPO / "docs" / "writing-a-plugin.md").read_text()


def dubito(tree: Path, here: Path, *words: str, python: str = sys.executable) -> subprocess.CompletedProcess[str]:
    """Run a command with the package of that tree."""
    environment = os.environ | {"PYTHONPATH": str(tree)}
    return subprocess.run(
        [python, "-m", "dubito", *words], cwd=here, env=environment, text=True, capture_output=True, check=False
    )


def digest(tree: Path, here: Path, name: str) -> str:
    played = dubito(tree, here, *RUN, "--output", name, "--cache", f"{name}-cache")
    assert played.returncode == 0, played.stderr
    (found,) = re.findall(r"^results digest: (\w+)$", played.stdout, re.MULTILINE)
    return str(found)


WAITS = """
contenders: [{bot: "house:house-sharp", name: one, wait: batch}]
bots: [StefaBot]
games: 2
table_sizes: [3]
rules: {max_turns: 5}
"""


def check_runs_with_batches(tree: Path, here: Path) -> None:
    """Without the plugin, no run can wait for batches, but a finished one can be replayed."""
    (here / "waits.yaml").write_text(WAITS)
    played = dubito(REPO, here, "run", "waits.yaml", "--output", "finished", "--no-report", "--cache", "batch-cache")
    assert played.returncode == 0, played.stderr
    for command in ("replay", "status"):
        completed = dubito(tree, here, command, "finished")
        assert completed.returncode == 0, completed.stderr
    refused = dubito(tree, here, "run", "waits.yaml", "--output", "refused")
    problem = "one: wait: batches need the `batch` plugin, which is not in dubito/plugins; remove `wait`"
    assert (refused.returncode, refused.stderr) == (2, f"dubito: {problem}\n")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the digest of the run with all plugins."""
    return digest(REPO, tmp_path_factory.mktemp("whole"), "r")


@pytest.mark.parametrize("deleted", in_gate([NAMES, *([name] for name in NAMES)], 1), ids=",".join)
def test_without_plugins_the_rest_works_and_plays_the_same(tmp_path: Path, whole: str, deleted: list[str]) -> None:
    tree, here = tmp_path / "tree", tmp_path / "here"
    here.mkdir()
    for folder in ("dubito", "bots", "prompts"):
        # Includes compiled modules.
        shutil.copytree(REPO / folder, tree / folder)
    for name in deleted:
        shutil.rmtree(tree / "dubito" / "plugins" / name)
    if deleted == NAMES:
        shutil.rmtree(tree / "dubito" / "plugins")
    helped = dubito(tree, here, "--help")
    assert (helped.returncode, helped.stderr) == (0, "")
    adds = {"policy": "openspiel", "tournament": "tournament", "rate": "leaderboard", "leaderboard": "leaderboard"}
    adds |= {"deception": "deception"}
    left = {name for name, plugin in adds.items() if plugin not in deleted}
    assert {name for name in adds if f"\n  {name} " in helped.stdout} == left
    assert digest(tree, here, "r") == whole
    assert dubito(tree, here, "games").returncode == 0
    assert ("\n  check " in dubito(tree, here, "games", "--help").stdout) == ("gamecheck" not in deleted)
    if "batch" in deleted:
        check_runs_with_batches(tree, here)
    if "study" in deleted:
        refused = dubito(tree, here, "export", "r", "--dataset", "d")
        problem = "--dataset needs the `study` plugin, which is not in dubito/plugins"
        assert (refused.returncode, refused.stderr.startswith(f"dubito: {problem}")) == (2, True), refused.stderr
    if "openspiel" in deleted and "tournament" not in deleted:
        refused = dubito(tree, here, "tournament", "play", "t.yaml")
        assert (refused.returncode, "needs the `openspiel` plugin" in refused.stderr) == (2, True), refused.stderr
        assert refused.stderr.count("\n") == 1


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the Python of a new virtual environment with Dubito's dependencies and the guide's plugin."""
    folder = tmp_path_factory.mktemp("venv")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    (site,) = folder.glob("lib/python*/site-packages")
    (site / "dubito.pth").write_text(f"{REPO}\n{sysconfig.get_path('purelib')}\n")
    python = str(folder / "bin" / "python")
    install = ("install", "--quiet", "--no-deps", "--no-build-isolation", "--no-index", "--no-compile")
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", python)
    source = shutil.copytree(REPO / "examples" / "plugin", folder / "source")
    subprocess.run([*pip, *install, str(source)], check=True)
    return python


def test_the_plugin_of_the_guide_adds_a_command_and_a_game(fresh: str, tmp_path: Path) -> None:
    assert dubito(REPO, tmp_path, "payoffs", python=fresh).stdout.startswith("The same side twice: seat 0 wins.")
    listed = dubito(REPO, tmp_path, "plugins", python=fresh).stdout
    assert re.search(
        r"^pennies +command payoffs +an installed package \(dubito_pennies\.plugin\)$", listed, re.MULTILINE
    )
    run = dubito(REPO, tmp_path, "run", "--game", "pennies", "--games", "40", "--quiet", "--no-report", python=fresh)
    assert run.returncode == 0, run.stderr
    assert re.search(r"^Coin +hand-written ", run.stdout, re.MULTILINE)
    checked = dubito(REPO, tmp_path, "games", "check", "pennies", "--quick", python=fresh)
    assert checked.returncode == 0, checked.stdout


def test_guide_matches_the_plugin() -> None:
    folder = REPO / "examples" / "plugin"
    for language, file in (("toml", "pyproject.toml"), ("python", "dubito_pennies/plugin.py")):
        (block,) = re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
        assert block in (folder / file).read_text()


HOOK = "from dubito.hooks import hookimpl\n@hookimpl\ndef commands():\n    "
BROKEN = {
    "import": "raise ValueError('on purpose\\x1b[31m')\n",
    "hook": f"{HOOK}raise ValueError('on purpose\\x1b[31m')\n",
    "result": f"{HOOK}return ['audit']\n",
}


@pytest.mark.parametrize("name", in_gate(BROKEN, ["hook"]))
def test_plugin_that_cannot_be_loaded_has_one_message(fresh: str, tmp_path: Path, name: str) -> None:
    site = Path(fresh).parent.parent / "source"
    info = site / "broken-1.0.dist-info"
    info.mkdir(exist_ok=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[dubito]\nbroken = broken_plugin\n")
    (site / "broken_plugin.py").write_text(BROKEN[name])
    why = "TypeError: the hook commands must" if name == "result" else "ValueError: on purpose"
    environment = os.environ | {"PYTHONPATH": f"{REPO}:{site}"}
    for words, code in (("plugins",), 0), (("paiofs",), 2):
        completed = subprocess.run(
            [fresh, "-m", "dubito", *words], cwd=tmp_path, env=environment, text=True, capture_output=True, check=False
        )
        assert completed.returncode == code
        (line,) = [line for line in completed.stderr.splitlines() if "broken" in line]
        assert f"plugin broken = 'broken_plugin' of broken==1.0: loading it raised {why}" in line
        assert "\x1b" not in completed.stderr
    assert "Traceback" not in completed.stderr


class _UnreadableError(Exception):
    def __str__(self) -> str:
        raise ValueError("on purpose")


@pytest.mark.parametrize(
    ("failure", "words"),
    [
        (ValueError("on purpose"), "raised ValueError: on purpose; reinstall or remove its package"),
        (SystemExit(7), "raised SystemExit: 7"),
        (_UnreadableError(), "raised _UnreadableError;"),
        (None, "raised AttributeError: module 'foreign_plugin' has no attribute 'run'"),
    ],
)
def test_place_of_a_plugin_that_cannot_be_imported_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failure: BaseException | None, words: str
) -> None:
    (tmp_path / "foreign_plugin.py").write_text("import builtins\nif builtins.failure:\n    raise builtins.failure\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr("builtins.failure", failure, raising=False)
    monkeypatch.delitem(sys.modules, "foreign_plugin", raising=False)
    with pytest.raises(UsageError, match=f"^importing foreign_plugin:run of a plugin {re.escape(words)}"):
        hooks.import_place("foreign_plugin:run")


def test_failing_hook_is_reported_with_its_plugin() -> None:
    class Failing:
        @hooks.hookimpl
        def game_checks(self) -> None:
            raise ValueError("on purpose")

    hooks.plugins().register(Failing(), "failing")
    try:
        with pytest.raises(UsageError, match=r"^plugin failing: its hook game_checks raised ValueError: on purpose"):
            list(hooks.game_checks())
    finally:
        hooks.plugins().unregister(name="failing")


def test_executor_that_raises_is_reported_by_name(monkeypatch: pytest.MonkeyPatch, shell: Shell) -> None:
    class Executors:
        @hooks.hookimpl
        def executors(self) -> dict[str, str]:
            return {"mine": "math:sqrt"}  # which takes one argument only

    hooks.plugins().register(Executors(), "mine")
    try:
        result = shell("run", "--games", "2", "--executor", "mine")
    finally:
        hooks.plugins().unregister(name="mine")
    assert result.code == 2
    assert result.err.startswith("dubito: --executor: the executor mine raised TypeError: ")


def test_agent_app_without_its_extra_is_reported_in_one_message(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in {"mcp", *(name for name in sys.modules if name.startswith("mcp."))}:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.delitem(sys.modules, "dubito.plugins.mcp.server", raising=False)
    with pytest.raises(UsageError, match=r"^MCP needs the extra `mcp`; pip install 'dubito\[mcp\]'$"):
        hooks.import_place(hooks.agent_apps()["/mcp"])()
