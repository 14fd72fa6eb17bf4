"""What prompts are told of Kuhn poker."""

import json
from dataclasses import asdict, dataclass
from typing import Any

from dubito.errors import UsageError
from games.kuhn.spec import CARDS, ActEvent, KuhnRules, KuhnView

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

    def __init__(self, seat: int, rules: KuhnRules) -> None:
        self._seat = seat

    def observe(self, event: ActEvent, cards: str) -> None:
        """Nothing that the view will not say."""

    def answered(self, node: str, answer: str) -> None:
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
        "own_moves": list(range(position.seat, len(position.acts), 2)),
    }


def steady_facts() -> frozenset[str]:
    return frozenset({"rules", "seat", "card"})


def example_position(node: str) -> Position:
    """Seat 1 has a queen and is bet into."""
    return Position(1, node, "queen", ("bet",))


def to_json(position: Position) -> str:
    return json.dumps(asdict(position)) + "\n"


def from_json(text: str) -> Position:
    try:
        said = json.loads(text)
        position = Position(said["seat"], said["node"], said["card"], tuple(said["acts"]))
    except (ValueError, TypeError, KeyError):
        raise UsageError("this is no position of Kuhn poker: it has seat, node, card and acts") from None
    if position.card not in CARDS or position.seat != len(position.acts) % 2:
        raise UsageError("this is no position of Kuhn poker: no such card, or it is the other seat's turn")
    return position
