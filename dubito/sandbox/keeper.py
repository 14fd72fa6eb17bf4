"""Isolate one bot in Linux namespaces. Run as a script, this module is their first process.

    python keeper.py SOCKET ORDERS COMMAND...       ORDERS: arguments of `World` as JSON

In these namespaces only the bot's processes exist. Their root contains only the files that the bot may read; it can
write only its data and its own temporary folders. Unless it is allowed, the only network is a loopback interface. The
bot has no root privileges, cannot change its core, and cannot outlive the keeper. The keeper first tests and reports
which of these protections work, one word each. Then it handles these messages, in the folder and environment in which
it was started:

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
import select
import signal
import socket
import stat
import struct
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import islice

if sys.platform != "win32":  # where this module is imported, but never used
    import fcntl
    import resource

MAX_PROCESSES = 1000  # limit per bot, including threads
MAX_FILES = 100_000  # maximum number of files and folders in its data
_NEWNS, _NEWIPC, _NEWUSER, _NEWPID, _NEWNET = 0x20000, 0x8000000, 0x10000000, 0x20000000, 0x40000000
_BIND, _REC, _PRIVATE, _SAFE = 0x1000, 0x4000, 0x40000, 2 | 4 | 8  # _SAFE: nosuid, nodev, noexec
_READ_ONLY, _DETACH = 1, 2
_MOUNT_SETATTR, _AT_FDCWD, _AT_RECURSIVE = 442, -100, 0x8000
_PR_SET_DUMPABLE, _PR_CAPBSET_DROP, _PR_SET_SECCOMP, _PR_SET_NO_NEW_PRIVS = 4, 24, 22, 38
_CAPABILITIES = 64  # greater than any existing number
_OLD_ROOT = "/.old"  # where the machine's files stay mounted, below an empty folder
_MAX_LINKS = 40  # links in a path that are followed, as by Linux
_OWN_PID_MAX = (6, 14)  # Linux version since which each PID namespace has its own limit (before: a global one)
_DEVICES = ("null", "zero", "full", "random", "urandom", "tty")
_SCRATCH = ("/tmp", "/var/tmp", "/dev/shm", "/run")  # noqa: S108, emptied for every match
_RESERVED = 64 << 30  # bytes of address space that a program can reserve without using them
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
        with suppress(OSError), open(f"/proc/self/{file}", "w", encoding="utf-8") as map_:
            map_.write(text)
    return True


def find_sockets(visible: Iterable[str]) -> list[str]:
    """Return the machine's sockets below these paths."""
    sockets = []
    with suppress(OSError), open("/proc/net/unix", encoding="utf-8", errors="surrogateescape") as table:
        sockets = [line.rstrip("\n").partition(" /")[2] for line in table]
    prefixes = tuple(path + "/" for path in visible)
    found = []
    for path in (f"/{name}" for name in sockets):
        with suppress(OSError):
            if path.startswith(prefixes) and stat.S_ISSOCK(os.lstat(path).st_mode):
                found.append(path)
    return found


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
        self, data: str, visible: list[str], memory: int, room: int, calls: str | None, command: Sequence[str]
    ) -> None:
        """Prepare a world.

        `memory` (for all processes) and `room` (for its data) are in bytes. `visible` lists files and folders. `calls`
        is the system call filter in hexadecimal digits, or None on an unknown machine.
        """
        self._filter = None if calls is None else bytes.fromhex(calls)
        self.data, self._memory, self._room, self._command = os.path.realpath(data), memory, room, command
        self._scratch = memory // SHARE  # size of each temporary folder, in bytes
        self._home = os.getcwd()
        self._links: dict[str, str] = {}
        places = dict.fromkeys(self._note_links(place) for place in _SCRATCH if os.path.isdir(place))
        self._places = [place for place in places if place not in (self._home, self.data)]
        shown = {self._note_links(path) for path in visible}
        self._shown = [path for path in shown if not any(path.startswith(above + "/") for above in shown)]
        self._note_links(data)
        self._sockets = find_sockets(self._shown)
        self._sources: dict[str, int] = {}  # opened files and folders by path
        self._empty: dict[str, tuple[int, int]] = {}  # free space and inodes of each empty temporary folder
        self._able: list[str] = []

    def _note_links(self, path: str) -> str:
        """Remember the links in a path, so that it can be followed in the new root. Return the real path."""
        for _ in range(_MAX_LINKS):
            parts = path.split("/")
            above = ("/".join(parts[:end]) for end in range(2, len(parts) + 1))
            link = next((each for each in above if os.path.islink(each)), None)
            if link is None:
                break
            self._links[link] = os.readlink(link)
            path = os.path.normpath(os.path.join(os.path.dirname(link), self._links[link]) + path[len(link) :])
        return path

    def set_up_mounts(self, tries: bool) -> list[str]:
        """Set up mounts and limits. Return the protections that work.

        If `tries` is set, also test and return protections that can only be tested.
        """
        if _has_few_processes():
            self._able.append("few")
        # Enable the loopback interface, which is down in a new network namespace.
        with suppress(OSError), socket.socket() as any_:
            fcntl.ioctl(any_, _SIOCSIFFLAGS, struct.pack("16sH22x", b"lo", _IFF_UP))
        _LIBC.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
        prefer_in_shortage()
        with suppress(OSError):
            if _mount("none", "/", None, _REC | _PRIVATE) and self._enter_root():
                self.refresh()
                self._able.append("processes")
        drop_privileges()
        set_limit(resource.RLIMIT_NPROC, MAX_PROCESSES)
        limit_resources(self._memory, max(self._room, self._scratch), self._filter)
        return [*self._able, *(self._test_promises() if tries else ())]

    def _enter_root(self) -> bool:
        """Change to a root that contains only what the bot may read. Return whether this succeeded.

        Raises OSError if it did not.
        """
        root = self.data
        for path in (*self._shown, self.data):
            with suppress(OSError):
                self._sources[path] = os.open(path, os.O_PATH)
        if not _mount("none", root, "tmpfs", 2 | 4, "size=1m,nr_inodes=4096,mode=755"):
            return False
        for folder in (_OLD_ROOT, "/proc", *self._places):
            os.makedirs(root + folder, exist_ok=True)
        if not _mount("proc", f"{root}/proc", "proc", _SAFE):
            return False
        self._show(root, "/")
        for path in self._sockets:
            _mount("/dev/null", root + path, None, _BIND)
        _mount_own_devices(f"{root}/dev")
        if _LIBC.pivot_root(os.fsencode(root), os.fsencode(root + _OLD_ROOT)) != 0:
            return False
        os.chdir("/")
        is_read_only = _set_read_only("/", _AT_RECURSIVE, True)
        is_hidden = _mount("none", _OLD_ROOT, "tmpfs", _SAFE | _READ_ONLY, "size=4k,nr_inodes=2,mode=755")
        _set_read_only(self.data, 0, False)
        return is_read_only and is_hidden

    def _show(self, root: str, place: str) -> None:
        """Mount what the bot may read in a temporary folder, or with `/` outside of these. Raises OSError."""
        for path in sorted(self._sources):
            if self._place_of(path) == place:
                _bind_mount(root + path, self._sources[path])
        if self._place_of(self._home) == place:
            os.makedirs(root + self._home, exist_ok=True)
            _mount(root + self._home, root + self._home, None, _BIND | _REC)
            _set_read_only(root + self._home, 0, True)
        for path, target in self._links.items():
            if self._place_of(path) == place and not os.path.lexists(root + path):
                os.makedirs(os.path.dirname(root + path), exist_ok=True)
                os.symlink(target, root + path)

    def _place_of(self, path: str) -> str:
        return next((place for place in self._places if path.startswith(place + "/")), "/")

    def _test_promises(self) -> list[str]:
        """Return the protections that work for a process that is started like the bot."""
        reads, writes = os.pipe()
        if (child := os.fork()) == 0:
            with suppress(OSError):
                os.write(writes, " ".join(word for word, holds in self._list_promises() if _holds(holds)).encode())
            os._exit(0)
        os.close(writes)
        kept_promises = os.read(reads, 1000).decode().split()
        os.close(reads)
        os.waitpid(child, 0)
        return kept_promises

    def _list_promises(self) -> Iterator[tuple[str, Callable[[], bool]]]:
        others = [path for path in ("/", self._home, *self._sources) if path != self.data]
        yield (
            "files",
            lambda: (
                "processes" in self._able
                and not os.listdir(_OLD_ROOT)
                and not any(os.access(path, os.W_OK) for path in others)
            ),
        )
        yield "scratch", lambda: all(os.statvfs(path).f_blocks < 2 * self._scratch // 4096 for path in self._places)
        yield "core", stays_on_core
        yield "loopback", _has_loopback

    def refresh(self) -> None:
        """Empty the temporary folders. Raises OSError."""
        for place in self._places:
            if place in self._empty:
                if self._empty[place] == _free_space(place):
                    continue
                _LIBC.umount2(os.fsencode(place), _DETACH)
            if _mount("none", place, "tmpfs", 2 | 4, f"size={self._scratch},nr_inodes={MAX_FILES},mode=1777"):
                self._show("", place)
                if self.data.startswith(place + "/"):
                    _set_read_only(self.data, 0, False)
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
            environment["TMPDIR"] = self._places[0]
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
    """Mount an opened file or folder at a path, which is created unless it exists. Raises OSError."""
    if not os.path.lexists(path):
        if stat.S_ISDIR(os.fstat(file).st_mode):
            os.makedirs(path)
        else:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            os.close(os.open(path, os.O_CREAT))
    if not _mount(f"/proc/self/fd/{file}", path, None, _BIND | _REC):
        raise OSError(errno.EPERM, "", path)


def stays_on_core() -> bool:
    """Return whether this process cannot change its core."""
    try:
        os.sched_setaffinity(0, os.sched_getaffinity(0))
    except OSError as error:
        return error.errno in (errno.EPERM, errno.EACCES, errno.EROFS)
    return False


def _holds(promise: Callable[[], bool]) -> bool:
    with suppress(OSError):
        return promise()
    return False


def _mount_own_devices(folder: str) -> None:
    """Create a folder of devices that contains only the few that programs need."""
    os.makedirs(folder, exist_ok=True)
    if _mount("none", folder, "tmpfs", 2 | 8, "size=64k,nr_inodes=64,mode=755"):
        for name in filter(lambda name: os.path.exists(f"/dev/{name}"), _DEVICES):
            os.close(os.open(f"{folder}/{name}", os.O_CREAT))
            _mount(f"/dev/{name}", f"{folder}/{name}", None, _BIND)
        for name, to in (("fd", ""), ("stdin", "/0"), ("stdout", "/1"), ("stderr", "/2")):
            os.symlink(f"/proc/self/fd{to}", f"{folder}/{name}")
        os.mkdir(f"{folder}/shm")
        os.mkdir(f"{folder}/pts")
        os.symlink("pts/ptmx", f"{folder}/ptmx")
        _mount("devpts", f"{folder}/pts", "devpts", 2 | 8, "newinstance,ptmxmode=0666,mode=620")


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
    with suppress(OSError), open("/proc/sys/kernel/pid_max", "w", encoding="utf-8") as limit:
        limit.write(str(MAX_PROCESSES))
        return True
    return os.getuid() != 0


def _resident(pid: str) -> int:
    with suppress(OSError, IndexError), open(f"/proc/{pid}/statm", encoding="utf-8") as file:
        return int(file.read().split()[1]) * resource.getpagesize()
    return 0


def _share(pid: str) -> int:
    with suppress(OSError), open(f"/proc/{pid}/smaps_rollup", encoding="utf-8") as file:
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


def prefer_in_shortage() -> None:
    """Let the system end this process and its children before others if memory runs out."""
    with suppress(OSError), open("/proc/self/oom_score_adj", "w", encoding="utf-8") as score:
        score.write("1000")


def drop_privileges() -> None:
    """Give up root's privileges, from the next program on that this process or a child starts."""
    _LIBC.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    for capability in range(_CAPABILITIES):
        _LIBC.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0)


def limit_resources(memory: int, file: int, filter_: bytes | None) -> None:
    """Limit the memory, file size and system calls of this process and its children.

    Address space is limited less than memory, because Node.js and Java reserve much more than they use.
    """
    set_limit(resource.RLIMIT_CORE, 0)
    set_limit(resource.RLIMIT_DATA, memory)
    set_limit(resource.RLIMIT_AS, memory + _RESERVED)
    set_limit(resource.RLIMIT_FSIZE, file)
    if filter_ is not None:
        code = ctypes.create_string_buffer(filter_)
        program = struct.pack("HxxxxxxP", len(filter_) // 8, ctypes.addressof(code))
        _LIBC.prctl(_PR_SET_SECCOMP, 2, program, 0, 0)


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
    tries, network = settings.pop("tries"), settings.pop("network")
    world = World(**settings, command=command)
    if not enter_namespaces(network):
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
