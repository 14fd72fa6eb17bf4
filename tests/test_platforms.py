"""Code that needs one system is in a few files.

They work without it, or the docs say that they need Linux or macOS.
"""

import ast
import re
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.cli.kit import read_lobby, start
from tests.test_project import REPO, command, ours, parsed, syntax

ONLY_POSIX_MODULES: Final = {"fcntl", "grp", "posix", "pty", "pwd", "resource", "syslog", "termios", "tty"}
ONLY_POSIX: Final = {  # names of os, signal, select, socket and subprocess that Windows does not have
    *("fork", "forkpty", "killpg", "setsid", "getuid", "geteuid", "getgid", "uname", "statvfs", "pread", "pwrite"),
    *("wait", "waitid", "WNOHANG", "WNOWAIT", "WEXITED", "P_PID", "pidfd_open", "posix_spawn", "posix_spawnp"),
    *("POSIX_SPAWN_CLOSE", "POSIX_SPAWN_DUP2", "sched_getaffinity", "sched_setaffinity", "O_PATH", "O_TMPFILE"),
    *("set_blocking", "mkfifo", "fchmod", "chown", "getpgid", "register_at_fork"),
    *("SIGALRM", "SIGHUP", "SIGKILL", "SIGPIPE", "SIGXFSZ", "SIG_BLOCK", "SIG_UNBLOCK", "SIG_SETMASK"),
    *("pthread_sigmask", "setitimer", "getitimer", "ITIMER_REAL", "poll", "POLLIN", "POLLOUT"),
    *("AF_UNIX", "SOCK_SEQPACKET", "send_fds", "recv_fds"),
}
ONLY_POSIX_ARGUMENTS: Final = {"preexec_fn", "process_group", "start_new_session", "pass_fds"}
GUARDED: Final = {  # with `hasattr` or `sys.platform`
    "cli/file_limit.py",
    "experiment/workers.py",
    "game/bot_deadline.py",
    "llm/connections.py",
    "plugins/gamecheck/hangs.py",
    "seats/program.py",
    "serve.py",
    "store/lock.py",
}
POSIX_BY_THE_DOCS: Final = ("sandbox/", "plugins/tournament/")  # docs/programs.md and the tournament's page name these
PLACES: Final = re.compile(r"^/(proc|sys|dev)/")
ON_WINDOWS: Final = """
import os, select, selectors, signal, socket, subprocess, asyncio, uvicorn, multiprocessing.util, concurrent.futures
for module in (os, signal, select, socket):
    for name in {names!r}:
        if hasattr(module, name):
            delattr(module, name)
"""
RUNTIME: Final = {"WNOHANG", "set_blocking", "AF_UNIX", "register_at_fork"}  # Python's own modules use these on Linux


DUBITO: Final = (sys.executable, "-m", "dubito")
RUN: Final = (
    *(*DUBITO, "run", "--bots", "ClaudeBot,StefaBot,UsualBot", "--contenders", "house:house-sharp,ClaudeBot"),
    *("--games", "20", "--workers", "2", "--tables"),
)


def posix_names(path: Path) -> set[str]:
    """Return the modules, attributes, arguments and files in a module's code that Windows does not have."""
    found = set[str]()
    for node in syntax(path):
        match node:
            case ast.Import(names=names):
                found |= {alias.name for alias in names} & ONLY_POSIX_MODULES
            case ast.ImportFrom(module=str(module)):
                found |= {module} & ONLY_POSIX_MODULES
            case ast.Attribute(value=ast.Name(id="os" | "signal" | "select" | "socket"), attr=name):
                found |= {name} & ONLY_POSIX
            case ast.keyword(arg=str(name)):
                found |= {name} & ONLY_POSIX_ARGUMENTS
            case ast.Constant(value=str(text)) if PLACES.match(text):
                found.add(text)
    return found


def is_for_posix(name: str) -> bool:
    return name in GUARDED or name.startswith(POSIX_BY_THE_DOCS)


def test_what_windows_lacks_is_used_only_in_listed_files() -> None:
    users = {path.relative_to(REPO / "dubito").as_posix(): posix_names(path) for path in ours()}
    assert {name: found for name, found in users.items() if found and not is_for_posix(name)} == {}
    assert {name for name in GUARDED if not users[name]} == set()
    for path in (REPO / "bots").rglob("*.py"):
        assert posix_names(path) == set()


def test_no_module_needs_a_module_that_windows_lacks_to_be_imported() -> None:
    for path in ours():
        imports = [node for node in parsed(path).body if isinstance(node, ast.Import)]
        assert ONLY_POSIX_MODULES.isdisjoint(alias.name for node in imports for alias in node.names), path


def test_text_is_read_and_written_in_a_named_encoding() -> None:
    """The default on Windows is cp1252."""
    command(REPO, sys.executable, "-m", "ruff", "check", "--preview", "--select", "PLW1514", "dubito", "bots")


@pytest.mark.at_length
@pytest.mark.parametrize("platform", ["win32", "darwin"])
def test_type_checker_for_another_system_finds_only_listed_names(platform: str, tmp_path: Path) -> None:
    words = ("mypy", "--platform", platform, "--cache-dir", str(tmp_path), "dubito", "bots")
    done = subprocess.run([sys.executable, "-m", *words], cwd=REPO, text=True, capture_output=True, check=False)
    missing = re.findall(r'^dubito/(\S+?):\d+: error: Module (?:"\w+" )?has no attribute "(\w+)"', done.stdout, re.M)
    assert len(missing) > 10
    unlisted = {(file, name) for file, name in missing if not is_for_posix(file)}
    assert unlisted == set()
    if platform == "darwin":
        in_sandbox = {f"sandbox/{name}.py" for name in ("keeper", "landlock", "process", "programs")}
        assert {file for file, _ in missing} <= in_sandbox | {"seats/program.py"}


@pytest.mark.at_length
def test_run_report_and_web_work_without_what_windows_lacks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "sitecustomize.py").write_text(ON_WINDOWS.format(names=sorted(ONLY_POSIX - RUNTIME)))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    ran = command(tmp_path, *RUN, "--output", "r")
    assert "results digest: " in ran
    assert (tmp_path / "r" / "report" / "index.html").exists()
    assert command(tmp_path, *DUBITO, "replay", "r").startswith("identical: 20 games")
    with start(tmp_path, "web", "--port", "0", "--no-browser") as web:
        assert "Deal the cards" in read_lobby(web)
    with pytest.raises(AssertionError, match="bot programs need Linux or macOS; on Windows, run Dubito in WSL"):
        command(tmp_path, *DUBITO, "bots", "check", "python3 my_bot.py")
