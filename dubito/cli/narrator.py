"""One game, told turn by turn, in words for people.

How fast a game is told: the speeds of the table in the browser, or seconds.
"""

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any, Final

import click

from dubito.cli.output import PlainVoice, Voice, note, say
from dubito.errors import RunStopped, UsageError, one_line
from dubito.game import Spec
from dubito.game.record import Forfeit, records_of
from dubito.game.table import Table
from dubito.game.words import Label, forfeit_in_words, question_in_words, told_of
from dubito.show.person import Thought
from dubito.store.folder import write_whole

NextMove = Callable[[], tuple[Any, Sequence[Any]]]  # makes it: what was given back, and what was observed of it


@dataclass
class Narrator:
    """Tells a game from its deal on, while it is played or played again."""

    spec: Spec
    game: Any
    label: Label
    show_hands: bool = False
    voice: Voice = field(default_factory=PlainVoice)
    wait: Callable[[], None] = lambda: None  # before each turn

    def __post_init__(self) -> None:
        self._teller = told_of(self.spec).Teller(self.game, self.label)
        self._seat, self._thinks = 0, False  # who moves, and whether they may take their time
        self._turn, self._held = 0, ""  # the turn under way, and the hand that is still to be shown at it

    def tell(
        self,
        move: NextMove,
        thinks: Callable[[int], bool] = lambda seat: False,
        after: Callable[[], None] = lambda: None,
    ) -> None:
        """Make the moves one by one and tell them.

        `thinks`: whether a seat may take its time; `after`: says what else is to be said of a move that was told.
        """
        self.voice(told_of(self.spec).sentence(self.game.start, self.label))
        while not self.game.over:
            seat, turn = self.game.seat, self.game.turns_played + 1
            if turn > self._turn:
                self.wait()
            self._held = self._teller.holds(seat) if self.show_hands and turn > self._turn else ""
            self._turn, self._seat = turn, seat
            self._thinks = thinks(seat)
            self._wait_visibly()
            try:
                output, events = move()
            finally:
                self.voice.heard()
            self._hand()
            self._moved(seat, output, events)
            after()
        after()
        self.voice("\n".join(self._teller.ending()))

    def aside(self, text: str) -> None:
        """Say what goes on before the move under way is made."""
        self._hand()
        self.voice(f"{self._turn:4}.   {text}")

    def thought(self, thought: Thought) -> None:
        """Say what a model thinks; with the hands, whether it is right about the bluff that it suspects."""
        truth = self.spec.truth(self.game) if self.show_hands and not self.game.over else None
        self.aside(thought.in_words(self.label(thought.seat), question_in_words(self.spec, thought.node), truth))
        self._wait_visibly()

    def faults(self, faults: Sequence[str], forfeit: Forfeit | None) -> None:
        """Say what bots did wrong, and that it has ended the game."""
        for fault in faults:
            note(fault)
        if forfeit is not None:
            self._forfeited(forfeit)

    def says(self, text: str) -> None:
        """Say something of the turn under way."""
        self.voice(f"{max(1, self._turn):4}. {text}")

    def _wait_visibly(self) -> None:
        if self._thinks:
            self.voice.thinks(self.label(self._seat))

    def _forfeited(self, forfeit: Forfeit) -> None:
        self.says(forfeit_in_words(forfeit.seat, self.label, self.spec))

    def _hand(self) -> None:
        if self._held:
            self.says(f"[{self.label(self._seat)} holds {self._held}]")
        self._held = ""

    def _moved(self, seat: int, output: Any, events: Sequence[Any]) -> None:
        if isinstance(output, Forfeit):
            self._forfeited(output)
        elif output is not None:
            for each in self._teller.moved(seat, output, events):
                truth = f"[{each.truth}]" if self.show_hands and each.truth else ""
                if text := " ".join(filter(None, (each.said, truth))):
                    self.says(text)


def faults_of(table: Table, spec: Spec) -> tuple[list[str], Forfeit | None]:
    """What bots have done wrong since the last time, in sentences, and whether that has ended the game."""
    errors = list(table.errors)
    table.errors.clear()
    if errors and table.forfeits:
        return [str(errors[0])], Forfeit(errors[0].seat)
    return [f"{error}; {spec.fallback}'s rules played the turn" for error in errors], None


def check_save(path: Path | None) -> None:
    """Raise UsageError, before the game, unless its record can be written there."""
    if path is None:
        return
    reason = None
    if path.is_dir():
        reason = "it is a folder"
    elif not path.parent.is_dir():
        reason = f"there is no folder {path.parent}"
    else:
        try:
            with NamedTemporaryFile(dir=path.parent, prefix=f"{path.name}."):  # its name shall not be too long either
                pass
        except OSError as error:
            reason = error.strerror
    if reason is not None:
        raise UsageError(f"cannot save {one_line(str(path))}: {one_line(reason)}")


def save_record(path: Path, spec: Spec, record: Any) -> None:
    """Write a game's record and say so; raises RunStopped."""
    try:
        write_whole(path, records_of(spec).dump(record))
    except RunStopped as error:
        raise RunStopped(f"the game was played, but {error}") from None
    say(f"record: {path}")


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
