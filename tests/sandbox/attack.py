"""A hostile program: it tries to leave its sandbox in many ways, and reports each way that worked.

    python attack.py FACTS        FACTS: what it attacks, as a JSON file

It prints `{"way": "succeeded" or the reason why not}` to its standard error. The facts are paths of files that hold a
word, process numbers, and addresses. Only the standard library is used, so that any Python can run it.
"""

import ctypes
import errno
import json
import mmap
import os
import resource
import select
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

WAYS: dict[str, Callable[[], object]] = {}
FACTS: dict[str, Any] = {}
LIBC = ctypes.CDLL(None, use_errno=True)
# Numbers of system calls on x86-64.
NUMBERS = {
    "ptrace": 101, "process_vm_readv": 310, "process_vm_writev": 311, "pidfd_open": 434, "pidfd_getfd": 438,
    "kcmp": 312, "perf_event_open": 298, "bpf": 321, "userfaultfd": 323, "keyctl": 250,
    "add_key": 248, "memfd_create": 319, "memfd_secret": 447, "io_uring_setup": 425, "shmget": 29, "semget": 64,
    "msgget": 68, "mq_open": 240, "open_by_handle_at": 304,
    "move_pages": 279, "setns": 308, "unshare": 272, "mount": 165, "umount2": 166,
    "chroot": 161, "clone3": 435, "tgkill": 234, "tkill": 200,
    "rt_sigqueueinfo": 129, "prlimit64": 302, "sched_setscheduler": 144, "setpriority": 141, "swapoff": 168,
    "init_module": 175, "sethostname": 170,
    "open_tree": 428, "fsopen": 430, "mount_setattr": 442, "fanotify_init": 300, "syslog": 103,
    "iopl": 172,
}  # fmt: skip


def is_privileged() -> bool:
    """Return whether this process has privileges of root. Then it does not try what could harm the whole machine."""
    return "CapEff:\t0000000000000000" not in Path("/proc/self/status").read_text()


def way(function: Callable[[], bool]) -> Callable[[], bool]:
    WAYS[function.__name__] = function
    return function


def call(name: str, *arguments: object) -> int:
    result = int(LIBC.syscall(NUMBERS[name], *arguments))
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def word_in(path: str) -> bool:
    return bool(FACTS["word"].encode() in Path(path).read_bytes())


def find_names(path: str) -> bool:
    return not {"config.yaml", ".ssh", "other"}.isdisjoint(os.listdir(path))


def add_file_ways() -> None:
    for name, path in FACTS["files"].items():
        WAYS[f"read {name}"] = partial(word_in, path)
        WAYS[f"write {name}"] = partial(os.open, path, os.O_WRONLY | os.O_APPEND)
        WAYS[f"empty {name}"] = partial(os.open, path, os.O_RDONLY | os.O_TRUNC)
    for name, path in FACTS["folders"].items():
        WAYS[f"list {name}"] = partial(find_names, path)
        WAYS[f"create a file in {name}"] = partial(os.open, f"{path}/planted", os.O_CREAT | os.O_EXCL)


@way
def change_mode_of_profile() -> bool:
    os.chmod(FACTS["target"], 0o777)
    return True


@way
def change_times_of_profile() -> bool:
    os.utime(FACTS["target"], (1, 1))
    return True


@way
def truncate_profile_by_path() -> bool:
    os.truncate(FACTS["target"], 0)
    return True


@way
def rename_profile() -> bool:
    os.rename(FACTS["target"], FACTS["target"] + "2")
    return True


@way
def link_key_into_data() -> bool:
    os.link(FACTS["files"]["an SSH key"], os.path.join(os.environ["DUBITO_DATA"], "key"))
    return True


@way
def read_key_through_symlink() -> bool:
    path = os.path.join(os.environ["DUBITO_DATA"], "link")
    os.symlink(FACTS["files"]["an SSH key"], path)
    return word_in(path)


@way
def read_key_through_root_of_process() -> bool:
    return word_in("/proc/self/root" + FACTS["files"]["an SSH key"])


