"""The system calls that programs cannot make, as a seccomp filter.

In namespaces, these are calls whose work or memory is not charged to a process, whose effects outlive it, or with which
it could leave its core or harm its keeper. Elsewhere, calls that reach other processes or the network are refused too.
"""

import errno
import os
import socket
import struct
import sys
from collections.abc import Mapping
from typing import Final

# Numbers of calls on x86-64, and on arm64 and riscv64. -1 if the call does not exist.
_NUMBERS: Final = {
    "add_key": (248, 217),
    "bpf": (321, 280),
    "chmod": (90, -1),
    "chown": (92, -1),
    "clone": (56, 220),
    "clone3": (435, 435),
    "fchmodat": (268, 53),
    "fchmodat2": (452, 452),
    "fchownat": (260, 54),
    "file_setattr": (469, 469),
    "futimesat": (261, -1),
    "io_uring_setup": (425, 425),
    "ioprio_set": (251, 30),
    "kcmp": (312, 272),
    "keyctl": (250, 219),
    "kill": (62, 129),
    "lchown": (94, -1),
    "lremovexattr": (198, 15),
    "lsetxattr": (189, 6),
    "memfd_create": (319, 279),
    "memfd_secret": (447, 447),
    "migrate_pages": (256, 238),
    "move_pages": (279, 239),
    "mq_open": (240, 180),
    "msgget": (68, 186),
    "open_by_handle_at": (304, 265),
    "perf_event_open": (298, 241),
    "pidfd_getfd": (438, 438),
    "pidfd_send_signal": (424, 424),
    "prctl": (157, 167),
    "prlimit64": (302, 261),
    "process_madvise": (440, 440),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "ptrace": (101, 117),
    "removexattr": (197, 14),
    "removexattrat": (466, 466),
    "request_key": (249, 218),
    "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240),
    "sched_setaffinity": (203, 122),
    "sched_setattr": (314, 274),
    "sched_setparam": (142, 118),
    "sched_setscheduler": (144, 119),
    "semget": (64, 190),
    "setpriority": (141, 140),
    "setxattr": (188, 5),
    "setxattrat": (463, 463),
    "shmget": (29, 194),
    "socket": (41, 198),
    "socketpair": (53, 199),
    "tgkill": (234, 131),
    "tkill": (200, 130),
    "unshare": (272, 97),
    "userfaultfd": (323, 282),
    "utime": (132, -1),
    "utimensat": (280, 88),
    "utimes": (235, -1),
}
_MACHINES: Final = {"x86_64": (0xC000003E, 0), "aarch64": (0xC00000B7, 1), "riscv64": (0xC00000F3, 1)}
# As if the system did not have these calls. Libraries then do without; the flags of clone3 cannot be inspected.
_ABSENT: Final = (
    *("io_uring_setup", "memfd_create", "memfd_secret", "clone3", "shmget", "semget", "msgget", "mq_open"),
    *("add_key", "request_key", "keyctl", "bpf", "userfaultfd"),
)
_FORBIDDEN: Final = (
    *("ptrace", "process_vm_readv", "process_vm_writev", "pidfd_getfd", "kcmp", "perf_event_open"),
    *("process_madvise", "move_pages", "migrate_pages", "open_by_handle_at"),
)
# Landlock does not cover these changes of files.
_CHANGES: Final = (
    *("chmod", "fchmodat", "fchmodat2", "chown", "lchown", "fchownat", "setxattr", "lsetxattr", "setxattrat"),
    *("removexattr", "lremovexattr", "removexattrat", "file_setattr", "utime", "utimes", "futimesat"),
)
# Calls that name a process in their first argument, or in the second: limits, priorities, and signals.
_LIMITS: Final = {"prlimit64": 0, "sched_setscheduler": 0, "sched_setparam": 0, "sched_setattr": 0, "setpriority": 1}
_SIGNALS: Final = ("kill", "tgkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo")
_NEW_USER_NAMESPACE: Final = 0x10000000
_SET_DUMPABLE: Final = 4
_NETLINK: Final = 16  # needed to list interfaces
_UNIX: Final = 1  # Python for Windows has no name for it
_FAMILIES: Final = (_UNIX, socket.AF_INET, socket.AF_INET6, _NETLINK)
_DATAGRAM: Final = 2  # the bit of socket types that send to an address
_FIRST_X32: Final = 0x40000000

_LOAD, _EQUAL, _AT_LEAST, _ANY_OF, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _KILL, _FAIL = 0x7FFF0000, 0x80000000, 0x50000
_Line = tuple[int, int, int, int]


