"""How fast a game is told: the speeds of the table in the browser, or seconds."""

import sys
import time
from collections.abc import Callable
from typing import Any, Final

import click

PACES: Final = {"slow": 2.2, "normal": 1.1, "fast": 0.45, "at-once": 0.0}  # seconds between turns


class _Pace(click.ParamType[float]):
    """Seconds, or the name of a pace."""

    name = "pace"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The seconds that were said or named; fails for anything else."""
        if value in PACES:
            return PACES[value]
        try:
            seconds = float(value)
        except ValueError:
            seconds = -1
        if not 0 <= seconds <= 3600:
            self.fail(f"say {', '.join(PACES)}, or seconds, not {value!r}", param, ctx)
        return seconds


pace_option = click.option(
    "--pace",
    type=_Pace(),
    metavar="PACE",
    help=f"Between turns: {', '.join(PACES)}, or seconds. [default: normal; at-once where there is no terminal]",
)


def waits(pace: float | None, sleep: Callable[[float], None] = time.sleep) -> Callable[[], None]:
    """What lets the time between two turns pass; None is the default."""
    seconds = pace if pace is not None else PACES["normal" if sys.stdout.isatty() else "at-once"]
    return (lambda: sleep(seconds)) if seconds else lambda: None
