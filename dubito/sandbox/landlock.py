"""Landlock: Linux refuses a process all files except some, where namespaces are not available.

The harness prepares the rules and the new process applies them to itself before it becomes the program. Landlock does
not cover connections to sockets and changes of a file's mode, which the system call filter refuses.
"""

import ctypes
import os
import struct
from collections.abc import Iterable
from contextlib import suppress
from typing import Final

_CREATE, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446  # the same numbers on all machines
_PATH_BENEATH: Final = 1
_MIN_VERSION: Final = 3  # earlier ones do not keep a program from emptying files that it can only read
_SIGNAL_VERSION: Final = 6  # since which signals to other processes can be refused
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR, _TRUNCATE, _IOCTL = 1, 2, 4, 8, 1 << 14, 1 << 15
_READ: Final = _EXECUTE | _READ_FILE | _READ_DIR
_ON_FILES: Final = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL
_RIGHTS: Final = {3: (1 << 15) - 1, 5: (1 << 16) - 1}  # all rights, by the version that introduced the last one
_SCOPES: Final = 3  # abstract sockets and signals
_DEVICES: Final = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
# Contents that are the same for all processes.
_MACHINE: Final = (
    *("/proc/cpuinfo", "/proc/meminfo", "/proc/stat", "/proc/filesystems", "/proc/version", "/proc/loadavg"),
    *("/proc/uptime", "/proc/sys/kernel", "/proc/sys/vm"),
)
_LIBC = ctypes.CDLL(None, use_errno=True)


def _call(number: int, *arguments: object) -> int:
    return int(_LIBC.syscall(number, *arguments))


def _version() -> int:
    return _call(_CREATE, None, ctypes.c_size_t(0), 1)


def is_supported() -> bool:
    return _version() >= _MIN_VERSION


def scopes_signals() -> bool:
    return _version() >= _SIGNAL_VERSION


class Rules:
    """The files that a program can read and change."""

    def __init__(self, visible: Iterable[str], writable: Iterable[str]) -> None:
        """Prepare the rules in the harness. Raises OSError."""
        version = _version()
        self._rights = _RIGHTS[max(known for known in _RIGHTS if known <= version)]
        attributes = (
            struct.pack("QQQ", self._rights, 0, _SCOPES) if scopes_signals() else struct.pack("Q", self._rights)
        )
        self.file = _call(_CREATE, attributes, ctypes.c_size_t(len(attributes)), 0)
        if self.file < 0:
            raise OSError(ctypes.get_errno(), "Landlock is not available")
        for path in (*visible, *_MACHINE):
            self._allow(path, _READ)
        for path in _DEVICES:
            self._allow(path, _READ_FILE | _WRITE_FILE)
        for path in writable:
            self._allow(path, self._rights)

    def _allow(self, path: str, rights: int) -> None:
        with suppress(OSError):
            opened = os.open(path, os.O_PATH | os.O_CLOEXEC)
            try:
                possible = self._rights if os.path.isdir(path) else self._rights & _ON_FILES
                rule = struct.pack("=Qi", rights & possible, opened)
                _call(_ADD_RULE, self.file, _PATH_BENEATH, rule, 0)
            finally:
                os.close(opened)

    def apply(self) -> None:
        """Restrict this process, which has no new privileges from now on. Raises OSError."""
        self._allow(f"/proc/{os.getpid()}", _READ)
        if _call(_RESTRICT_SELF, self.file, 0) != 0:
            raise OSError(ctypes.get_errno(), "Landlock refused the rules")

    def close(self) -> None:
        os.close(self.file)
