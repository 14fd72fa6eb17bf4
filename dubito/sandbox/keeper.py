"""Isolate one bot in Linux namespaces. Run as a script, this module is their first process.

    python keeper.py SOCKET ORDERS COMMAND...       ORDERS: arguments of `World` as JSON

In these namespaces only the bot's processes exist, and only its data and its own temporary folders can be written. The
cards, other bots' data and the machine's sockets are hidden. Unless it is allowed, the only network is a loopback
interface. The bot has no root privileges, cannot change its core, and cannot outlive the keeper. The keeper first tests
and reports which of these protections work, one word each. Then it handles these messages, in the folder and
environment in which it was started:

    start SEED CORE   with three pipes: start the bot, on a core unless that is -1; the answer is `started` with a
                      pidfd, or `failed` with an error number
    signal NUMBER     signal the bot's group
    end               kill everything and answer how the bot ended

The namespaces end with the keeper, and the keeper ends when its socket is closed. Only the standard library is
imported, so that it starts fast.
"""

import ctypes
import errno
import json
import os
import resource
import select
import signal
import socket
import stat
import struct
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import islice

MAX_PROCESSES = 1000  # limit per bot, including threads
MAX_FILES = 100_000  # maximum number of files and folders in its data
_NEWNS, _NEWIPC, _NEWUSER, _NEWPID, _NEWNET = 0x20000, 0x8000000, 0x10000000, 0x20000000, 0x40000000
_BIND, _REC, _PRIVATE, _SAFE = 0x1000, 0x4000, 0x40000, 2 | 4 | 8  # _SAFE: nosuid, nodev, noexec
_READ_ONLY, _REMOUNT, _DETACH = 1, 0x20, 2
_MOUNT_SETATTR, _AT_FDCWD, _AT_RECURSIVE = 442, -100, 0x8000
_PR_CAPBSET_DROP, _PR_SET_SECCOMP, _PR_SET_NO_NEW_PRIVS = 24, 22, 38
_CAPABILITIES = 64  # greater than any existing number
_OWN_PID_MAX = (6, 14)  # Linux version since which each PID namespace has its own limit (before: a global one)
_DEVICES = ("null", "zero", "full", "random", "urandom", "tty", "shm")
_SCRATCH = ("/tmp", "/var/tmp", "/dev/shm", "/run")  # noqa: S108, emptied for every match
SHARE = 16  # each temporary folder can hold 1/SHARE of the memory limit
_CHECK_SECONDS = 0.05  # seconds between two checks of a bot's usage; at least ten times the duration of a check
_SIOCSIFFLAGS, _IFF_UP = 0x8914, 1
_LIBC = ctypes.CDLL(None)


def enter_namespaces(network: bool) -> bool:
    """Enter new namespaces, as root or through a user namespace. Return whether this succeeded."""
    flags = _NEWNS | _NEWPID | _NEWIPC | (0 if network else _NEWNET)
    user, group = os.getuid(), os.getgid()
    if _LIBC.unshare(flags) == 0:
        return True
    if _LIBC.unshare(_NEWUSER | flags) != 0:
        return False
    for file, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
        with suppress(OSError), open(f"/proc/self/{file}", "w", encoding="ascii") as map_:
            map_.write(text)
    return True


def find_sockets(home: str) -> list[str]:
    """Return sockets with a path, both the machine's and those near the bot's folder."""
    sockets = []
    with suppress(OSError), open("/proc/net/unix", encoding="utf-8", errors="surrogateescape") as table:
        sockets = [line.rstrip("\n").partition(" /")[2] for line in table]
    folders = [home]
    while folders[-1] != os.path.dirname(folders[-1]):
        folders.append(os.path.dirname(folders[-1]))
    paths = [f"/{name}" for name in sockets if name]
    for folder in folders:
        with suppress(OSError), os.scandir(folder) as entries:
            paths += [entry.path for entry in entries if not (entry.is_file() or entry.is_dir() or entry.is_symlink())]
    return [path for path in paths if _is_socket(path)]


