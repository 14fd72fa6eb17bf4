"""One table: as its file has it, as it is played, as its person sees it.

A file holds the setup and every output so far, the bots' too: what they do when it is played again must be the same.
"""

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Annotated, Any, Final, Literal

from pydantic import Field, TypeAdapter, ValidationError
from starlette.exceptions import HTTPException

from dubito.errors import DubitoError, UsageError, one_line
from dubito.game import PlayerKind
from dubito.game.record import Strict
from dubito.game.words import names_to
from dubito.show.person import Opponents, Setup, as_sentence, trouble
from dubito.web.frames import after, dealt, words

BROKEN: Final = "something is broken here: the terminal that serves this page says what"
_Moment = Annotated[float, Field(ge=0, lt=datetime.max.replace(tzinfo=UTC).timestamp())]  # seconds since 1970


@dataclass(frozen=True, slots=True)
class TableFile(Strict):
    """A table as its file has it."""

    setup: Setup
    made: _Moment
    touched: _Moment
    outputs: list[Any] = field(default_factory=list)
    chosen: bool = False  # whether the person chose their seat
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
        kinds, me = opponents.kinds(kept.setup.bots), kept.setup.seat
        self._kinds: list[PlayerKind] = [*kinds[:me], "person", *kinds[me:]]
        self.frames: list[dict[str, Any]] = [dealt(self.sitting)]
        self.trouble: str | None = None  # why the bots could not go on
        self.abandoned = False  # nobody looks at it any more
        self._rests = threading.Event()

    @property
    def rests(self) -> bool:
        """Whether nobody is playing."""
        return self._rests.is_set()

    def step(self, output: Any = None) -> None:
        """One move, and its frame."""
        self._rests.clear()
        sitting = self.sitting
        mover, turn = sitting.game.seat, sitting.game.turns_played + 1
        played, events, said = sitting.step(output)
        self.frames.append(after(sitting, len(self.frames), turn, mover, played, events, said))

    def until_asked(self) -> None:
        """The bots' turns, until the person is asked or the game is over; what ends them before is a trouble."""
        try:
            while not (self.sitting.asked or self.sitting.game.over or self.abandoned):
                self.step()
        except DubitoError as error:
            self.trouble = trouble(error)
        except BaseException:
            self.trouble = as_sentence(BROKEN)
            raise

    def rest(self) -> None:
        """The bots have played: wake all who wait for that."""
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
            "kinds": self._kinds,
            "me": sitting.me,
            "game": sitting.spec.name,
            "words": words(sitting),
            "rules": self.kept.setup.rules,
            "turn": len(frames) - 1,
            "asked": rests and sitting.asked and self.trouble is None,
            "over": over and self.trouble is None,
            "trouble": self.trouble if rests else None,
            "first": since,
            "frames": frames[since:],
            "result": sitting.ended() if over else None,
            "ended": sitting.ended_in_words() if over else None,
            "record": self.kept.record,
            "seed": self.kept.setup.seed if over else None,  # with it, anybody can deal the same cards
            "errors": sitting.errors if over else [],
        }


def replayed(kept: TableFile, opponents: Mapping[str, Opponents]) -> Live:
    """The game of a file, played again; refused if it is not there, or a bot does not do what it did."""
    try:
        if kept.setup.game not in opponents:
            raise UsageError(f"there is no game {one_line(kept.setup.game, 60)} any more")
        live = Live(kept, opponents[kept.setup.game])
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
