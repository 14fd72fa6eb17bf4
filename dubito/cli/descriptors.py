"""The files that this process may have open: each game in flight takes some."""

import sys
from typing import Final

from dubito.cli.output import note

_PER_GAME: Final = 6  # its connection, the built-in server's end of it, and three files of the cache
_OTHERS: Final = 60  # the interpreter's, the run's, and a few to spare


def bound_in_flight(in_flight: int) -> int:
    """Return how many games can be in flight. The soft limit is raised where possible; a lower number is noted."""
    limit = raise_limit(_OTHERS + _PER_GAME * in_flight)
    most = in_flight if limit is None else max(1, min(in_flight, (limit - _OTHERS) // _PER_GAME))
    if most < in_flight:
        note(
            f"note: {most} games are in flight at once instead of {in_flight}: this process may open {limit} files; "
            "raise `ulimit -n` for more"
        )
    return most


if sys.platform == "win32":

    def raise_limit(wanted: int) -> int | None:
        return None

else:
    import resource
    from contextlib import suppress

    def raise_limit(wanted: int) -> int | None:
        """Raise the limit of open files to this number, if the system allows it; return it. None: there is none."""
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if soft == resource.RLIM_INFINITY or soft >= wanted:
            return None if soft == resource.RLIM_INFINITY else soft
        target = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        with suppress(OSError, ValueError):  # some systems refuse more than their own bound
            resource.setrlimit(resource.RLIMIT_NOFILE, (target, hard))
        return resource.getrlimit(resource.RLIMIT_NOFILE)[0]
