"""One game told in the terminal, turn by turn: its words, its pace, and the file that keeps it."""

import sys
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any, Final

import click

from dubito.cli.output import PlainVoice, Voice, note, say
from dubito.errors import RunStopped, UsageError, one_line
from dubito.files import write_whole
from dubito.game import Game
from dubito.game.record import Forfeit, records_of
from dubito.game.words import forfeit_in_words, question_in_words, words_of
from dubito.show.company import Thought
from dubito.show.session import Moment, Session


class Narrator:
    """Tells a game to its end, while it is played or played again."""

    def __init__(
        self, show_hands: bool = False, voice: Voice | None = None, wait: Callable[[], None] = lambda: None
    ) -> None:
        self._show_hands, self._voice, self._wait = show_hands, voice or PlainVoice(), wait
        self._seat, self._turn = 0, 0  # that of the move under way
        self._held = ""  # the hand that is still to be shown at it

    def tell(self, session: Session) -> None:
        self._session = session
        self._teller = words_of(session.game).Teller(session.state, session.label)
        self._voice(words_of(session.game).sentence(session.state.start, session.label))
        while not session.over:
            if not session.state.over:
                self._begin_move()
            try:
                moment = next(session)
            finally:
                self._voice.heard()
            self._show_hand()
            self._tell_move(moment)
        self._voice("\n".join(self._teller.ending()))

    def aside(self, text: str) -> None:
        self._show_hand()
        self._voice(f"{self._turn:4}.   {text}")

    def thought(self, thought: Thought) -> None:
        """Say what a model thinks; with the hands, whether what it holds probable was so."""
        state, game = self._session.state, self._session.game
        truth = game.truth(state) if self._show_hands and not state.over else None
        name = self._session.label(thought.seat)
        self.aside(thought.in_words(name, question_in_words(game, thought.node), game.node(thought.node), truth))
        self._wait_visibly()

    def speaks(self, seat: int, words: str) -> None:
        self._voice.thinks(self._session.label(seat), words)

    def _begin_move(self) -> None:
        state = self._session.state
        self._seat, turn = state.seat, state.turns_played + 1
        if turn > self._turn:
            self._wait()
            self._held = self._teller.holds(self._seat) if self._show_hands else ""
        self._turn = turn
        self._wait_visibly()

    def _wait_visibly(self) -> None:
        if self._session.thinks(self._seat):
            self._voice.thinks(self._session.label(self._seat))

    def _show_hand(self) -> None:
        if self._held:
            self._say(f"[{self._session.label(self._seat)} holds {self._held}]")
        self._held = ""

    def _tell_move(self, moment: Moment) -> None:
        output, session = moment.output, self._session
        forfeited = isinstance(output, Forfeit)
        for each in () if forfeited else self._teller.moved(moment.seat, output, moment.events):
            truth = f"[{each.truth}]" if self._show_hands and each.truth else ""
            if text := " ".join(filter(None, (each.said, truth))):
                self._say(text)
        for fault in moment.faults:
            note(fault)
        if forfeited:
            self._say(forfeit_in_words(output.seat, session.label, session.game))

    def _say(self, text: str) -> None:
        self._voice(f"{max(1, self._turn):4}. {text}")


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


def save_record(path: Path, game: Game, record: Any) -> None:
    """Write a game's record and say so; raises RunStopped."""
    try:
        write_whole(path, records_of(game).dump(record))
    except RunStopped as error:
        raise RunStopped(f"the game was played, but {error}") from None
    say(f"record: {path}")


PACES: Final = {"slow": 2.2, "normal": 1.1, "fast": 0.45, "at-once": 0.0}  # seconds between turns


class _Pace(click.ParamType[float]):
    """Seconds, or the name of a pace."""

    name = "pace"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
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
    seconds = pace if pace is not None else PACES["normal" if sys.stdout.isatty() else "at-once"]
    return (lambda: sleep(seconds)) if seconds else lambda: None
