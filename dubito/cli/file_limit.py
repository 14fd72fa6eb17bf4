"""Raise the limit on open files, since each game in flight needs several."""

import sys
from contextlib import suppress
from typing import Final

from dubito.cli.output import note

# A game needs a connection, the built-in server's end of it, and three cache files.
_FILES_PER_GAME: Final = 6
# The interpreter's files, the run's, and a few to spare.
_OTHER_FILES: Final = 60


def limit_in_flight(in_flight: int) -> int:
    """Return how many games the limit on open files allows in flight. The limit is raised if possible."""
    limit = raise_file_limit(_OTHER_FILES + _FILES_PER_GAME * in_flight)
    allowed = in_flight if limit is None else max(1, min(in_flight, (limit - _OTHER_FILES) // _FILES_PER_GAME))
    if allowed < in_flight:
        note(
            f"note: only {allowed} games are in flight instead of {in_flight} because this process can only open "
            f"{limit} files; raise `ulimit -n`"
        )
    return allowed


def raise_file_limit(wanted: int) -> int | None:
    """Raise the limit on open files to this number if possible. Return the limit, or None if it is unlimited."""
    if sys.platform == "win32":
        return None
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return None if soft == resource.RLIM_INFINITY else soft
    target = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    # Some systems have an additional, lower maximum.
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (target, hard))
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]
