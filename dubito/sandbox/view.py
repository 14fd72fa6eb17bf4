"""Which paths a program can read: its own files, its interpreter, the system's libraries and what its player grants.

The same list is used for both mechanisms: the keeper mounts only these paths, and Landlock allows only these. A granted
folder never opens a folder that must stay hidden: if it contains one, its other entries are granted one by one.
"""

import os
import re
import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from glob import escape, glob
from os.path import realpath
from pathlib import Path
from typing import Final

_SYSTEM: Final = (
    *("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/nix/store", "/gnu/store"),
    *("/home/linuxbrew/.linuxbrew", "/run/current-system", "/sys/devices/system", "/sys/fs/cgroup", "/sys/kernel/mm"),
)
# Of /etc, only what libraries and interpreters read. Other files there can contain secrets.
_SETTINGS: Final = (
    *("ld.so.*", "alternatives", "localtime", "timezone", "passwd", "group", "nsswitch.conf", "hosts", "host.conf"),
    *("resolv.conf", "gai.conf", "protocols", "services", "mime.types", "os-release", "lsb-release", "debian_version"),
    *("ssl/certs", "ssl/openssl.cnf", "pki/tls/certs", "ca-certificates*", "crypto-policies", "java*", "python*"),
    *("perl", "php*", "R", "fonts", "terminfo", "locale*", "static/localtime", "static/passwd"),
)
# Folders of version managers, whose parts refer to each other.
_MANAGERS: Final = (".asdf", ".jenv", ".nodenv", ".nvm", ".pyenv", ".rbenv", ".sdkman", ".volta", "mise")
# An interpreter's prefix contains one of these.
_LIBRARIES: Final = (
    *("lib/python3*/os.py", "lib/pypy3*/os.py", "lib64/python3*/os.py", "lib/node_modules", "include/node"),
    *("lib/modules", "lib/ruby", "lib/perl5", "lib/R", "share/julia", "share/lua", "lib/lua", "conda-meta"),
)
_SHELLS: Final = re.compile(r"(ba|da|k|z|a)?sh")
_STARTED_BY_SHELLS: Final = ("python3", "python", "node", "java", "ruby", "perl")
MAX_SHEBANG_BYTES: Final = 256


def read_shebang(path: str | Path) -> list[str]:
    """Return the words of a script's first line if it names an interpreter. `env` and its flags are left out."""
    with suppress(OSError), open(path, "rb") as file:
        first = file.read(MAX_SHEBANG_BYTES).partition(b"\n")[0]
        if first.startswith(b"#!"):
            words = first[2:].decode("utf-8", "backslashreplace").split()
            is_env = bool(words) and os.path.basename(words[0]) == "env"
            return [word for word in words[1:] if not word.startswith("-")] if is_env else words
    return []


def visible_paths(
    command: Sequence[str], home: Path, owns_home: bool, reads: Sequence[Path], hidden: Iterable[Path]
) -> list[str]:
    """Return the files and folders that a program can read, without those inside others.

    Args:
        command: Its words.
        home: The folder in which it starts.
        owns_home: Whether this folder belongs to the program. Otherwise, only files and folders in its command are
            visible, and the folders of these files below `home`.
        reads: Paths that the user grants.
        hidden: Folders and files that it must not see, such as runs.
    """
    private = {realpath(path) for path in (Path.home(), Path.cwd(), *hidden, *(() if owns_home else (home,)))}
    of_reads = [each for path in reads for each in _libraries(os.path.join(path, "bin", "python"))]
    granted = [*reads, *([home] if owns_home else _own_paths(command, home, private))]
    tools = [path for path in (*_tool_paths(command, home), *of_reads) if not _opens(path, private)]
    system = [*_SYSTEM, *(path for name in _SETTINGS for path in glob(f"/etc/{name}"))]
    # What the user grants may lie in a private folder. It still does not open a private folder inside it.
    found = {path for each in (*granted, *tools, *system) for path in _leave_out(os.path.abspath(each), private)}
    return [path for path in sorted(found) if not any(above in found for above in map(str, Path(path).parents))]


def private_grants(paths: Iterable[str]) -> list[str]:
    """Return the visible paths that are not part of the system."""
    system = [*_SYSTEM, "/etc"]
    return [path for path in paths if not any(Path(path).is_relative_to(place) for place in system)]


