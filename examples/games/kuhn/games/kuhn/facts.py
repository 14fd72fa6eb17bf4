"""The facts for prompts about Kuhn poker."""

from typing import Any

from dubito.files import NoRules
from dubito.game import Facts
from dubito.game.log import Position, SeatLog
from games.kuhn.game import ACTS, ActEvent, CardEvent, DealEvent

RULES = (
    "There are three cards: jack, queen and king. The king is the highest. Each of the two seats is dealt one, unseen "
    "by the other, and puts one chip into the pot. Seat 0 acts first, then the seats take turns. To bet puts a second "
    "chip into the pot; to bet after a bet calls it; to pass after a bet folds. If both pass, or a bet is called, the "
    "higher card wins the pot. If a bet is not called, the seat that bet wins it."
)


class KuhnFacts(Facts):
    def facts(self, position: Position[NoRules]) -> dict[str, Any]:
        acts = [event for event in position.log if isinstance(event, ActEvent)]
        return {
            "rules": RULES,
            "seat": position.seat,
            "card": next(event.card for event in position.log if isinstance(event, CardEvent)),
            "history": [f"Seat {event.seat}: {event.act}." for event in acts],
            "legal": list(ACTS),
            "own_moves": [place for place, event in enumerate(acts) if event.seat == position.seat],
        }

    def steady_facts(self) -> frozenset[str]:
        return frozenset({"rules", "seat", "card"})

    def example_position(self, node: str) -> Position[NoRules]:
        return Position(NoRules(), node, SeatLog(1, [DealEvent(), CardEvent("queen", only=1), ActEvent(0, "bet")]))
