"""A bot that searches for the cards' seed wherever a process can look, and writes what it finds."""

import glob
import os
import re
import socket
import sys
from collections.abc import Iterator
from contextlib import suppress

RUN = os.environ["DUBITO_TOURNAMENT"]
SECRET = re.compile(rb"^ *secret: *(\S.*)", re.MULTILINE)


def secrets() -> Iterator[str]:
    """Look for the secret in the tournament's file, a config, another process's memory, and the logs."""
    with suppress(OSError), open(os.path.join(RUN, "secret")) as secret:
        yield f"the secret's file: {secret.read()}"
    folders = (os.getcwd(), os.path.dirname(os.getcwd()), os.path.dirname(RUN))
    for path in [path for folder in folders for path in glob.glob(f"{folder}/*") + glob.glob(f"{folder}/.*")]:
        with suppress(OSError), open(path, "rb") as file:
            for found in SECRET.findall(file.read(1 << 20)):
                yield f"{path}: {found.decode()}"
    for path in glob.glob(f"{os.path.dirname(RUN)}/*/matches/*/*.jsonl"):
        yield f"a log: {path}"
    for path in glob.glob(f"{RUN}/data/*"):
        if path not in os.environ["DUBITO_DATA"]:
            yield f"another's data: {path}"


def processes() -> Iterator[str]:
    """Yield the memory and environments of other processes that can be read."""
    mine = {os.getpid(), os.getppid()}
    for pid in {int(name) for name in os.listdir("/proc") if name.isdigit()} - mine:
        with suppress(OSError), open(f"/proc/{pid}/mem", "rb"):
            yield f"the memory of {pid}"
        with suppress(OSError), open(f"/proc/{pid}/environ", "rb") as file:
            yield f"the environment of {pid}: {len(file.read())} bytes"


def sockets() -> Iterator[str]:
    """Yield the machine's sockets that accept connections."""
    with open("/proc/net/unix") as table:
        named = [words[7] for line in table if len(words := line.split()) > 7]
    beside = [name for folder in (os.getcwd(), "/tmp", "/run") for name in glob.glob(f"{folder}/*")]
    for name in {*named, *beside, *sys.argv[1:]}:
        with suppress(OSError), socket.socket(socket.AF_UNIX) as ours:
            ours.connect("\0" + name[1:] if name.startswith("@") else name)
            yield f"the socket {name}"


for look in (secrets, processes, sockets):
    for found in look():
        print("found", found, file=sys.stderr)

input(), input()
while not (line := input()).startswith("end of game"):
    if actions := line.split()[1:]:
        print(actions[0], flush=True)
