"""The rows of several `run.db` in one, table by table within SQLite: none of them passes through Python."""

import sqlite3
from collections.abc import Iterable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Final

from dubito.errors import RunStopped
from dubito.store.run_db import RunDb, readable

_ROWS: Final = {  # of each table: what is taken of a part, and in which order
    "games": "ORDER BY game",
    "chunks": "ORDER BY chunk",
    "decisions": "ORDER BY game, seat, decision",
    "attempts": "ORDER BY game, seat, decision, attempt",
    "ended": "ORDER BY game",
    "texts": "ORDER BY digest",
    "prompts": "ORDER BY digest, file",
}
# Before its games each part asked each model once, at the same places: these tries are numbered on.
_TRIES: Final = """
INSERT INTO tries (game, seat, decision, attempt, try, {columns})
SELECT game, seat, decision, attempt, try + iif(game >= 0, 0, coalesce((
    SELECT max(try) FROM main.tries t
    WHERE (t.game, t.seat, t.decision, t.attempt) = (p.game, p.seat, p.decision, p.attempt)
), 0)), {columns} FROM part.tries p ORDER BY game, seat, decision, attempt, try
"""
_SHARED: Final = ("attempts", "texts", "prompts")  # where parts may have the same row: a preflight's, a text


def merge_into(path: Path, parts: Iterable[Path], sums: Mapping[str, str]) -> None:
    """Make the `run.db` of a whole run from those of its parts, in their order; `sums` are its tally's rows.

    Raises UsageError or RunStopped where it cannot be written, or a part cannot be read.
    """
    RunDb.create(path).__exit__()
    try:
        with closing(sqlite3.connect(path.resolve().as_uri(), uri=True, isolation_level=None)) as connection:
            connection.execute("PRAGMA synchronous=OFF")  # whoever finds the folder finds it whole
            for part in parts:
                _add(connection, part)
            connection.executemany("INSERT INTO tally VALUES (?, ?)", sums.items())
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    except sqlite3.IntegrityError as error:
        raise RunStopped(f"the shards keep something of the same game twice: {error}; nothing was merged") from None
    except sqlite3.Error as error:
        raise RunStopped(f"cannot write {path.parent}: {error}; is the disk full?") from None


def _add(connection: sqlite3.Connection, part: Path) -> None:
    connection.execute("ATTACH ? AS part", (readable(part),))
    connection.execute("BEGIN")
    for table, order in _ROWS.items():
        verb = "INSERT OR IGNORE" if table in _SHARED else "INSERT"
        connection.execute(f"{verb} INTO {table} SELECT * FROM part.{table} {order}")  # noqa: S608, names of ours
    names = [name for (name,) in connection.execute("SELECT name FROM pragma_table_info('tries', 'part')")]
    connection.execute(_TRIES.format(columns=", ".join(names[5:])))
    connection.execute("COMMIT")
    connection.execute("DETACH part")