def build_filter(own: int | None = None, *, network: bool = True, signals: bool = True) -> bytes | None:
    """Return the filter, or None on an unknown machine.

    Args:
        own: The process that becomes the program, or None if the program has its own namespace of processes.
        network: Whether it may open sockets. Without a namespace these reach the machine and the network.
        signals: Whether it may send signals. Without a namespace, it can then send them to itself only.
    """
    if os.uname().machine not in _MACHINES or sys.maxsize < 1 << 32:
        return None
    machine, column = _MACHINES[os.uname().machine]
    call = {name: numbers[column] for name, numbers in _NUMBERS.items()}
    code = [(_LOAD, 0, 0, 4), (_EQUAL, 1, 0, machine), (_RETURN, 0, 0, _KILL), (_LOAD, 0, 0, 0)]
    code += [(_AT_LEAST, 0, 1, _FIRST_X32), (_RETURN, 0, 0, _FAIL | errno.ENOSYS)]
    for name in _ABSENT:
        code += _refuse(call[name], errno.ENOSYS)
    for name in _FORBIDDEN:
        code += _refuse(call[name], errno.EPERM)
    for name in ("clone", "unshare"):
        code += _test(call[name], 0, [(_ANY_OF, _NEW_USER_NAMESPACE)], errno.EPERM, refuses=True)
    if network:
        code += _test(call["socket"], 0, [(_EQUAL, family) for family in _FAMILIES], errno.EAFNOSUPPORT)
    else:
        code += _refuse(call["socket"], errno.EAFNOSUPPORT)
        code += _test(call["socketpair"], 1, [(_ANY_OF, _DATAGRAM)], errno.EAFNOSUPPORT, refuses=True)
    if own is not None:
        code += _protect_processes(call, own, signals)
    else:
        # Refuse changes of process 1. Only its core may be set: it lends that to what it starts.
        code += _test(call["sched_setaffinity"], 0, [(_EQUAL, 1)], errno.EPERM)
        for name, place in _LIMITS.items():
            code += _test(call[name], place, [(_EQUAL, 1)], errno.EPERM, refuses=True)
    return b"".join(struct.pack("HBBI", *line) for line in [*code, (_RETURN, 0, 0, _ALLOW)])


def _protect_processes(call: Mapping[str, int], own: int, signals: bool) -> list[_Line]:
    """Refuse changes of other processes, and changes of files that Landlock does not cover."""
    code, itself = list[_Line](), [(_EQUAL, 0), (_EQUAL, own)]
    for name in (*_CHANGES, "sched_setaffinity"):
        code += _refuse(call[name], errno.EPERM)
    for name, place in {**_LIMITS, "ioprio_set": 1}.items():
        code += _test(call[name], place, itself, errno.EPERM)
    code += _test(call["prctl"], 0, [(_EQUAL, _SET_DUMPABLE)], errno.EPERM, refuses=True)
    # Times of files that it has opened, which are those without a path: both halves of the pointer are 0.
    code += [(_EQUAL, 0, 6, call["utimensat"]), (_LOAD, 0, 0, 24), (_EQUAL, 0, 2, 0), (_LOAD, 0, 0, 28)]
    code += [(_EQUAL, 1, 0, 0), (_RETURN, 0, 0, _FAIL | errno.EPERM), (_RETURN, 0, 0, _ALLOW)]
    if not signals:
        code += [*_refuse(call["pidfd_send_signal"], errno.EPERM), *_refuse(call["tkill"], errno.EPERM)]
        for name in _SIGNALS:
            code += _test(call[name], 0, itself, errno.EPERM)
    return code


def _refuse(call: int, error: int) -> list[_Line]:
    return [(_EQUAL, 0, 1, call), (_RETURN, 0, 0, _FAIL | error)] if call >= 0 else []


def _test(call: int, argument: int, cases: list[tuple[int, int]], error: int, *, refuses: bool = False) -> list[_Line]:
    """Allow a call only if its argument meets one of these cases or, with `refuses`, only if it meets none."""
    refuse = (_RETURN, 0, 0, _FAIL | error)
    allow = (_RETURN, 0, 0, _ALLOW)
    tests = [(kind, len(cases) - number, 0, value) for number, (kind, value) in enumerate(cases)]
    first, second = (allow, refuse) if refuses else (refuse, allow)
    return [(_EQUAL, 0, 3 + len(cases), call), (_LOAD, 0, 0, 16 + 8 * argument), *tests, first, second]