@way
def read_key_through_root_of_process_1() -> bool:
    return word_in("/proc/1/root" + FACTS["files"]["an SSH key"])


@way
def read_key_through_files_of_process_1() -> bool:
    for number in os.listdir("/proc/1/fd"):
        path = f"/proc/1/fd/{number}{FACTS['files']['an SSH key']}"
        if os.path.exists(path):
            return True
    return False


@way
def read_key_through_old_root() -> bool:
    return word_in("/.old" + FACTS["files"]["an SSH key"])


@way
def run_copy_of_secret_program() -> bool:
    return subprocess.run(["/bin/cat", FACTS["files"]["an SSH key"]], capture_output=True, check=False).stdout != b""


@way
def read_own_environment_for_secrets() -> bool:
    return FACTS["word"] in json.dumps(dict(os.environ))


def read_part(pid: int, part: str) -> bool:
    with open(f"/proc/{pid}/{part}", "rb") as file:
        content = file.read(1 << 20) if part != "mem" else b"x"
    return FACTS["word"].encode() in content if part in ("environ", "cmdline") else bool(content)


def signal_process(pid: int, number: int) -> bool:
    os.kill(pid, number)
    return True


def signal_by_file(pid: int) -> bool:
    signal.pidfd_send_signal(os.pidfd_open(pid), 28)
    return True


def queue_signal(pid: int) -> bool:
    return call("rt_sigqueueinfo", pid, 28, struct.pack("iii116x", 28, 0, -1)) == 0


def move(pid: int) -> bool:
    os.sched_setaffinity(pid, {0})
    return True


def seize(pid: int) -> bool:
    if call("ptrace", 0x4206, pid, 0, 0) == 0:
        call("ptrace", 17, pid, 0, 0)
        return True
    return False


def copy_memory(pid: int, name: str) -> bool:
    address = FACTS.get("address", 0x400000)
    content = ctypes.create_string_buffer(16)
    here, there = struct.pack("PN", ctypes.addressof(content), 16), struct.pack("PN", address, 16)
    try:
        return call(name, pid, here, 1, there, 1, 0) > 0
    except OSError as error:
        if error.errno == errno.EFAULT:  # permitted, at an address that is not mapped
            return True
        raise


def lower_limits(pid: int) -> bool:
    old = struct.pack("QQ", 1 << 20, 1 << 20)
    return call("prlimit64", pid, 7, old if FACTS.get("harm") else None, ctypes.create_string_buffer(16)) == 0


OF_PROCESS: dict[str, Callable[[int], object]] = {
    "list files of PROCESS": lambda pid: bool(os.listdir(f"/proc/{pid}/fd")),
    "read a file of PROCESS through /proc/PID/cwd": lambda pid: bool(os.listdir(f"/proc/{pid}/cwd")),
    "signal 0 to PROCESS": lambda pid: signal_process(pid, 0),
    "SIGWINCH by kill to PROCESS": lambda pid: signal_process(pid, signal.SIGWINCH),
    "SIGWINCH by tgkill to PROCESS": lambda pid: call("tgkill", pid, pid, 28) == 0,
    "SIGWINCH by tkill to PROCESS": lambda pid: call("tkill", pid, 28) == 0,
    "SIGWINCH by pidfd to PROCESS": lambda pid: signal_by_file(pid),
    "queue a signal to PROCESS": lambda pid: queue_signal(pid),
    "stop PROCESS with ptrace": lambda pid: seize(pid),
    "read the memory of PROCESS": lambda pid: copy_memory(pid, "process_vm_readv"),
    "write the memory of PROCESS": lambda pid: copy_memory(pid, "process_vm_writev"),
    "take a file of PROCESS": lambda pid: call("pidfd_getfd", call("pidfd_open", pid, 0), 0, 0) >= 0,
    "compare files with PROCESS": lambda pid: call("kcmp", pid, os.getpid(), 1, 0, 0) >= 0,
    "lower the limits of PROCESS": lambda pid: lower_limits(pid),
    "lower the priority of PROCESS": lambda pid: call("setpriority", 0, pid, 1) == 0,
    "move PROCESS to one core": lambda pid: move(pid),
    "make PROCESS idle": lambda pid: call("sched_setscheduler", pid, 5, struct.pack("i", 0)) == 0,
    "enter the namespaces of PROCESS": lambda pid: call("setns", call("pidfd_open", pid, 0), 0x20000) == 0,
}


