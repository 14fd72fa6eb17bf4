"""A harness that starts the hostile program `attack.py`, in a process that may lack namespaces and Landlock.

    python victim.py FOLDER [namespaces] [Landlock] [signals]

The words name what the system offers: `signals` is that of Linux 6.12. The other calls fail as on a system without
them. It prints what the program
found, as JSON. `dubito` must be importable.
"""

import ctypes
import json
import os
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

WORD = "swordfish-4711"
_UNSHARE, _LANDLOCK = {"x86_64": 272}.get(os.uname().machine, 97), 444


def refuse_calls(numbers: Sequence[int]) -> None:
    """Let these system calls fail in this process and its children, as if the system did not have them."""
    code = [(0x20, 0, 0, 0)]
    for number in numbers:
        code += [(0x15, 0, 1, number), (0x06, 0, 0, 0x50000 | 38)]
    code += [(0x06, 0, 0, 0x7FFF0000)]
    lines = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *line) for line in code))
    libc = ctypes.CDLL(None)
    libc.prctl(38, 1, 0, 0, 0)
    assert libc.prctl(22, 2, struct.pack("HxxxxxxP", len(code), ctypes.addressof(lines)), 0, 0) == 0


def build_home(folder: Path) -> dict[str, Any]:
    """Create a user's home folder with secrets, and return the facts that the program attacks."""
    home = folder / "home"
    project = home / "project"
    files = {
        "an SSH key": home / ".ssh" / "id_rsa",
        "a shell's history": home / ".bash_history",
        "a config with a secret": project / "config.yaml",
        "a file of variables": project / ".env",
        "the run's database": project / "runs" / "this" / "run.db",
        "the run's manifest": project / "runs" / "this" / "manifest.yaml",
        "another run's database": project / "runs" / "other" / "run.db",
        "a cached reply": project / "cache" / "reply.db",
        "another bot's program": project / "bots" / "manual" / "Rival" / "rival.py",
        "a file in another user's folder": folder / "neighbour" / "notes.txt",
    }
    for path in files.values():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(WORD)
    (home / ".profile").write_text(WORD)
    shutil.copy(Path(__file__).with_name("attack.py"), project / "attack.py")
    folders = {"the home folder": home, "the working directory": project, "the runs": project / "runs"}
    return {
        "word": WORD,
        "files": {name: str(path) for name, path in files.items()},
        "folders": {name: str(path) for name, path in folders.items()},
        "home": str(home),
        "target": str(home / ".profile"),
    }


def main(folder: Path, offered: Sequence[str]) -> None:
    facts = build_home(folder)
    project = Path(facts["home"]) / "project"
    os.environ["HOME"], os.environ["OPENAI_API_KEY"], os.environ["DATABASE_PATH"] = facts["home"], WORD, WORD
    os.chdir(project)
    refuse_calls([*([] if "namespaces" in offered else [_UNSHARE]), *([] if "Landlock" in offered else [_LANDLOCK])])
    with ExitStack() as stack:
        shell = stack.enter_context(subprocess.Popen(["/bin/sleep", "600"]))
        stack.callback(shell.kill)
        servers = [stack.enter_context(socket.socket(socket.AF_UNIX, kind)) for kind in (1, 1, 2)]
        names = [str(project / "a.sock"), f"\0{folder}", str(project / "d.sock")]
        for server, name in zip(servers, names, strict=True):
            server.bind(name)
        for server in servers[:2]:
            server.listen()
        on_loopback = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        facts |= {
            "processes": {"the harness": os.getpid(), "a process of the user": shell.pid},
            "port": on_loopback.getsockname()[1],
            "port6": 9,
            "hostname": "example.com",
            "socket": names[0],
            "abstract": str(folder),
            "datagram": names[2],
            "memory": 1 << 40,
            "contained": True,
        }
        (project / "facts.json").write_text(json.dumps(facts))
        print(run_program(project, scopes_signals="signals" in offered))


def run_program(project: Path, *, scopes_signals: bool) -> str:
    """Start the program in its sandbox and return what it reports."""
    from dubito.sandbox import landlock
    from dubito.sandbox.process import Channel, wait_for_line
    from dubito.sandbox.programs import BotProgram, Confinement, describe_missing

    if not scopes_signals:
        landlock._version = partial(min, 5, landlock._version())
    bot = BotProgram("hostile", (sys.executable, "attack.py", "facts.json"), project)
    confinement = Confinement(1 << 30, sorted(os.sched_getaffinity(0)), allow_unsandboxed=True)
    hidden = [project / "runs" / "this", project / "cache", project / "runs"]
    with tempfile.TemporaryDirectory() as data:
        environment = bot.environment("hostile", Path(data), 0)
        keeper = confinement.keeper(bot, environment, Path(data), hidden, 1 << 26)
        start = confinement.start_directly(bot, environment, Path(data), hidden, 0, 1 << 26)
        channel = Channel(start if keeper is None else lambda pipes: keeper.start(pipes, 0, confinement.core(0)))
        wait_for_line(channel, 120)
        channel.wait_for_end(10)
        channel.shut()
        if keeper is not None:
            keeper.close()
    found = json.loads(channel.errors.strip().splitlines()[-1])
    return json.dumps({"found": found, "missing": describe_missing(confinement.enforced_limits())})


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
