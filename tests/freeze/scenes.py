"""Freeze the output of commands: `python -m tests.freeze.scenes [NAME...]` writes it.

`scenes.yaml` lists commands by scene. `said/SCENE.txt` contains their output, without values that depend on the day or
the machine. `kept/NAME.zip` contains files that later versions must be able to open. Other files are stored as digests.
"""

import os
import re
import shlex
import sqlite3
import sys
from collections.abc import Callable, Iterator
from contextlib import chdir, closing, redirect_stderr, redirect_stdout
from hashlib import sha256
from importlib.util import find_spec
from io import StringIO
from pathlib import Path
from shutil import copy2, copytree, ignore_patterns, make_archive, unpack_archive
from tempfile import TemporaryDirectory
from typing import Final

import pytest

from dubito.cli.main import main
from dubito.files import read_yaml
from tests.cli.kit import REPO, Result, with_test_flags

HERE: Final = Path(__file__).parent
SCENES: Final[dict[str, list[str]]] = read_yaml(HERE / "scenes.yaml")
OF_OPENSPIEL: Final = "openspiel|tournament|kuhn_poker|leduc|liars|gin_rummy|policy"
AT_LENGTH: Final = frozenset(
    {
        "bs",
        "bs-models",
        "bs-opens",
        "defuse",
        "gin_rummy",
        "gin_rummy-models",
        "gin_rummy-opens",
        "kuhn_poker",
        "leduc_poker",
        "liars_dice",
        "shards",
        "tournament",
    }
)
CHANGED: Final = re.compile(r"manifest mismatch: .*'s file has changed")  # bot files may be edited
_MASKS: Final = (
    (r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?([+-]\d\d:\d\d|Z| UTC)?", "<time>"),
    (r"\b\d+(\.\d+)? (ms|s|seconds|minutes)\b(?! (for|older|more))", "<time>"),
    (r"\b\d+(\.\d+)? (games|decisions)/s", "<speed>"),
    (r'(<span>(median|90th percentile|maximum)</span></th><td class="n")[^>]*>[\d.,]+', r"\1><time>"),
    (r'"seconds": ?(\[[^]]*\]|[\d.]+)', '"seconds":<time>'),
    (r"127\.0\.0\.1:\d+", "127.0.0.1:<port>"),
    (r"\b3\.1\d\.\d+\b", "<python>"),
    (r", the oldest [\d,]+ days? old\b", ""),  # age of the replies in the cache
)
Speak = Callable[..., Result]


def masked(text: str) -> str:
    """Remove everything that depends on the day, the folder or the machine."""
    for folder, name in ((Path.cwd(), "<here>"), (Path.cwd().resolve(), "<here>"), (REPO, "<project>")):
        text = text.replace(str(folder), name)
    for pattern, name in _MASKS:
        text = re.sub(pattern, name, text)
    return text


def in_process(*words: str) -> Result:
    """Run `dubito` in this process, like the tests' shell."""
    out, err = StringIO(), StringIO()
    with redirect_stdout(out), redirect_stderr(err), pytest.raises(SystemExit) as ended:
        main(with_test_flags(words))
    assert isinstance(ended.value.code, int)
    return Result(ended.value.code, out.getvalue(), err.getvalue())


def digest(path: Path) -> str:
    """Return a digest of a text without its date, its folder, and digests of source files."""
    text = masked(path.read_text(encoding="utf-8"))
    text = re.sub(r'"run": ?"[0-9a-f]{8}"', "<run>", text)
    text = re.sub(r"\b([0-9a-f]{64}|[0-9a-f]{12})\b", "<digest>", text)
    if path.match("*-use.csv"):
        text = re.sub(r"(?m)^([^,]+),[\d.]+,", r"\1,<time>,", text)
    return sha256(text.encode()).hexdigest()[:16]


def _files(folder: str) -> Iterator[str]:
    """Yield pages and data files. Scripts and styles may change."""
    lines = []
    for path in Path(folder).rglob("*.*"):
        if path.suffix in (".csv", ".html", ".json", ".yaml", ".jsonl") and "static" not in path.parts:
            name = re.sub(r"-[0-9a-f]{12}\.", "-<digest>.", path.as_posix())  # digest of a position
            lines.append(f"{name}  {digest(path)}")
    yield from sorted(lines)


def _requests(run: str) -> Iterator[str]:
    """Return a digest of all requests of a run for each contender."""
    with closing(sqlite3.connect(Path(run, "run.db"))) as connection:
        query = "SELECT player, game, seat, decision, attempt, request, draw FROM attempts ORDER BY 1, 2, 3, 4, 5"
        rows = connection.execute(query).fetchall()
    for player in sorted({row[0] for row in rows}):
        own = [row for row in rows if row[0] == player]
        yield f"{sha256(repr(own).encode()).hexdigest()[:16]}  {len(own)} of {player}"


def _cat(file: str) -> Iterator[str]:
    yield masked(Path(file).read_text(encoding="utf-8")).rstrip("\n")


def _take(name: str) -> Iterator[str]:
    unpack_archive(HERE / "kept" / f"{name}.zip", ".")
    yield from ()


def _keep(*_: str) -> Iterator[str]:
    yield from ()  # _write does it


def _renew(run: str, fresh: str) -> Iterator[str]:
    """Replace the source digests of bots and games by the current ones, so that the run can resume."""
    then, now = (Path(folder, "manifest.yaml").read_text(encoding="utf-8") for folder in (run, fresh))
    assert masked(re.sub(r"\b[0-9a-f]{64}\b", "", then)) == masked(re.sub(r"\b[0-9a-f]{64}\b", "", now))
    Path(run, "manifest.yaml").write_text(now, encoding="utf-8")
    yield from ()


def _rows(folder: str) -> Iterator[str]:
    """Summarize a dataset: its columns with types, the number of rows, and a digest of the rows."""
    from pyarrow import parquet

    for path in sorted(Path(folder).rglob("*.parquet")):
        table = parquet.read_table(path)
        rows = sha256(repr(table.to_pylist()).encode()).hexdigest()[:16]
        yield f"{rows}  {table.num_rows} of {path.as_posix()}"
        yield from (f"    {field.name}: {field.type}" for field in table.schema)


_DONE_HERE: Final[dict[str, Callable[..., Iterator[str]]]] = {
    "files": _files,
    "requests": _requests,
    "cat": _cat,
    "take": _take,
    "keep": _keep,
    "renew": _renew,
    "rows": _rows,
}


def play_scene(name: str, speak: Speak) -> str:
    """Play a scene in the working directory and return its output."""
    copytree(HERE / "configs", ".", dirs_exist_ok=True)
    output: list[str] = []
    for line in SCENES[name]:
        word, *words = [str(min(Path().glob(word))) if "*" in word else word for word in shlex.split(line)]
        output.append(f"$ {line}")
        if word in _DONE_HERE:
            output.extend(_DONE_HERE[word](*words))
            continue
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("dubito.cli.output._SLOW_SECONDS", 600.0)  # no "waiting: ..." on a busy machine
            result = speak(*words) if word == "quietly" else speak(word, *words)
        if word != "quietly":
            output.extend(masked(result.out).splitlines())
            output.extend(
                f"! {complaint}" for complaint in masked(result.err).splitlines() if not CHANGED.search(complaint)
            )
        output.append(f"exit code {result.code}")
    return "\n".join(output) + "\n"


def playable(name: str) -> bool:
    """Return whether everything that a scene needs is installed."""
    text = "\n".join(SCENES[name])
    return all(
        find_spec(library) or not re.search(words, text)
        for library, words in (("pyspiel", OF_OPENSPIEL), ("pyarrow", "^rows|--dataset"))
    )


def said_file(name: str) -> Path:
    return HERE / "said" / f"{name}.txt"


def _pack(name: str, *paths: str) -> None:
    """Pack the files that `take` selects. In a run's folder, pack only the files of the run."""
    with TemporaryDirectory() as folder:
        for path in paths:
            if Path(path).is_dir():
                copytree(path, Path(folder, path), ignore=ignore_patterns("report", "lock", "locks", "run.log"))
            else:
                copy2(path, folder)
        for database in Path(folder).rglob("*.db"):
            with closing(sqlite3.connect(database)) as connection:
                connection.execute("PRAGMA journal_mode=DELETE")
                connection.execute("VACUUM")
        (HERE / "kept").mkdir(exist_ok=True)
        make_archive(str(HERE / "kept" / name), "zip", folder)


def _write(*names: str) -> None:
    for name in names or SCENES:
        with TemporaryDirectory() as folder, chdir(folder):
            text = play_scene(name, in_process)
            for line in SCENES[name]:
                if line.startswith("keep "):
                    _pack(*shlex.split(line)[1:])
        said_file(name).parent.mkdir(exist_ok=True)
        said_file(name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    os.environ.pop("OPENAI_API_KEY", None)
    _write(*sys.argv[1:])