def add_process_ways() -> None:
    for name, pid in FACTS["processes"].items():
        for part in ("environ", "cmdline", "maps", "mem", "auxv", "stack", "syscall"):
            WAYS[f"read /proc/PID/{part} of {name}"] = partial(read_part, pid, part)
        for what, function in OF_PROCESS.items():
            WAYS[what.replace("PROCESS", name)] = partial(function, pid)


@way
def connect_to_server_on_machine() -> bool:
    socket.create_connection(("127.0.0.1", FACTS["port"]), 2).close()
    return True


@way
def connect_over_ipv6() -> bool:
    socket.create_connection(("::1", FACTS["port6"]), 2).close()
    return True


@way
def send_datagram_to_server() -> bool:
    server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    server.connect(("192.0.2.1", 9))
    return server.send(b"x") == 1


@way
def connect_to_socket_in_working_directory() -> bool:
    socket.socket(socket.AF_UNIX).connect(FACTS["socket"])
    return True


@way
def connect_to_abstract_socket() -> bool:
    socket.socket(socket.AF_UNIX).connect("\0" + FACTS["abstract"])
    return True


@way
def send_to_datagram_socket_from_a_pair() -> bool:
    one, _ = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    one.sendto(b"x", FACTS["datagram"])
    return True


@way
def open_raw_socket() -> bool:
    return bool(socket.socket(socket.AF_INET, socket.SOCK_RAW, 1).sendto(b"x" * 16, ("127.0.0.1", 0)))


@way
def open_packet_socket() -> bool:
    return bool(socket.socket(socket.AF_PACKET, socket.SOCK_RAW))


@way
def open_socket_to_host_of_virtual_machine() -> bool:
    return bool(socket.socket(40, socket.SOCK_STREAM))


@way
def open_socket_of_kernel_crypto() -> bool:
    return bool(socket.socket(38, socket.SOCK_SEQPACKET))


@way
def look_up_a_name() -> bool:
    return bool(socket.getaddrinfo(FACTS["hostname"], 80)) and FACTS["hostname"] != "localhost"


def add_call_ways() -> None:
    zero = ctypes.create_string_buffer(256)
    tries: dict[str, tuple[Any, ...]] = {
        "use io_uring": ("io_uring_setup", 4, zero),
        "allocate memory without a process": ("memfd_create", b"x", 0),
        "allocate secret memory": ("memfd_secret", 0),
        "share System V memory": ("shmget", 4242, 4096, 0o1666),
        "share System V semaphores": ("semget", 4242, 1, 0o1666),
        "share a System V queue": ("msgget", 4242, 0o1666),
        "share a POSIX queue": ("mq_open", b"dubito-attack", 0o102, 0o600, None),
        "store a key in the kernel": ("add_key", b"user", b"dubito", b"x", 1, -4),
        "read the keys of the user in the kernel": ("keyctl", 0, -4, 1),
        "load a BPF program": ("bpf", 5, zero, 128),
        "measure all processes": ("perf_event_open", struct.pack("IIQQQQQ", 1, 112, 0, 0, 0, 0, 0), -1, 0, -1, 0),
        "create a user namespace": ("unshare", 0x10000000),
        "create a mount namespace": ("unshare", 0x20000),
        "mount a file system": ("mount", b"none", os.environ["DUBITO_DATA"].encode(), b"tmpfs", 0, None),
        "unmount a folder": ("umount2", b"/proc", 2),
        "change the root": ("chroot", os.environ["DUBITO_DATA"].encode()),
        "use the new mount calls": ("fsopen", b"tmpfs", 0),
        "make the root writable": ("mount_setattr", -100, b"/", 0x8000, struct.pack("QQQQ", 0, 1, 0, 0), 32),
        "clone a mount": ("open_tree", -100, b"/", 1 | 0x8000),
        "use clone3": ("clone3", zero, 0),
        "handle page faults": ("userfaultfd", 1),
        "watch all files": ("fanotify_init", 0, 0),
        "read the kernel log": ("syslog", 3, zero, 200),
        "change the host name": ("sethostname", b"owned", 5),
        "use ports of the machine": ("iopl", 3),
        "load a kernel module": ("init_module", zero, 10, b""),
        "switch off swap": ("swapoff", b"/nowhere"),
        "open a file by its handle": ("open_by_handle_at", -100, struct.pack("Ii", 8, 1) + bytes(8), 0),
        "move pages of the parent": ("move_pages", FACTS["processes"].get("the harness", 1), 0, None, None, None, 0),
    }
    for name, arguments in tries.items():
        WAYS[name] = partial(use_call, *arguments)


