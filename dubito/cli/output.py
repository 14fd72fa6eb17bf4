"""What the commands print: tables that fit a terminal, plain lines for everything else."""

import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from threading import Event, Lock, Thread, Timer
from types import TracebackType
from typing import TYPE_CHECKING, Final, Protocol

import click

from dubito.errors import one_line, printable, printable_json

if TYPE_CHECKING:
    from dubito.cli.terminal import LiveLines
    from dubito.game import PlayerKind
    from dubito.report.documents import Document
    from dubito.report.tables import Paragraph, ResultTable

_NUMERIC: Final = ("", *"0123456789-+$")  # how a cell of a column of numbers may begin


def say(text: str = "") -> None:
    click.echo(printable(text))


def print_document(document: "Document") -> None:
    """Print the object of `--json`, and nothing else, to standard output."""
    text = printable_json(document.model_dump_json(indent=1))
    if not can_encode(text):
        text = json.dumps(json.loads(text), indent=1)
    click.echo(text)


def can_encode(text: str) -> bool:
    """Return whether standard output has all these characters."""
    try:
        text.encode(getattr(sys.stdout, "encoding", None) or "utf-8")
    except UnicodeEncodeError:
        return False
    return True


def note(text: str) -> None:
    click.echo(printable(text), err=True)


def read_line(prompt: str) -> str:
    return input(printable(prompt))


_SLOW_SECONDS: Final = 3.0


