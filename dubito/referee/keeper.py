"""Keeps one bot apart from everything else: run as a script, it is the first process of a world of its own.

    python keeper.py SOCKET RUN DATA MEMORY NETWORK COMMAND...

In that world, of Linux's namespaces, are no processes but the bot's; of the tournament's folder RUN there is nothing
but the bot's own folder DATA; there is no network, unless NETWORK is 1; and nobody has root's powers. What was possible
is said first, a word each. Then, a message each, in the folder and environment in which the keeper itself was started:

    start SEED CORE   with three pipes: start the bot, on a core if that is not -1; answered `started` with a pidfd, or
                      `failed` with the number of an error
    signal NUMBER     signal the bot's group
    end               kill everything here and answer how the bot ended

The world ends with the keeper, and the keeper when its socket is closed. Nothing but the standard library is imported,
so that it starts at once.
"""

import ctypes
import os
import resource
import signal
import socket
import sys
from collections.abc import Sequence
from contextlib import suppress

PROCESSES = 1000  # that a bot may have at once, threads included
_NEWNS, _NEWUSER, _NEWPID, _NEWNET = 0x20000, 0x10000000, 0x20000000, 0x40000000
_BIND, _REC, _PRIVATE, _SAFE = 0x1000, 0x4000, 0x40000, 2 | 4 | 8  # _SAFE: nosuid, nodev, noexec
_READ_ONLY, _REMOUNT = 1, 0x20
_PR_CAPBSET_DROP, _PR_SET_NO_NEW_PRIVS = 24, 38
_CAPABILITIES = 64  # more than there are
_OWN_PID_MAX = (6, 14)  # the first Linux in which each world has its own: in older ones it is everybody's
_LIBC = ctypes.CDLL(None)


def leave(network: bool) -> bool:
    """Leave the common world, with root's powers or in a world of users in which this one has them."""
    flags = _NEWNS | _NEWPID | (0 if network else _NEWNET)
    user, group = os.getuid(), os.getgid()
    if _LIBC.unshare(flags) == 0:
        return True
    if _LIBC.unshare(_NEWUSER | flags) != 0:
        return False
    for file, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
        with suppress(OSError), open(f"/proc/self/{file}", "w") as map_:
            map_.write(text)
    return True


def furnish(run: str, data: str) -> list[str]:
    """Take away from this world what is not the bot's; what was possible."""
    found = []
    mine = os.open(data, os.O_PATH)
    private = _mount("none", "/", None, _REC | _PRIVATE)
    if private and _mount("proc", "/proc", "proc", _SAFE):
        found.append("processes")
    if private and _mount("none", run, "tmpfs", _SAFE, "size=64k,nr_inodes=64,mode=755"):
        os.makedirs(data, exist_ok=True)
        if _mount(f"/proc/self/fd/{mine}", data, None, _BIND):
            found.append("files")
    os.close(mine)
    if _has_few_processes():
        found.append("few")
    if private and _mount("/proc/sys", "/proc/sys", None, _BIND | _REC):
        _mount("none", "/proc/sys", None, _BIND | _REMOUNT | _READ_ONLY | _SAFE)  # or root could take the limit away
    _LIBC.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    for capability in range(_CAPABILITIES):
        _LIBC.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0)
    return found


def _mount(what: str, where: str, kind: str | None, flags: int, options: str | None = None) -> bool:
    texts = [text if text is None else os.fsencode(text) for text in (what, where, kind, options)]
    return bool(_LIBC.mount(texts[0], texts[1], texts[2], ctypes.c_ulong(flags), texts[3]) == 0)


def _has_few_processes() -> bool:
    """Whether there cannot be more than PROCESSES; a limit of resources binds everybody but root."""
    version = tuple(int(word) for word in os.uname().release.split(".")[:2])
    if version < _OWN_PID_MAX:
        return os.getuid() != 0
    with suppress(OSError), open("/proc/sys/kernel/pid_max", "w") as limit:
        limit.write(str(PROCESSES))
        return True
    return os.getuid() != 0


def serve(referee: socket.socket, command: Sequence[str]) -> None:
    """Do what the referee says until it is gone."""
    bot = 0
    while True:
        message, pipes, _, _ = socket.recv_fds(referee, 100, 3)
        verb, *rest = message.decode().split() or [""]
        if verb == "start":
            try:
                bot = _start(command, pipes, rest[0], int(rest[1]))
            except OSError as error:
                referee.send(f"failed {error.errno or 0}".encode())
            else:
                end = os.pidfd_open(bot)
                socket.send_fds(referee, [b"started"], [end])
                os.close(end)
            for pipe in pipes:
                os.close(pipe)
        elif verb == "signal":
            with suppress(OSError):
                os.killpg(bot, int(rest[0]))
        elif verb == "end":
            referee.send(b"%d" % _end(bot))
        else:
            return


def _start(command: Sequence[str], pipes: Sequence[int], seed: str, core: int) -> int:
    """Start the bot and give its number here; raises OSError. It has our limits, and our core."""
    if core >= 0:
        with suppress(OSError):
            os.sched_setaffinity(0, {core})
    return os.posix_spawnp(
        command[0],
        list(command),
        {**os.environ, "DUBITO_SEED": seed},
        file_actions=[
            *((os.POSIX_SPAWN_DUP2, pipe, number) for number, pipe in enumerate(pipes)),
            *((os.POSIX_SPAWN_CLOSE, pipe) for pipe in pipes),
        ],
        setsid=True,
        setsigdef=[signal.SIGPIPE, signal.SIGXFSZ],  # which Python ignores, and with it its children
    )


def limit(memory: int) -> None:
    """Bound what this process and its children may use: address space in bytes, processes; no core files."""
    for what, most in (
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_NPROC, PROCESSES),
        (resource.RLIMIT_AS, memory),
    ):
        _, hard = resource.getrlimit(what)
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(what, (most, most))


def _end(bot: int) -> int:
    """Kill and reap everything but ourselves; the bot's exit code, a signal's number below zero."""
    status = 0
    with suppress(OSError):
        os.kill(-1, signal.SIGKILL)
    with suppress(ChildProcessError):
        while True:
            pid, ended = os.wait()
            if pid == bot:
                status = os.waitstatus_to_exitcode(ended)
    return status


def main(words: Sequence[str]) -> None:
    """Leave the world, furnish the new one and serve in it."""
    number, run, data, memory, network, *command = words
    referee = socket.socket(fileno=int(number))
    referee.set_inheritable(False)
    if not leave(network == "1"):
        referee.send(b"alone")
        return
    if inner := os.fork():  # the first process of the new world is its init
        referee.close()
        os.waitpid(inner, 0)
        return
    found = furnish(run, data)
    referee.send(" ".join(["apart", *found]).encode())
    with suppress(ConnectionError):
        limit(int(memory))
        serve(referee, command)


if __name__ == "__main__":
    main(sys.argv[1:])
