"""What a game reports about its moves, and a bot about its answers."""

import json
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Final

NOBODY: Final = -1  # `GameEvent.only` of a truth that no seat sees
# Values of `State.apply`'s `announce`; 0 reports nothing.
ANNOUNCED: Final = 1  # report what bots observe
EVERYTHING: Final = 2  # report all events, for a log


class GameEvent:
    """Something that happened. Immutable, because all observers share it."""

    __slots__ = ()
    __pydantic_config__: ClassVar[dict[str, object]] = {"extra": "forbid", "strict": True}  # in files of positions

    only: int | None = None  # the only seat that sees the event, or NOBODY; None if every seat in the game does
    leaves: int | None = None  # the seat that sees nothing after this event
    # Whether the event is only for logs. Bots do not observe it, because their view and their hand show it.
    silent: ClassVar[bool] = False


@dataclass(frozen=True, slots=True)
class AnswerEvent(GameEvent):
    """The answer that a seat gave to a question. Only that seat sees it."""

    silent = True

    node: str
    answer: Any
    only: int | None = None


@dataclass(frozen=True, slots=True)
class RevealEvent(GameEvent):
    """A seat makes everyone see cards. Pages turn them over one by one."""

    seat: int
    cards: tuple[str, ...]
    wrong: tuple[str, ...] | None = None  # the cards that make a claim a lie; None if nothing was claimed


@dataclass(frozen=True, slots=True)
class TakeEvent(GameEvent):
    """A seat takes cards that everyone sees, or that were just revealed. On pages they fly to it."""

    seat: int
    cards: tuple[str, ...]
    into_hand: bool = True


def event_to_json(event: GameEvent) -> dict[str, Any]:
    """Return the name and the fields of an event as JSON values."""
    fields = asdict(event)  # type: ignore[call-overload]
    content: dict[str, Any] = json.loads(json.dumps({"event": type(event).__name__, **fields}))
    return content


class Listener:
    """Receives each question of a turn and its answer. Override the methods you need."""

    def note_question(self, node: str) -> None:
        """Handle a node that is about to be asked."""

    def note_answer(self, node: str, answer: Any) -> None:
        """Handle the answer to the last node."""