def use_call(name: str, *arguments: object) -> bool:
    if is_privileged():
        return True
    try:
        return call(name, *arguments) >= 0
    except OSError as error:
        # The privilege was there, and only the made-up arguments were wrong.
        if name == "swapoff" and error.errno == errno.ENOENT:
            return True
        raise


@way
def leave_the_core() -> bool:
    os.sched_setaffinity(0, range(os.cpu_count() or 1))
    return len(os.sched_getaffinity(0)) > 1 or os.cpu_count() == 1


@way
def raise_own_limits() -> bool:
    resource.setrlimit(resource.RLIMIT_DATA, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    return True


@way
def take_all_memory_in_one_process() -> bool:
    pages = mmap.mmap(-1, FACTS["memory"], flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    return pages.size() > 0


@way
def become_root() -> bool:
    os.setuid(0)
    return is_privileged()


@way
def run_sudo() -> bool:
    return subprocess.run(["/usr/bin/sudo", "-n", "id"], capture_output=True, check=False).returncode == 0


@way
def write_kernel_setting() -> bool:
    # Nothing is written, since it would change the machine.
    os.close(os.open("/proc/sys/kernel/core_pattern", os.O_WRONLY))
    return True


@way
def type_into_terminal() -> bool:
    import fcntl
    import termios

    with open("/dev/tty", "w") as terminal:
        fcntl.ioctl(terminal, termios.TIOCSTI, b"x")
    return True


@way
def hide_from_the_warden() -> bool:
    LIBC.prctl(4, 0, 0, 0, 0)
    return LIBC.prctl(3, 0, 0, 0, 0) == 0 and not FACTS["contained"]


@way
def read_other_processes_list() -> bool:
    names = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with suppress(OSError):
            names.append(Path(f"/proc/{pid}/cmdline").read_text())
    return len(names) > 8


@way
def write_to_shared_memory_folder() -> bool:
    path = Path("/dev/shm", FACTS["word"])
    path.touch(exist_ok=False)
    path.unlink()
    return not FACTS["contained"]


@way
def write_to_shared_temporary_folder() -> bool:
    path = Path("/tmp", FACTS["word"])
    path.touch(exist_ok=False)
    path.unlink()
    return not FACTS["contained"]


@way
def find_leftover_of_another_game() -> bool:
    return os.path.exists(os.path.join(os.environ["DUBITO_DATA"], "leftover"))


def main() -> None:
    add_file_ways()
    add_process_ways()
    add_call_ways()
    found = dict[str, str]()
    for name, function in WAYS.items():
        reads, writes = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                result = "nothing found" if function() is False else "succeeded"
            except OSError as error:
                result = errno.errorcode.get(error.errno or 0, str(error))
            except BaseException as error:
                result = type(error).__name__
            os.write(writes, result.encode())
            os._exit(0)
        os.close(writes)
        ready = select.select([reads], [], [], 10)[0]
        found[name.replace("_", " ")] = (os.read(reads, 200).decode() if ready else "no answer") or "killed"
        os.close(reads)
        with suppress(OSError):
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
    print(json.dumps(found), file=sys.stderr, flush=True)
    time.sleep(0.2)


if __name__ == "__main__":
    FACTS.update(json.loads(Path(sys.argv[1]).read_text()))
    main()