def _is_socket(path: str) -> bool:
    with suppress(OSError):
        return stat.S_ISSOCK(os.lstat(path).st_mode)
    return False


def _mount(what: str, where: str, kind: str | None, flags: int, options: str | None = None) -> bool:
    texts = [text if text is None else os.fsencode(text) for text in (what, where, kind, options)]
    return bool(_LIBC.mount(texts[0], texts[1], texts[2], ctypes.c_ulong(flags), texts[3]) == 0)


def _set_read_only(path: str, flags: int, on: bool) -> bool:
    change = struct.pack("=4Q", int(on), int(not on), 0, 0)
    arguments = (_MOUNT_SETATTR, _AT_FDCWD, os.fsencode(path), flags, change, len(change))
    return bool(_LIBC.syscall(*arguments) == 0)


class World:
    """The environment that a bot can see and use."""

    def __init__(
        self, data: str, hidden: list[str], memory: int, room: int, network: bool, command: Sequence[str]
    ) -> None:
        """Prepare a world.

        `memory` (for all processes) and `room` (for its data) are in bytes. `hidden` lists files and folders.
        """
        self.data, self._hidden, self._memory, self._room, self._network = data, hidden, memory, room, network
        self._home, self._command = os.getcwd(), command
        self._sockets = find_sockets(self._home)
        found = dict.fromkeys(os.path.realpath(place) for place in _SCRATCH if os.path.isdir(place))
        self._places: dict[str, dict[str, int]] = {place: {} for place in found if place not in (self._home, data)}
        self._empty: dict[str, tuple[int, int]] = {}  # free space and inodes of each empty temporary folder
        self._able: list[str] = []

    def set_up_mounts(self, tries: bool) -> list[str]:
        """Set up mounts and limits. Return the protections that work.

        If `tries` is set, also test and return protections that can only be tested.
        """
        private = _mount("none", "/", None, _REC | _PRIVATE)
        if private and _mount("proc", "/proc", "proc", _SAFE):
            self._able.append("processes")
        if _has_few_processes():
            self._able.append("few")
        if private:
            _mount("/proc/sys", "/proc/sys", None, _BIND | _REC)
            _mount("none", "/proc/sys", None, _BIND | _REMOUNT | _READ_ONLY | _SAFE)  # since root could remount it
            self._hide_paths()
            _mount_own_devices()
            _set_read_only("/", _AT_RECURSIVE, True)
            _set_read_only(self.data, 0, False)
        _raise_loopback()
        _LIBC.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
        for capability in range(_CAPABILITIES):
            _LIBC.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0)
        if private:
            self._mount_scratch()
        set_limit(resource.RLIMIT_NPROC, MAX_PROCESSES)
        limit_resources(self._memory, max(self._room, self._scratch))
        return [*self._able, *(self._test_promises() if tries else ())]

    def _mount_scratch(self) -> None:
        """Mount private temporary folders over the shared ones, keeping files that the bot needs visible."""
        for place in self._places:
            self._places[place] = {
                name: os.open(os.path.join(place, name), os.O_PATH) for name in self._visible_paths(place)
            }
        try:
            self.refresh()
        except OSError:
            self._places = {}

    def _hide_paths(self) -> None:
        mine = os.open(self.data, os.O_PATH)
        for path in (*self._hidden, *self._sockets):
            if os.path.isdir(path):
                _mount("none", path, "tmpfs", _SAFE, "size=64k,nr_inodes=64,mode=755")
            elif os.path.lexists(path):
                _mount("/dev/null", path, None, _BIND)
        os.makedirs(self.data, exist_ok=True)
        _mount(f"/proc/self/fd/{mine}", self.data, None, _BIND)
        os.close(mine)

    def _test_promises(self) -> list[str]:
        """Return the protections that work for a process that is started like the bot."""
        reads, writes = os.pipe()
        if (child := os.fork()) == 0:
            with suppress(OSError):
                os.write(
                    writes, " ".join(word for word, holds in self._list_promises() if _is_fulfilled(holds)).encode()
                )
            os._exit(0)
        os.close(writes)
        kept_promises = os.read(reads, 1000).decode().split()
        os.close(reads)
        os.waitpid(child, 0)
        return kept_promises

    def _list_promises(self) -> Iterator[tuple[str, Callable[[], bool]]]:
        yield "files", lambda: not any(map(self._is_visible, (*self._hidden, *self._sockets)))
        yield "still", lambda: _is_refused(lambda: os.close(os.open(self._home, os.O_TMPFILE | os.O_WRONLY)))
        yield "scratch", lambda: all(os.statvfs(path).f_blocks < 2 * self._scratch // 4096 for path in self._places)
        yield "core", stays_on_core
        yield "loopback", _has_loopback

    def _is_visible(self, path: str) -> bool:
        if os.path.isdir(path):
            return any(not self.data.startswith(os.path.join(path, name)) for name in os.listdir(path))
        return _is_socket(path) or (os.path.isfile(path) and os.path.getsize(path) > 0)

    @property
    def _scratch(self) -> int:
        return self._memory // SHARE

    def _visible_paths(self, place: str) -> set[str]:
        """Return the entries of a folder that must stay visible for the bot.

        These are the bot's folders, paths in its command, folders of programs, and the Python that runs the tournament.
        """
        words = [os.path.join(self._home, word) for word in self._command]
        paths = [path for key, value in os.environ.items() if key.endswith("PATH") for path in value.split(os.pathsep)]
        paths += [
            self._home,
            self.data,
            sys.executable,
            sys.base_prefix,
            *words,
            *(["/etc/resolv.conf"] if self._network else []),
        ]
        real = [name for path in paths if path for name in (os.path.abspath(path), os.path.realpath(path))]
        inside = [os.path.relpath(path, place).split(os.sep)[0] for path in real if path.startswith(place + os.sep)]
        return {name for name in inside if os.path.exists(os.path.join(place, name))}

    def refresh(self) -> None:
        """Empty the temporary folders. Raises OSError."""
        for place, saved in self._places.items():
            if place in self._empty:
                if self._empty[place] == _free_space(place):
                    continue
                _LIBC.umount2(os.fsencode(place), _DETACH)
            if _mount("none", place, "tmpfs", 2 | 4, f"size={self._scratch},nr_inodes={MAX_FILES},mode=1777"):
                for name, file in saved.items():
                    _bind_mount(os.path.join(place, name), file)
            self._empty[place] = _free_space(place)
        os.chdir(self._home)

    def start(self, pipes: Sequence[int], seed: str, core: int) -> int:
        """Start the bot and return its pid in these namespaces.

        Raises OSError. The bot inherits the keeper's limits and current core.
        """
        cores = os.sched_getaffinity(0)
        if core >= 0:
            with suppress(OSError):
                os.sched_setaffinity(os.getpid(), {core})
        environment = {**os.environ, "DUBITO_SEED": seed}
        if self._places:
            environment["TMPDIR"] = next(iter(self._places))
        try:
            return os.posix_spawnp(
                self._command[0],
                list(self._command),
                environment,
                file_actions=[
                    *((os.POSIX_SPAWN_DUP2, pipe, number) for number, pipe in enumerate(pipes)),
                    *((os.POSIX_SPAWN_CLOSE, pipe) for pipe in pipes),
                ],
                setsid=True,
                setsigdef=[signal.SIGPIPE, signal.SIGXFSZ],  # Python ignores these, which children would inherit
            )
        finally:
            with suppress(OSError):
                os.sched_setaffinity(os.getpid(), cores)

    def exceeded_limit(self) -> str:
        """Describe the limit that the bot exceeds, or return an empty string."""
        pids = [pid for pid in os.listdir("/proc") if pid.isdigit() and pid != "1"]
        if sum(map(_resident, pids)) > self._memory and sum(map(_share, pids)) > self._memory:
            return f"its processes use more than {self._memory:,} bytes of memory"
        used, files = usage(self.data)
        if used + _deleted_bytes(pids, os.stat(self.data).st_dev) > self._room:
            return f"its data has more than {self._room:,} bytes"
        return f"its data has more than {MAX_FILES:,} files, or too many nested folders" if files >= MAX_FILES else ""


def _free_space(place: str) -> tuple[int, int]:
    status = os.statvfs(place)
    return status.f_bfree, status.f_ffree


def _bind_mount(path: str, file: int) -> None:
    if stat.S_ISDIR(os.fstat(file).st_mode):
        os.mkdir(path)
    else:
        os.close(os.open(path, os.O_CREAT))
    if not _mount(f"/proc/self/fd/{file}", path, None, _BIND | _REC):
        raise OSError(errno.EPERM, "", path)


def _is_refused(attempt: Callable[[], object]) -> bool:
    try:
        attempt()
    except OSError as error:
        return error.errno in (errno.EPERM, errno.EACCES, errno.EROFS)
    return False


def stays_on_core() -> bool:
    return _is_refused(lambda: os.sched_setaffinity(0, os.sched_getaffinity(0)))


def _is_fulfilled(promise: Callable[[], bool]) -> bool:
    with suppress(OSError):
        return promise()
    return False


def _mount_own_devices() -> None:
    """Replace /dev with a folder that contains only the few devices that programs need."""
    devices = [(name, os.open(f"/dev/{name}", os.O_PATH)) for name in _DEVICES if os.path.exists(f"/dev/{name}")]
    if _mount("none", "/dev", "tmpfs", 2 | 8, "size=64k,nr_inodes=64,mode=755"):
        for name, file in devices:
            _bind_mount(f"/dev/{name}", file)
            os.close(file)
        for name, to in (("fd", ""), ("stdin", "/0"), ("stdout", "/1"), ("stderr", "/2")):
            os.symlink(f"/proc/self/fd{to}", f"/dev/{name}")
        os.mkdir("/dev/pts")
        os.symlink("pts/ptmx", "/dev/ptmx")
        _mount("devpts", "/dev/pts", "devpts", 2 | 8, "newinstance,ptmxmode=0666,mode=620")


def _raise_loopback() -> None:
    with suppress(OSError), socket.socket() as any_:
        import fcntl

        fcntl.ioctl(any_, _SIOCSIFFLAGS, struct.pack("16sH22x", b"lo", _IFF_UP))


def _has_loopback() -> bool:
    with socket.socket() as server, socket.socket() as client:
        server.bind(("127.0.0.1", 0))
        server.listen()
        client.connect(server.getsockname())
    return True


def _has_few_processes() -> bool:
    """Limit the number of processes and return whether that works.

    A resource limit applies to all users except root.
    """
    version = tuple(int(word) for word in os.uname().release.split(".")[:2])
    if version < _OWN_PID_MAX:
        return os.getuid() != 0
    with suppress(OSError), open("/proc/sys/kernel/pid_max", "w", encoding="ascii") as limit:
        limit.write(str(MAX_PROCESSES))
        return True
    return os.getuid() != 0


def _resident(pid: str) -> int:
    with suppress(OSError, IndexError), open(f"/proc/{pid}/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * resource.getpagesize()
    return 0


def _share(pid: str) -> int:
    with suppress(OSError), open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as file:
        return sum(int(line.split()[1]) << 10 for line in file if line.startswith("Pss:"))
    return 0


def usage(folder: str) -> tuple[int, int]:
    """Return the total size and number of a folder's files, counting at most MAX_FILES.

    The cap keeps a bot from making this slow. Files that vanish during the count are skipped. A folder whose path is
    too long to open counts as full.
    """
    total, seen, folders = 0, 0, [folder]
    while folders and seen < MAX_FILES:
        try:
            with os.scandir(folders.pop()) as entries:
                for entry in islice(entries, MAX_FILES - seen):
                    seen += 1
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(entry.path)
                    else:
                        with suppress(OSError):
                            total += entry.stat(follow_symlinks=False).st_size
        except OSError as error:
            if error.errno == errno.ENAMETOOLONG:
                seen = MAX_FILES
    return total, seen


def _deleted_bytes(pids: Sequence[str], device: int) -> int:
    """Return the total size of deleted files on a device that these processes keep open."""
    sizes: dict[int, int] = {}
    for pid in pids:
        with suppress(OSError), os.scandir(f"/proc/{pid}/fd") as files:
            for file in files:
                with suppress(OSError):
                    status = file.stat()
                    if status.st_nlink == 0 and status.st_dev == device and stat.S_ISREG(status.st_mode):
                        sizes[status.st_ino] = status.st_size
    return sum(sizes.values())


def set_limit(what: int, most: int) -> None:
    _, hard = resource.getrlimit(what)
    most = most if hard == resource.RLIM_INFINITY else min(most, hard)
    resource.setrlimit(what, (most, most))


def limit_resources(memory: int, file: int) -> None:
    """Limit the memory, file size and system calls of this process and its children."""
    set_limit(resource.RLIMIT_CORE, 0)
    set_limit(resource.RLIMIT_AS, memory)
    set_limit(resource.RLIMIT_FSIZE, file)
    _LIBC.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    if (filter_ := _filter()) is not None:
        code = ctypes.create_string_buffer(filter_)
        program = struct.pack("HxxxxxxP", len(filter_) // 8, ctypes.addressof(code))
        _LIBC.prctl(_PR_SET_SECCOMP, 2, program, 0, 0)


# Refused system calls, by machine: those with which a bot could escape its core or memory limit, or harm its keeper.
_SYSTEMS = {  # the number of the machine, then of the calls below
    "x86_64": (0xC000003E, 203, (425, 319, 447, 29, 435), (272, 56), (302, 144, 142, 314), 141, 41),
    "aarch64": (0xC00000B7, 122, (425, 279, 447, 194, 435), (97, 220), (261, 119, 118, 274), 140, 198),
    "riscv64": (0xC00000F3, 122, (425, 279, 447, 194, 435), (97, 220), (261, 119, 118, 274), 140, 198),
}
_REFUSED = (*[errno.ENOSYS] * 3, errno.EPERM, errno.ENOSYS)
_FAMILIES = (socket.AF_UNIX, socket.AF_INET, socket.AF_INET6, 16)  # 16: netlink, needed to list interfaces
_LOAD, _EQUAL, _AT_LEAST, _ANY_OF, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _KILL, _FAIL = 0x7FFF0000, 0x80000000, 0x50000


def _filter() -> bytes | None:
    """Return the seccomp program, or None on an unknown machine.

    It refuses: sched_setaffinity, except on process 1, which keepers use to lend their core; io_uring_setup,
    memfd_create, memfd_secret and shmget, whose work or memory is not charged to a process; clone3, whose flags
    cannot be inspected; new user namespaces; changes to the limits and priority of process 1; and sockets of other
    families, such as one to the host.
    """
    if os.uname().machine not in _SYSTEMS or sys.maxsize < 1 << 32:
        return None
    machine, affinity, refused, worlds, limits, priority, sockets = _SYSTEMS[os.uname().machine]
    code = [(_LOAD, 0, 0, 4), (_EQUAL, 1, 0, machine), (_RETURN, 0, 0, _KILL), (_LOAD, 0, 0, 0)]
    code += [(_AT_LEAST, 0, 1, 0x40000000), (_RETURN, 0, 0, _FAIL | errno.ENOSYS)]
    code += [(_EQUAL, 0, 4, affinity), (_LOAD, 0, 0, 16), (_EQUAL, 1, 0, 1), (_RETURN, 0, 0, _FAIL | errno.EPERM)]
    code += [(_RETURN, 0, 0, _ALLOW)]
    for call, error in zip(refused, _REFUSED, strict=True):
        code += [(_EQUAL, 0, 1, call), (_RETURN, 0, 0, _FAIL | error)]
    for call in worlds:
        code += [(_EQUAL, 0, 4, call), (_LOAD, 0, 0, 16), (_ANY_OF, 0, 1, _NEWUSER), (_RETURN, 0, 0, _FAIL | 1)]
        code += [(_RETURN, 0, 0, _ALLOW)]
    for call, offset in (*((call, 16) for call in limits), (priority, 24)):
        code += [(_EQUAL, 0, 4, call), (_LOAD, 0, 0, offset), (_EQUAL, 0, 1, 1), (_RETURN, 0, 0, _FAIL | 1)]
        code += [(_RETURN, 0, 0, _ALLOW)]
    code += [(_EQUAL, 0, 2 + len(_FAMILIES), sockets), (_LOAD, 0, 0, 16)]
    code += [(_EQUAL, len(_FAMILIES) - n, 0, family) for n, family in enumerate(_FAMILIES)]
    code += [(_RETURN, 0, 0, _FAIL | errno.EAFNOSUPPORT), (_RETURN, 0, 0, _ALLOW)]
    return b"".join(struct.pack("HBBI", *line) for line in code)


def serve_referee(referee: socket.socket, world: World) -> None:
    """Handle the referee's messages until the referee is gone."""
    bot, errors, pause = 0, -1, _CHECK_SECONDS
    looks = select.poll()
    looks.register(referee, select.POLLIN)
    while True:
        while errors >= 0 and not looks.poll(pause * 1000):
            began = time.monotonic()
            if what := world.exceeded_limit():
                _kill_for_limit(what, errors)
                errors = _close(errors)
            pause = max(_CHECK_SECONDS, 10 * (time.monotonic() - began))
        message, pipes, _, _ = socket.recv_fds(referee, 100, 3)
        verb, *rest = message.decode().split() or [""]
        if verb == "start":
            try:
                bot = world.start(pipes, rest[0], int(rest[1]))
            except OSError as error:
                referee.send(f"failed {error.errno or 0}".encode())
            else:
                end = os.pidfd_open(bot)
                socket.send_fds(referee, [b"started"], [end])
                os.close(end)
                errors = os.dup(pipes[2])
            for pipe in pipes:
                os.close(pipe)
        elif verb == "signal":
            with suppress(OSError):
                os.killpg(bot, int(rest[0]))
        elif verb == "end":
            errors = _close(errors)
            referee.send(b"%d" % _reap_all(bot))
            world.refresh()
        else:
            return


def _close(file: int) -> int:
    if file >= 0:
        os.close(file)
    return -1


def _kill_for_limit(why: str, errors: int) -> None:
    """Kill a bot that exceeds a limit, and report this on its standard error."""
    with suppress(OSError):
        os.kill(-1, signal.SIGKILL)
    with suppress(OSError):
        os.set_blocking(errors, False)
        os.write(errors, f"\nstopped by the referee: {why}\n".encode())


def _reap_all(bot: int) -> int:
    """Kill and reap all other processes. Return the bot's exit code, which is negative for a signal."""
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
    number, orders, *command = words
    referee = socket.socket(fileno=int(number))
    referee.set_inheritable(False)
    settings = json.loads(orders)
    tries = settings.pop("tries")
    world = World(**settings, command=command)
    if not enter_namespaces(settings["network"]):
        referee.send(b"alone")
        return
    if inner := os.fork():  # the first process of the new namespace is its init
        referee.close()
        os.waitpid(inner, 0)
        return
    protections = world.set_up_mounts(tries)
    referee.send(" ".join(["apart", *protections]).encode())
    with suppress(ConnectionError):
        serve_referee(referee, world)


if __name__ == "__main__":
    main(sys.argv[1:])
