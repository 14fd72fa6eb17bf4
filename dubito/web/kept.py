"""One table: as its file has it, as it is played, as its person sees it.

A file holds the setup and every output so far, the bots' too: what they do when it is played again must be the same.
"""

from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar, Final, Literal

from pydantic import TypeAdapter, ValidationError
from starlette.exceptions import HTTPException

from dubito.errors import DubitoError, UsageError
from dubito.game_data import TurnOutput
from dubito.human import Setup, Sitting
from dubito.record import RecordedOutput
from dubito.registry import Registry
from dubito.web.frames import WORDS, Frame, after, dealt, names


@dataclass(frozen=True, slots=True)
class Kept:
    """A table as its file has it."""

    __pydantic_config__: ClassVar[dict[str, object]] = {"extra": "forbid", "strict": True}

    setup: Setup
    made: float
    touched: float
    outputs: list[RecordedOutput] = field(default_factory=list)
    record: str | None = None  # the finished game's name in the folder
    format: Literal["dubito table 1"] = "dubito table 1"


_KEPT: Final = TypeAdapter(Kept)


class Live:
    """A table that is being played: the game, and what its person has seen of it."""

    def __init__(self, setup: Setup, registry: Registry) -> None:
        self.sitting = Sitting(setup, registry)
        self.frames: list[Frame] = [dealt(self.sitting.game, self.sitting.label, setup.seat)]

    def step(self, output: TurnOutput | None = None) -> None:
        """One turn, and its frame."""
        sitting = self.sitting
        mover = sitting.game.seat
        played, events, said = sitting.step(output)
        self.frames.append(after(sitting.game, mover, played, events, said, sitting.me))

    def until_asked(self) -> None:
        """The bots' turns, until the person is asked or the game is over."""
        while not (self.sitting.asked or self.sitting.game.over):
            self.step()


def replayed(kept: Kept, registry: Registry) -> Live:
    """The game of a file, played again; refused if a bot does not do what it did."""
    try:
        live = Live(kept.setup, registry)
        for output in kept.outputs:
            given = TurnOutput(output.doubt, output.number, output.cards) if live.sitting.asked else None
            live.step(given)
            if live.sitting.recorder.outputs[-1] != output:
                seat = live.frames[-1].mover
                assert seat is not None
                name = live.sitting.label(seat)
                raise UsageError(f"{name} does not play as it did: its file was changed, or it is not repeatable")
    except DubitoError as error:
        raise HTTPException(410, f"This game cannot go on: {error}.") from None
    return live


def read(text: str) -> Kept:
    """The inverse of what was written; refused if it is anything else."""
    try:
        return _KEPT.validate_json(text)
    except (ValidationError, UsageError):
        raise HTTPException(410, "The file of this game is damaged: choose your bots again.") from None


def view_of(kept: Kept, live: Live, since: int) -> dict[str, Any]:
    """All that the person may know, with the frames from number `since` on."""
    sitting, setup = live.sitting, kept.setup
    over = sitting.game.over
    return {
        "names": names(setup.players, setup.seat),
        "me": setup.seat,
        "words": WORDS,
        "rules": asdict(setup.rules),
        "turn": len(kept.outputs),
        "asked": sitting.asked,
        "over": over,
        "first": since,
        "frames": [asdict(frame) for frame in live.frames[since:]],
        "result": sitting.game.result(sitting.me).value if over else None,
        "record": kept.record,
        "seed": setup.seed if over else None,  # with it, anybody can deal the same cards
        "errors": sitting.errors if over else [],
    }
