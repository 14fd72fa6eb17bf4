"""Read a bot's file from a model's reply, and say in one sentence each what is wrong with it. Nothing is executed."""

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from dubito.errors import join_names, one_line

MAX_BYTES: Final = 100_000
CLASS: Final = "Bot"
_BLOCK: Final = re.compile(r"^```(?:python|py)?[ \t]*\n(.*?)^```", re.MULTILINE | re.DOTALL)
_MIN_COPIED_LINES: Final = 5
_COPIED_SHARE: Final = 0.8
_TRIVIAL: Final = re.compile(r"\W*(pass|return( True| False| None)?|else|try|)\W*")
# Modules that only make sense for something that the sandbox forbids.
_OUTSIDE: Final = frozenset(
    ("ctypes", "glob", "http", "multiprocessing", "os", "pathlib", "requests", "shutil", "socket", "subprocess")
)


@dataclass(frozen=True, slots=True)
class WrittenBot:
    """A bot's file as a model wrote it. `source` is empty if it cannot be played."""

    source: str
    remarks: Sequence[str] = ()  # sentences for the model
    refusal: str = ""  # why it is not played or cannot be chosen; one of the sentences


def read_bot(reply: str, known: Mapping[str, str], earlier: Sequence[str]) -> WrittenBot:
    """Return the bot's file in a reply.

    Args:
        reply: The reply's text, with any prose.
        known: The sources of the bots that must not be copied, by name.
        earlier: The sources of the earlier rounds.
    """
    source = _find_source(reply)
    if not source:
        return _refuse("the reply contains no Python file: put it into one block that starts with ```python")
    if (size := len(source.encode("utf-8", "replace"))) > MAX_BYTES:
        return _refuse(f"the file has {size:,} bytes; at most {MAX_BYTES:,} are allowed")
    try:
        module = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line = getattr(error, "lineno", None)
        return _refuse(f"the file is not valid Python: line {line}: {one_line(getattr(error, 'msg', str(error)), 200)}")
    if fault := _find_class_fault(module):
        return _refuse(fault)
    if copied := _find_copied(source, known):
        return _refuse(f"the file is a copy of {copied}, a bot that comes with the game: write your own")
    if source in earlier:
        return _refuse(f"the file is the same as in round {earlier.index(source) + 1}, so it was not played again")
    return WrittenBot(source, [*_list_remarks(module)])


def _refuse(why: str) -> WrittenBot:
    return WrittenBot("", [why], why)


def _find_source(reply: str) -> str:
    """Return the longest code block, or the whole reply if it has none and is Python."""
    if blocks := _BLOCK.findall(reply):
        return str(max(blocks, key=len)).strip() + "\n"
    if "```" in reply:  # a block that was cut off
        return reply.partition("```")[2].removeprefix("python").strip() + "\n"
    return f"{reply.strip()}\n" if f"class {CLASS}" in reply else ""


def _find_class_fault(module: ast.Module) -> str | None:
    classes = {one.name: one for one in module.body if isinstance(one, ast.ClassDef)}
    if CLASS in classes:
        return None
    if classes:
        return f"the file has the classes {join_names(sorted(classes))}, but none that is called {CLASS}"
    return f"the file has no class that is called {CLASS}"


def _find_copied(source: str, known: Mapping[str, str]) -> str | None:
    """Return the known bot whose code is in the file. Names of classes and indentation do not matter."""
    lines = {*_telling_lines(source)}
    for name, text in known.items():
        of_bot = [*_telling_lines(text)]
        if len(of_bot) >= _MIN_COPIED_LINES and sum(line in lines for line in of_bot) >= _COPIED_SHARE * len(of_bot):
            return name
    return None


def _telling_lines(source: str) -> Iterator[str]:
    """Yield the lines of code that do something, without signatures, which all bots of a game share."""
    for line in ast.unparse(ast.parse(source)).splitlines():
        text = line.strip()
        if not _TRIVIAL.fullmatch(text) and not text.startswith(("def ", "class ", "import ", "from ", '"""', "'")):
            yield text


def _list_remarks(module: ast.Module) -> Iterator[str]:
    outside, calls = set[str](), set[str]()
    for node in ast.walk(module):
        if isinstance(node, ast.Import):
            outside |= {alias.name.partition(".")[0] for alias in node.names} & _OUTSIDE
        elif isinstance(node, ast.ImportFrom):
            outside |= {(node.module or "").partition(".")[0]} & _OUTSIDE
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            calls.add(node.func.id)
    outside |= {"open"} & calls
    if outside:
        used = join_names(sorted(outside))
        yield f"it uses {used}, but a bot has no network and sees no other files, hands or settings"
    if "print" in calls:
        yield "it calls print, which nobody reads: leave it out"
