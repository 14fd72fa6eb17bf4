"""What prompts may tell a model about Kuhn poker."""

from typing import Any

from dubito.files import NoRules
from dubito.game import Facts
from dubito.game.log import Position, SeatLog
from games.kuhn.game import ActEvent, CardEvent, DealEvent

RULES = (
    "There are three cards: jack, queen and king, the king being the highest. Each of the two seats is dealt one, "
    "unseen by the other, and puts one chip into the pot. Seat 0 acts first, then the seats take turns. To bet puts a "
    "second chip into the pot; to bet after a bet calls it; to pass after a bet folds. If both pass, or a bet is "
    "called, the higher card wins the pot. If a bet is not called, whoever bet wins it."
)


class KuhnFacts(Facts):
    def facts(self, position: Position[NoRules]) -> dict[str, Any]:
        """Return the card that the seat holds and a line for each act. The log has only what the seat saw."""
        acts = [event for event in position.log if isinstance(event, ActEvent)]
        return {
            "rules": RULES,
            "seat": position.seat,
            "node": position.node,
            "card": next(event.card for event in position.log if isinstance(event, CardEvent)),
            "history": [f"Seat {event.seat}: {event.act}." for event in acts],
            "legal": ["pass", "bet"],
            "own_moves": [place for place, event in enumerate(acts) if event.seat == position.seat],
        }

    def steady_facts(self) -> frozenset[str]:
        return frozenset({"rules", "seat", "card"})

    def example_position(self, node: str) -> Position[NoRules]:
        """Seat 1 has a queen, and seat 0 has bet."""
        return Position(NoRules(), node, SeatLog(1, [DealEvent(), CardEvent("queen", only=1), ActEvent(0, "bet")]))