@contextmanager
def note_if_slow(text: str) -> Iterator[None]:
    """Note what is waited for, once it takes a while."""
    timer = Timer(_SLOW_SECONDS, note, [f"waiting: {text}"])
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def table(title: str, headers: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """A table, texts left and numbers right. No terminal: a record a line, never wrapped or cut."""
    cells = [[one_line(cell) for cell in row] for row in rows]
    numeric = [all(row[column][:1] in _NUMERIC for row in cells) for column in range(len(headers))]
    if sys.stdout.isatty():
        from dubito.cli import terminal

        terminal.draw_table(title, headers, cells, numeric)
        return
    say(title)
    widths = [max(len(row[column]) for row in [headers, *cells]) for column in range(len(headers))]
    for row in [headers, *cells]:
        columns = zip(row, widths, numeric, strict=True)
        say("  ".join(cell.rjust(width) if right else cell.ljust(width) for cell, width, right in columns).rstrip())


def show(
    *blocks: "ResultTable | Paragraph | None", notes: bool = True, kinds: "Mapping[str, PlayerKind] | None" = None
) -> None:
    """Tables and sentences of a report, as a terminal has them; where there is none, nothing.

    `kinds` are those of the players who are named in tables.
    """
    from dubito.report.tables import Paragraph

    for block in blocks:
        if isinstance(block, Paragraph):
            say(f"{'warning: ' if block.warning else ''}{block.text}")
        elif block is not None:
            block = block.with_kinds(kinds or {})
            cells = [[cell for column, cell in row if not column.detail] for row in block.format_rows()]
            table(block.title, [column.title for column in block.columns if not column.detail], cells)
            for sentence in block.notes if notes else ():
                say(sentence)


_EVERY: Final = 10.0  # seconds between two lines of progress in a log
_TELLING: Final = 3.0  # seconds before which nobody can say how long it takes,
_TELLS: Final = 5  # and games, or where there are few, this share of them:
_SHARE: Final = 0.05
_SAMPLES: Final = 100  # of the time so far, in which it is noted how much is played


class Speed:
    """How fast it goes now: by the second half of the time so far, since how a run begins says little of it."""

    def __init__(self, done: float) -> None:
        self.before = done
        self._seen = [(0.0, done)]  # seconds, and what was done by then; the first is the last of the first half

    def __call__(self, seconds: float, done: float) -> float:
        """What is done a second, with so much done by now."""
        seen = self._seen
        if seconds - seen[-1][0] >= max(0.1, seconds / _SAMPLES):
            seen.append((seconds, done))
        while len(seen) > 1 and seen[1][0] <= seconds / 2:
            del seen[0]
        then, had = seen[0]
        return max(0.0, done - had) / (seconds - then) if seconds > then else 0.0


class GamesProgress:
    """Games played of all: two live lines on a terminal, one at first and every ten seconds in a log, or nothing."""

    def __init__(
        self,
        games: int,
        quiet: bool,
        clock: Callable[[], float],
        more: Callable[[], Sequence[str]] = tuple,
        unit: str = "games",
        parts: Callable[[], tuple[float, float] | None] = lambda: None,
    ) -> None:
        """`more` is what else there is to say: of models, how their decisions go. `parts`: how many games are played
        and left, if anybody knows better than those that have ended."""
        self._games, self._clock, self._more, self._unit = max(1, games), clock, more, unit
        self._parts = parts
        self._start = clock()
        self._speed: Speed | None = None
        self._said_at = self._start - _EVERY
        self._before: int | None = None  # games that were there already
        self._said = 0  # games, the last time
        self._now = 0  # games by now
        self._ended = Event()
        self._lock = Lock()
        self._bar: LiveLines | None = None
        self._quiet = quiet
        if not quiet and sys.stderr.isatty():
            from dubito.cli import terminal

            self._bar = terminal.LiveLines(games, self._course, more)

    def __enter__(self) -> "GamesProgress":
        if self._bar is not None:
            self._bar.start()
        elif not self._quiet:
            Thread(target=self._keep_saying, name="progress", daemon=True).start()
        return self

    def _keep_saying(self) -> None:
        """Say how far it is every ten seconds, although no game may have ended."""
        while not self._ended.wait(_EVERY / 10):
            with self._lock:
                now = self._clock()
                if now - self._start >= _EVERY:
                    self.say_again(now)

    def say_again(self, now: float) -> None:
        if now - self._said_at >= _EVERY:
            self._said_at, self._said = now, self._now
            note(", ".join([self._course(self._now, now), *self._more()]))

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._ended.set()
        if self._bar is not None:
            self._bar.stop()

    def __call__(self, games: int) -> None:
        """Say how many games there are so far; the first time, how many there were before."""
        if self._before is None:
            self._before = self._said = games
            self._left(games, 0.0)
        if self._bar is not None:
            self._bar.update(games)
        elif not self._quiet:
            with self._lock:  # games end in many threads
                self._now = max(self._now, games)
                now = self._clock()
                self._left(self._now, now - self._start)
                if self._now > self._said:
                    self.say_again(now)

    def _course(self, games: int, now: float | None = None) -> str:
        """How far it is, how fast it goes, and once there is something to go by, how long it still takes."""
        before, seconds = self._before or 0, (self._clock() if now is None else now) - self._start
        said = [f"{games:,} of {self._games:,} {self._unit}"]
        if games > before and seconds:
            speed = (games - before) / seconds
            said.append(f"{speed:{',.0f' if speed >= 10 else '.1f'}} {self._unit}/s")
        return ", ".join([*said, *self._left(games, seconds)])

    def _left(self, games: int, seconds: float) -> list[str]:
        """How long it still takes, in words; nothing until there is enough to go by."""
        done, rest = self._parts() or (games, self._games - games)
        self._speed = self._speed or Speed(done)
        pace, new = self._speed(seconds, done), done - self._speed.before
        if not pace or seconds < _TELLING or new < min(_TELLS, _SHARE * (new + rest)):
            return []
        left = max(0.0, rest) / pace
        unit, name = (1, "s") if left < 120 else (60, "min") if left < 7200 else (3600, "h")
        return [f"{left / unit:.{int(unit == 3600)}f} {name} left"]


class Voice(Protocol):
    """How a game is told: in colour on a terminal, a plain line a record elsewhere."""

    def __call__(self, line: str = "") -> None:
        """Say a line."""

    def thinks(self, name: str, words: str = "") -> None:
        """Say that this player may take its time, until there is something else to say, or it was `heard`; `words`
        are what it has said so far."""

    def heard(self) -> None:
        """Nobody thinks any more."""


class PlainVoice:
    """Says the lines as they are."""

    def __call__(self, line: str = "") -> None:
        say(line)

    def thinks(self, name: str, words: str = "") -> None:
        pass

    def heard(self) -> None:
        pass


def voice_for(names: Sequence[str], lie: str) -> Voice:
    """How a game among players that are called so is told here, in which a lie is called so."""
    if not sys.stdout.isatty():
        return PlainVoice()
    from dubito.cli.terminal import TerminalVoice  # late: what draws is loaded where there is a terminal

    return TerminalVoice(names, lie)
