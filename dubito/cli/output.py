"""Output of the commands: tables that fit the terminal, or plain lines if there is no terminal."""

import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Event, Lock, Thread, Timer
from types import TracebackType
from typing import TYPE_CHECKING, Final, TypeAlias

import click

from dubito.errors import one_line, printable, printable_json

if TYPE_CHECKING:
    from dubito.cli.terminal import LiveLines, TerminalVoice
    from dubito.game import PlayerKind
    from dubito.report.documents import Document
    from dubito.report.tables import Paragraph, ResultTable

# A column is numeric if all of its cells match.
_NUMERIC_STARTS: Final = ("", *"0123456789-+$")


def say(text: str = "") -> None:
    click.echo(printable(text))


def print_document(document: "Document") -> None:
    """Print the `--json` object."""
    text = printable_json(document.model_dump_json(indent=1))
    try:
        text.encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:  # standard output lacks some characters
        text = json.dumps(json.loads(text), indent=1)
    click.echo(text)


def note(text: str) -> None:
    click.echo(printable(text), err=True)


def read_line(prompt: str) -> str:
    return input(printable(prompt))


_SLOW_SECONDS: Final = 3.0


@contextmanager
def note_if_slow(text: str) -> Iterator[None]:
    """Print what the command is waiting for if it takes more than a few seconds."""
    timer = Timer(_SLOW_SECONDS, note, [f"waiting: {text}"])
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def table(title: str, headers: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table. Without a terminal, each row is one line that is never wrapped or truncated."""
    cells = [[one_line(cell) for cell in row] for row in rows]
    numeric = [all(row[column][:1] in _NUMERIC_STARTS for row in cells) for column in range(len(headers))]
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
    """Print a report's tables and paragraphs, skipping None. `kinds` maps player names to kinds."""
    from dubito.report.tables import Paragraph

    for block in blocks:
        if isinstance(block, Paragraph):
            say(f"{'warning: ' if block.warning else ''}{block.text}")
        elif block is not None:
            block = block.with_kinds(kinds or {})
            shown = [column for column in block.columns if not column.detail]
            table(block.title, [one.title for one in shown], [*zip(*(one.texts for one in shown), strict=True)])
            for sentence in block.notes if notes else ():
                say(sentence)


_LOG_INTERVAL: Final = 5.0  # seconds

# The remaining time is only shown after this many seconds and games (or this share of the games, if they are few), and
# after a minute in any case.
_MIN_SECONDS: Final = 3.0
_MAX_SECONDS: Final = 60.0
_MIN_GAMES: Final = 5
_MIN_SHARE: Final = 0.05

_MAX_SAMPLES: Final = 100


@dataclass(eq=False, slots=True)
class Speed:
    """The current speed, measured over the second half of the elapsed time because runs often start slowly."""

    before: float  # amount done at the start
    samples: list[tuple[float, float]]  # (seconds, amount done), for the second half of the time so far

    def __call__(self, seconds: float, done: float) -> float:
        """Add a sample and return the speed per second."""
        samples = self.samples
        if seconds - samples[-1][0] >= max(0.1, seconds / _MAX_SAMPLES):
            samples.append((seconds, done))
        while len(samples) > 1 and samples[1][0] <= seconds / 2:
            del samples[0]
        then, had = samples[0]
        return max(0.0, done - had) / (seconds - then) if seconds > then else 0.0


class GamesProgress:
    """The progress of a run: live lines on a terminal, or one line every five seconds in a log."""

    def __init__(
        self,
        games: int,
        quiet: bool,
        clock: Callable[[], float],
        more: Callable[[], Sequence[str]] = tuple,
        unit: str = "games",
        parts: Callable[[], tuple[float, float] | None] = lambda: None,
    ) -> None:
        """Start the clock.

        Args:
            more: Returns more figures, such as the number of model calls.
            parts: Returns the games played and left, including fractions of games. None counts finished games only.
        """
        self._games, self._clock, self._more, self._unit = max(1, games), clock, more, unit
        self._parts = parts
        self._start = clock()
        self._speed: Speed | None = None
        self._logged_at = self._start - _LOG_INTERVAL
        # Number of games at the start, in the last log line, and now.
        self._before: int | None = None
        self._logged_games = 0
        self._games_now = 0
        self._ended = Event()
        self._lock = Lock()
        self._bar: LiveLines | None = None
        self._quiet = quiet
        if not quiet and sys.stderr.isatty():
            from dubito.cli import terminal

            self._bar = terminal.LiveLines(games, self._describe, more)

    def __enter__(self) -> "GamesProgress":
        if self._bar is not None:
            self._bar.start()
        elif not self._quiet:
            Thread(target=self._log_regularly, name="progress", daemon=True).start()
        return self

    def _log_regularly(self) -> None:
        """Log every five seconds, even if no game has ended."""
        while not self._ended.wait(_LOG_INTERVAL / 10):
            with self._lock:
                now = self._clock()
                if now - self._start >= _LOG_INTERVAL:
                    self.log_if_due(now)

    def log_if_due(self, now: float) -> None:
        if now - self._logged_at >= _LOG_INTERVAL:
            self._logged_at, self._logged_games = now, self._games_now
            note(", ".join([self._describe(self._games_now, now), *self._more()]))

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._ended.set()
        if self._bar is not None:
            self._bar.stop()

    def __call__(self, games: int) -> None:
        """Set the number of games so far. The first call sets the number at the start."""
        if self._before is None:
            self._before = self._logged_games = games
            self._describe_time_left(games, 0.0)
        if self._bar is not None:
            self._bar.show_games(games)
        elif not self._quiet:
            # Games end in several threads.
            with self._lock:
                self._games_now = max(self._games_now, games)
                now = self._clock()
                self._describe_time_left(self._games_now, now - self._start)
                if self._games_now > self._logged_games:
                    self.log_if_due(now)

    def _describe(self, games: int, now: float | None = None) -> str:
        """Describe the progress, the speed and the remaining time."""
        before, seconds = self._before or 0, (self._clock() if now is None else now) - self._start
        figures = [f"{games:,} of {self._games:,} {self._unit}"]
        if games > before and seconds:
            speed = (games - before) / seconds
            figures.append(f"{speed:{',.0f' if speed >= 10 else '.1f'}} {self._unit}/s")
        return ", ".join([*figures, *self._describe_time_left(games, seconds)])

    def _describe_time_left(self, games: int, seconds: float) -> list[str]:
        """Describe the remaining time, or return an empty string until it can be estimated."""
        done, rest = self._parts() or (games, self._games - games)
        self._speed = self._speed or Speed(done, [(0.0, done)])
        pace, new = self._speed(seconds, done), done - self._speed.before
        is_early = seconds < _MAX_SECONDS and new < min(_MIN_GAMES, _MIN_SHARE * (new + rest))
        if not pace or seconds < _MIN_SECONDS or is_early:
            return []
        remaining = max(0.0, rest) / pace
        unit, name = (1, "s") if remaining < 120 else (60, "min") if remaining < 7200 else (3600, "h")
        return [f"{remaining / unit:.{int(unit == 3600)}f} {name} left"]


class PlainVoice:
    """Prints the lines of a game unchanged, and nothing while a player is thinking."""

    def __call__(self, line: str = "") -> None:
        say(line)

    def show_thinking(self, name: str, words: str = "") -> None:
        """Print nothing."""

    def hide_thinking(self) -> None:
        """Print nothing."""


Voice: TypeAlias = "PlainVoice | TerminalVoice"  # prints the lines of a game


def make_voice(names: Sequence[str], lie: str) -> Voice:
    """Return a coloured voice if there is a terminal. `lie` is the game's word for a lie."""
    if not sys.stdout.isatty():
        return PlainVoice()
    # Imported late: Rich is only needed on a terminal.
    from dubito.cli.terminal import TerminalVoice

    return TerminalVoice(names, lie)
