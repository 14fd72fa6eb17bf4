"""A game printed in the terminal, turn by turn: its sentences, its pace, and the file for its record."""

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any, Final

import click

from dubito.cli.output import PlainVoice, Voice, note, say
from dubito.errors import RunStopped, UsageError, one_line
from dubito.files import write_whole
from dubito.game import Game
from dubito.game.moves import Forfeit
from dubito.game.record import GameRecord, Records
from dubito.game.words import describe_forfeit, describe_start
from dubito.show.opponents import Thought
from dubito.show.session import Session


@dataclass(eq=False)
class Narrator:
    """Prints a game turn by turn while it is played or replayed."""

    show_hands: bool = False
    voice: Voice = field(default_factory=PlainVoice)
    wait: Callable[[], None] = lambda: None
    # These describe the current move.
    _seat: int = field(default=0, init=False)
    _turn: int = field(default=0, init=False)
    _hand_to_show: str = field(default="", init=False)

    def narrate(self, session: Session) -> None:
        self._session = session
        self._teller = session.game.words.teller(session.state, session.reader)
        self.voice(describe_start(session.game.words, session.state, session.reader))
        while not session.over:
            if not session.state.over:
                state = session.state
                self._seat, turn = state.seat, state.turns_played + 1
                if turn > self._turn:
                    self.wait()
                    self._hand_to_show = self._teller.describe_hand(self._seat) if self.show_hands else ""
                self._turn = turn
                self._show_thinking()
            try:
                moment = next(session)
            finally:
                self.voice.hide_thinking()
            self._show_hand()
            output = moment.output
            parts = (
                () if isinstance(output, Forfeit) else self._teller.describe_move(moment.seat, output, moment.events)
            )
            for each in parts:
                truth = f"[{each.truth}]" if self.show_hands and each.truth else ""
                if text := " ".join(filter(None, (each.sentence, truth))):
                    self._print_line(text)
            for fault in moment.faults:
                note(fault)
            if isinstance(output, Forfeit):
                self._print_line(describe_forfeit(output.seat, session.reader, session.game))
        self.voice("\n".join(self._teller.ending()))

    def print_aside(self, text: str) -> None:
        self._show_hand()
        self.voice(f"{self._turn:4}.   {text}")

    def print_thought(self, thought: Thought) -> None:
        """Print a model's answer and reason, and if hands are shown, whether its stated probability was right."""
        state, game = self._session.state, self._session.game
        truth = game.truth(state) if self.show_hands and not state.over else None
        name = self._session.reader.name(thought.seat)
        self.print_aside(thought.to_line(name, game.words.short_question(thought.node), game.node(thought.node), truth))
        self._show_thinking()

    def show_partial_reply(self, seat: int, words: str) -> None:
        self.voice.show_thinking(self._session.reader.name(seat), words)

    def _show_thinking(self) -> None:
        if self._session.thinks(self._seat):
            self.voice.show_thinking(self._session.reader.name(self._seat))

    def _show_hand(self) -> None:
        if self._hand_to_show:
            self._print_line(f"[{self._session.reader.name(self._seat)} holds {self._hand_to_show}]")
        self._hand_to_show = ""

    def _print_line(self, text: str) -> None:
        self.voice(f"{max(1, self._turn):4}. {text}")


def check_save(path: Path | None) -> None:
    """Raise UsageError before the game starts if its record cannot be written."""
    if path is None:
        return
    reason = None
    if path.is_dir():
        reason = "it is a folder"
    elif not path.parent.is_dir():
        reason = f"the folder {path.parent} does not exist"
    else:
        try:
            # The prefix also checks that the name is not too long.
            with NamedTemporaryFile(dir=path.parent, prefix=f"{path.name}."):
                pass
        except OSError as error:
            reason = error.strerror
    if reason is not None:
        raise UsageError(f"cannot save {one_line(str(path))}: {one_line(reason)}")


def save_record(path: Path, game: Game, record: GameRecord) -> None:
    """Write a game's record and print its path; raises RunStopped."""
    try:
        write_whole(path, Records(game).dump(record))
    except RunStopped as error:
        raise RunStopped(f"the game is over, but {error}") from None
    say(f"record: {path}")


# Seconds between turns.
PACES: Final = {"slow": 2.2, "normal": 1.1, "fast": 0.45, "at-once": 0.0}


class _Pace(click.ParamType[float]):
    """A number of seconds, or the name of a pace."""

    name = "pace"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if value in PACES:
            return PACES[value]
        try:
            seconds = float(value)
        except ValueError:
            seconds = -1
        if not 0 <= seconds <= 3600:
            self.fail(f"{value!r} is not one of {', '.join(PACES)} or a number of seconds.", param, ctx)
        return seconds


pace_option = click.option(
    "--pace",
    type=_Pace(),
    metavar="PACE",
    help=f"Pause between turns: {', '.join(PACES)}, or seconds. [default: normal; without a terminal, at-once]",
)


def make_pause(pace: float | None, sleep: Callable[[float], None] = time.sleep) -> Callable[[], None]:
    """Return a function that pauses between turns."""
    seconds = pace if pace is not None else PACES["normal" if sys.stdout.isatty() else "at-once"]
    return (lambda: sleep(seconds)) if seconds else lambda: None
