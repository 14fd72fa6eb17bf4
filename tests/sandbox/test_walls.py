"""What a hostile program can do, in namespaces, with Landlock, and with neither."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from dubito.sandbox import landlock
from dubito.sandbox.programs import BotProgram, Confinement, machine_memory
from dubito.sandbox.view import private_grants, visible_paths
from tests.cli.kit import REPO
from tests.conftest import in_gate

VICTIM = Path(__file__).with_name("victim.py")
HAS_LANDLOCK = sys.platform == "linux" and landlock.is_supported()
IS_TRIED = sys.platform == "linux" and os.uname().machine == "x86_64"
# What a system offers, and whether it is enough for the walls.
SYSTEMS = {
    "namespaces": ["namespaces", "Landlock", "signals"],
    "Landlock": ["Landlock", "signals"],
    "Landlock without signals": ["Landlock"],
    "neither": [],
}
WALLS = [
    "programs can read and change your files, such as your keys and the cards of this run",
    "programs can read the memory of your other processes, and stop them",
    "programs can use the network",
]


@pytest.fixture
def folder() -> Iterator[Path]:
    """Return a folder outside of those for temporary files, which programs have for themselves."""
    with tempfile.TemporaryDirectory(prefix="dubito-walls-", dir="/var/lib") as name:
        os.chmod(name, 0o777)  # noqa: S103, another user attacks it too
        yield Path(name)


def attack(folder: Path, offered: Sequence[str], user: int | None = None) -> dict[str, Any]:
    """Let the hostile program attack a harness on a system that offers these methods, and return what it found."""
    python = sys.executable if user is None else "/usr/bin/python3"
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(REPO), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [python, str(VICTIM), str(folder), *offered],
        env=environment,
        user=user,
        group=user,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    assert len(found["found"]) > 140
    return found


@pytest.mark.skipif(not IS_TRIED or os.geteuid() != 0, reason="the attacks are written for root on x86-64 Linux")
@pytest.mark.parametrize("system", in_gate([*SYSTEMS], ["namespaces"]))
@pytest.mark.parametrize("user", in_gate([None, 65534], 1))
def test_no_attack_of_a_hostile_program_succeeds(folder: Path, system: str, user: int | None) -> None:
    found = attack(folder, SYSTEMS[system], user)
    succeeded = {name for name, result in found["found"].items() if result in ("succeeded", "no answer", "killed")}
    if system == "neither":
        assert {"write an SSH key", "read the run's database", "list the runs"} <= succeeded
        assert found["missing"][: len(WALLS)] == WALLS
        return
    assert succeeded == set()
    assert not {*WALLS} & {*found["missing"]}
    assert (found["missing"] == []) == (system == "namespaces")


def start(tmp_path: Path, *methods: str, **allowed: bool) -> None:
    confinement = Confinement(1 << 30, None, methods, **allowed)
    assert confinement.keeper(BotProgram("mine", ("sh", "x.sh"), tmp_path), {}, tmp_path, [], 1 << 20) is None


def test_program_without_walls_starts_only_if_that_is_allowed(tmp_path: Path) -> None:
    with pytest.raises(Exception, match=r"^mine is not started: this machine cannot keep .* --allow-unsandboxed$"):
        start(tmp_path)
    start(tmp_path, allow_unsandboxed=True)


def visible(folder: Path, *command: str, owns_home: bool = False, **grants: Sequence[Path]) -> list[str]:
    found = visible_paths(command, folder, owns_home, grants.get("reads", ()), grants.get("hidden", ()))
    return [str(Path(path).relative_to(folder)) for path in found if Path(path).is_relative_to(folder)]


def fill(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()


def test_program_in_working_directory_sees_only_files_in_its_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    fill(tmp_path, "bot.py", "helper.py", ".env", "runs/a/run.db", "mine/bot.py", "mine/helper.py", "lib/x.jar")
    fill(tmp_path, "pack/__init__.py")
    assert visible(tmp_path, "python3", "bot.py") == ["bot.py"]
    assert visible(tmp_path, "python3", "mine/bot.py") == ["mine"]
    assert visible(tmp_path, "java", "-cp", "lib/x.jar:mine", "Main") == ["lib", "mine"]
    assert visible(tmp_path, "python3", "-m", "pack") == ["pack"]
    for word in (".", "..", "/", "~", f"--home={tmp_path}"):
        assert visible(tmp_path, "sh", "bot.py", word) == ["bot.py"], word
    assert visible(tmp_path, "python3", "bot.py", reads=[tmp_path / "helper.py"]) == ["bot.py", "helper.py"]
    assert visible(tmp_path, "node", "bot.py", hidden=[tmp_path / "runs"]) == ["bot.py"]


def test_granted_folder_does_not_open_a_hidden_one(tmp_path: Path) -> None:
    fill(tmp_path, "bot.py", "sub/kept.txt", "sub/runs/run.db")
    hidden = [tmp_path / "sub" / "runs"]
    assert visible(tmp_path, "python3", "bot.py", owns_home=True, hidden=hidden) == ["bot.py", "sub/kept.txt"]
    assert visible(tmp_path, "python3", "bot.py", reads=[tmp_path / "sub"], hidden=hidden) == ["bot.py", "sub/kept.txt"]
    (tmp_path / "sub" / "link").symlink_to(hidden[0])
    assert "sub/link" not in visible(tmp_path, "python3", "bot.py", owns_home=True, hidden=hidden)


def make_executable(path: Path, *others: str) -> Path:
    fill(path.parent, path.name)
    path.chmod(0o755)
    prefix = path.parent.parent
    fill(prefix, *others)
    return path


def test_interpreters_in_the_home_folder_are_visible_with_their_libraries(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    fill(tmp_path, ".ssh/id_rsa", "bot.py", "bot.js")
    uv = make_executable(tmp_path / ".local/share/uv/python/cpython-3.12.1/bin/python3.12", "lib/python3.12/os.py")
    (uv.parents[2] / "cpython-3.12").symlink_to("cpython-3.12.1")
    nvm = make_executable(tmp_path / ".nvm/versions/node/v22/bin/node", "lib/node_modules/npm/x.js")
    (tmp_path / "venv" / "bin").mkdir(parents=True)
    (tmp_path / "venv" / "pyvenv.cfg").write_text(f"home = {uv.parents[2]}/cpython-3.12/bin\n")
    (tmp_path / "venv" / "bin" / "python").symlink_to(uv.parents[2] / "cpython-3.12" / "bin" / "python3.12")
    monkeypatch.setenv("PATH", f"{nvm.parent}:/usr/bin:/bin")
    seen = visible(tmp_path, "venv/bin/python", "bot.py")
    assert {"bot.py", "venv", ".local/share/uv/python/cpython-3.12.1"} <= {*seen}
    assert visible(tmp_path, "node", "bot.js") == [".nvm", "bot.js"]
    # A folder of a stranger can claim that its interpreter's prefix is the home folder.
    (tmp_path / "venv" / "pyvenv.cfg").write_text(f"home = {tmp_path}/bin\n")
    fill(tmp_path, "lib/python3.12/os.py")
    assert ".ssh" not in visible(tmp_path, "venv/bin/python", "bot.py")


def test_system_folders_do_not_open_the_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir("/usr/lib")
    found = visible_paths(["/bin/cat"], tmp_path, False, [], [])
    assert "/usr" not in found
    assert "/usr/lib" not in found
    assert "/usr/bin" in found


def test_only_listed_variables_are_passed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("DATABASE_PATH", "API_HOME", "MY_ROOT", "SECRET_PREFIX", "OPENAI_API_KEY", "PYTHONSTARTUP", "LC_X=Y"):
        monkeypatch.setenv(name.partition("=")[0], "postgres://user:pw@host")
    monkeypatch.setenv("JAVA_HOME", "/usr/lib/jvm/x")
    passed = BotProgram("mine", ("sh",), tmp_path).environment("mark", tmp_path, 5)
    assert "postgres://user:pw@host" not in {passed[name] for name in passed if name != "LC_X"}
    assert (passed["JAVA_HOME"], passed["HOME"], passed["DUBITO_SEED"]) == ("/usr/lib/jvm/x", str(tmp_path), "5")


def test_memory_limit_is_that_of_the_control_group(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    physical = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    assert 0 < machine_memory() <= physical
    group = tmp_path / "a" / "b"
    group.mkdir(parents=True)
    (group / "memory.max").write_text("max\n")
    (tmp_path / "a" / "memory.max").write_text(f"{1 << 29}\n")
    (tmp_path / "proc").write_text("0::/a/b\n")
    assert machine_memory(tmp_path / "proc", tmp_path) == 1 << 29


def test_consent_lists_what_is_not_of_the_system() -> None:
    assert private_grants(["/usr", "/etc/hosts", "/home/me/venv", "/usr2"]) == ["/home/me/venv", "/usr2"]
