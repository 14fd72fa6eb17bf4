"""One table: as its file has it, as it is played, as its person sees it.

A file holds the setup and every output so far, the bots' too: what they do when it is played again must be the same.
"""

import threading
from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar, Final, Literal

from pydantic import TypeAdapter, ValidationError
from starlette.exceptions import HTTPException

from dubito.errors import DubitoError, UsageError
from dubito.experiment.opponents import Opponents, trouble
from dubito.games.dubito.game_data import TurnOutput
from dubito.games.dubito.record import RecordedOutput
from dubito.human import Setup, as_sentence, names_to
from dubito.web.frames import WORDS, Frame, after, dealt

_BROKEN: Final = "something is broken here: the terminal that serves this page says what"


@dataclass(frozen=True, slots=True)
class TableFile:
    """A table as its file has it."""

    __pydantic_config__: ClassVar[dict[str, object]] = {"extra": "forbid", "strict": True}

    setup: Setup
    made: float
    touched: float
    outputs: list[RecordedOutput] = field(default_factory=list)
    record: str | None = None  # the finished game's name in the folder
    number: int = 0  # the game's, where what models are asked is kept
    format: Literal["dubito table 1"] = "dubito table 1"


_KEPT: Final = TypeAdapter(TableFile)


class Live:
    """A table that is being played: the game, and what its person has seen of it.

    One thread plays at a time; others may look, and wait until the game rests: until the person is asked, the game
    is over, or there is some trouble.
    """

    def __init__(self, kept: TableFile, opponents: Opponents) -> None:
        """Deal; the outputs of the file are not played yet."""
        self.kept = kept
        self.sitting = opponents.seat(kept.setup, kept.number)
        self.frames: list[Frame] = [dealt(self.sitting.game, self.sitting.label, kept.setup.seat)]
        self.trouble: str | None = None  # why the bots could not go on
        self.abandoned = False  # nobody looks at it any more
        self._rests = threading.Event()

    @property
    def rests(self) -> bool:
        """Whether nobody is playing."""
        return self._rests.is_set()

    def step(self, output: TurnOutput | None = None) -> None:
        """One turn, and its frame."""
        self._rests.clear()
        sitting = self.sitting
        mover = sitting.game.seat
        played, events, said = sitting.step(output)
        self.frames.append(after(sitting.game, mover, played, events, said, sitting.me))

    def until_asked(self) -> None:
        """The bots' turns, until the person is asked or the game is over; what ends them before is a trouble."""
        try:
            while not (self.sitting.asked or self.sitting.game.over or self.abandoned):
                self.step()
        except DubitoError as error:
            self.trouble = trouble(error)
        except BaseException:
            self.trouble = as_sentence(_BROKEN)
            raise

    def rest(self) -> None:
        """The bots have played; whoever waits goes on."""
        self._rests.set()

    def wait(self, seconds: float) -> None:
        """Until the game rests, or so long."""
        self._rests.wait(seconds)

    def view(self, since: int) -> dict[str, Any]:
        """All that the person may know, with the frames from number `since` on."""
        rests, frames, sitting = self.rests, list(self.frames), self.sitting
        over = rests and sitting.game.over
        return {
            "table": self.kept.number,
            "names": names_to(self.kept.setup.players, sitting.me),
            "me": sitting.me,
            "words": WORDS,
            "rules": asdict(self.kept.setup.rules),
            "turn": len(frames) - 1,
            "asked": rests and sitting.asked and self.trouble is None,
            "over": over and self.trouble is None,
            "trouble": self.trouble if rests else None,
            "first": since,
            "frames": [asdict(frame) for frame in frames[since:]],
            "result": sitting.game.result(sitting.me).value if over else None,
            "record": self.kept.record,
            "seed": self.kept.setup.seed if over else None,  # with it, anybody can deal the same cards
            "errors": sitting.errors if over else [],
        }


def replayed(kept: TableFile, opponents: Opponents) -> Live:
    """The game of a file, played again; refused if a bot does not do what it did."""
    try:
        live = Live(kept, opponents)
        live.sitting.play_again(kept.outputs, live.step)
    except DubitoError as error:
        raise HTTPException(410, as_sentence(f"this game cannot go on: {error}")) from None
    return live


def read(text: str) -> TableFile:
    """The inverse of what was written; refused if it is anything else."""
    try:
        return _KEPT.validate_json(text)
    except (ValidationError, UsageError):
        raise HTTPException(410, "The file of this game is damaged: choose your bots again.") from None
