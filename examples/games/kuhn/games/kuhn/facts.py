"""What prompts are told of Kuhn poker."""

from dataclasses import dataclass
from typing import Any

from dubito.files import NoRules
from dubito.game.record import PositionFile
from games.kuhn.game import CARDS, ActEvent, KuhnView

RULES = (
    "There are three cards: jack, queen and king, the king being the highest. Each of the two seats is dealt one, "
    "unseen by the other, and puts one chip into the pot. Seat 0 acts first, then the seats take turns. To bet puts a "
    "second chip into the pot; to bet after a bet calls it; to pass after a bet folds. If both pass, or a bet is "
    "called, the higher card wins the pot. If a bet is not called, whoever bet wins it."
)


@dataclass(frozen=True, slots=True)
class Position:
    """All that the seat to move has."""

    seat: int
    node: str
    card: str
    acts: tuple[str, ...]


class Notebook:
    """The acts so far stand in the view: there is nothing to keep."""

    def __init__(self, seat: int, rules: NoRules) -> None:
        self._seat = seat

    def observe(self, event: ActEvent, cards: str) -> None:
        """Nothing that the view will not say."""

    def note_answer(self, node: str, answer: str) -> None:
        """What the own seat did, too."""

    def position(self, node: str, view: KuhnView, cards: str) -> Position:
        return Position(self._seat, node, cards, view.acts)


def facts(position: Position) -> dict[str, Any]:
    """The card that is held, and what was done, an act a line."""
    return {
        "rules": RULES,
        "seat": position.seat,
        "node": position.node,
        "card": position.card,
        "history": [f"Seat {place % 2}: {act}." for place, act in enumerate(position.acts)],
        "legal": list(KuhnView(position.acts).legal()),
        "own_moves": list(range(position.seat, len(position.acts), 2)),
    }


def steady_facts() -> frozenset[str]:
    return frozenset({"rules", "seat", "card"})


def example_position(node: str) -> Position:
    """Seat 1 has a queen and is bet into."""
    return Position(1, node, "queen", ("bet",))


def fault(position: Position) -> str | None:
    """Why no game can have this position, though its fields are of their types."""
    if position.card not in CARDS or position.seat != len(position.acts) % 2:
        return "there is no such card, or it is the other seat's turn"
    return None


FILE = PositionFile(Position, "kuhn position 1", fault)
to_json, from_json = FILE.to_json, FILE.from_json
