"""Facts about Stacks for prompts."""

import json
from dataclasses import asdict, dataclass
from typing import Any

from games.stacks.game import DrawnEvent, Hand, LaidEvent, Rules, View

from dubito.errors import UsageError


@dataclass(frozen=True, slots=True)
class Position:
    """All information of the seat to move."""

    seat: int
    node: str
    held: tuple[int, ...]
    heights: tuple[int, ...]
    drawn: tuple[int, ...]
    laid: int


class Notebook:
    """Remembers the drawn cards, and how many cards were laid."""

    def __init__(self, seat: int, rules: Rules) -> None:
        self._seat, self._drawn, self._laid = seat, list[int](), 0

    def observe(self, event: Any, cards: Hand) -> None:
        if isinstance(event, DrawnEvent):
            self._drawn.append(event.card)
        self._laid += isinstance(event, LaidEvent)

    def note_answer(self, node: str, answer: Any) -> None:
        """Remove the played card from the hand."""

    def position(self, node: str, view: View, cards: Hand) -> Position:
        return Position(self._seat, node, cards.held, view.heights, tuple(self._drawn), self._laid)


def facts(position: Position) -> dict[str, Any]:
    return {
        "seat": position.seat,
        "held": list(position.held),
        "heights": list(position.heights),
        "drawn": list(position.drawn),
        "laid": position.laid,
    }


def steady_facts() -> frozenset[str]:
    return frozenset({"seat"})


def example_position(node: str) -> Position:
    return Position(1, "lay", (1, 3, 6), (1, 0), (), 1)


def to_json(position: Position) -> str:
    return json.dumps(asdict(position)) + "\n"


def from_json(text: str) -> Position:
    try:
        said = json.loads(text)
        seat, node, laid = said["seat"], said["node"], said["laid"]
        return Position(seat, node, tuple(said["held"]), tuple(said["heights"]), tuple(said["drawn"]), laid)
    except (ValueError, TypeError, KeyError):
        raise UsageError("this is no position of Stacks") from None