def _opens(path: str, private: Iterable[str]) -> bool:
    """Return whether a path is a private one, or contains one."""
    return any(Path(one).is_relative_to(realpath(path)) for one in private)


def _leave_out(path: str, private: set[str]) -> Iterator[str]:
    """Yield a path or, if private paths are inside it, its other entries."""
    if not os.path.lexists(path):
        return
    inside = {one for one in private if one != realpath(path) and Path(one).is_relative_to(realpath(path))}
    if not inside:
        yield path
        return
    with suppress(OSError):
        for name in os.listdir(path):
            entry = os.path.join(path, name)
            if realpath(entry) not in private:
                yield from _leave_out(entry, private)


def _own_paths(command: Sequence[str], home: Path, private: set[str]) -> Iterator[str | Path]:
    """Yield the paths in a command, and the folders below `home` that contain these files."""
    for word in _paths_in(command):
        path = home / word
        if path.is_file():
            yield path
            folder = path.parent
            if Path(realpath(folder)).is_relative_to(realpath(home)) and realpath(folder) not in private:
                yield folder
        elif path.is_dir() and not _opens(str(path), private):
            yield path


def _paths_in(command: Sequence[str]) -> Iterator[str]:
    """Yield what could be paths in a command: words, values of options, and parts of lists such as a class path."""
    for before, word in zip(("", *command), command, strict=False):
        for value in (word, word.partition("=")[2]):
            yield from filter(None, value.split(os.pathsep))
        if before == "-m":
            yield word.replace(".", "/")
            yield f"{word.replace('.', '/')}.py"


def _tool_paths(command: Sequence[str], home: Path) -> Iterator[str]:
    """Yield the interpreters of a command, with their libraries and packages."""
    to_visit, seen = [command[0]], set[str]()
    to_visit += [words[0] for word in command if (home / word).is_file() and (words := read_shebang(home / word))]
    while to_visit:
        word = to_visit.pop()
        found = os.path.join(home, word) if "/" in word else shutil.which(word)
        if found is None or found in seen:
            continue
        seen.add(found)
        chain = _follow_links(os.path.abspath(found))
        yield from chain
        for path in chain:
            yield from _libraries(path)
        to_visit += read_shebang(chain[-1])[:1]
        if any(_SHELLS.fullmatch(os.path.basename(path)) for path in chain):
            to_visit += (*_STARTED_BY_SHELLS, sys.executable)
        if os.path.basename(found).startswith("python"):
            yield from glob(os.path.expanduser("~/.local/lib/python3*/site-packages"))
        if os.path.basename(found) == "node":
            above = [folder for word in command if (home / word).is_file() for folder in (home / word).parents]
            yield from (str(folder / name) for folder in above for name in ("node_modules", "package.json"))
        if os.path.basename(found) == "dubito":
            package = Path(__file__).resolve().parents[1]
            yield from (str(path) for path in (package, package.parent / "bots", package.parent / "prompts"))


def _follow_links(path: str) -> list[str]:
    """Return a path, the links that it leads to, and the real file."""
    chain = [path]
    while os.path.islink(chain[-1]) and len(chain) < 40:  # as many as Linux follows
        chain.append(os.path.normpath(os.path.join(os.path.dirname(chain[-1]), os.readlink(chain[-1]))))
    return [*chain, realpath(path)]


def _libraries(program: str) -> Iterator[str]:
    """Yield the folders that contain the libraries of an interpreter at this path."""
    parts = Path(program).parts
    for name in _MANAGERS:
        if name in parts[:-1]:
            yield str(Path(*parts[: parts.index(name) + 1]))
    prefix = os.path.dirname(os.path.dirname(program))
    if os.path.isfile(config := os.path.join(prefix, "pyvenv.cfg")):
        yield prefix
        with suppress(OSError), open(config, encoding="utf-8", errors="replace") as file:
            for key, _, value in (line.partition("=") for line in file):
                if key.strip() == "home":
                    prefix = os.path.dirname(realpath(value.strip()))
    if any(glob(os.path.join(escape(prefix), each)) for each in _LIBRARIES):
        yield prefix
