"""The game's facts for prompts."""

from typing import Any

from dubito.game import Facts
from dubito.game.log import Position, SeatLog

from .state import NODES, Begun, HandDealt, Moved, Rules, Seen


class GuessFacts(Facts[Rules]):
    def facts(self, position: Position[Rules]) -> dict[str, Any]:
        """Return the facts as plain values."""
        held = next(event.cards for event in position.log if isinstance(event, HandDealt))
        moves = [event for event in position.log if isinstance(event, Moved)]
        said_none = any((move.seat, move.seen) == (position.seat, "none") for move in moves)
        return {
            "rule_text": f"A game of {position.rules.turns} turns, four moves each.",
            "seat": position.seat,
            "node": position.node,
            "held": list(held),
            "legal": list(Seen(position.node, held, said_none).legal),
            "history": [f"Seat {move.seat} said {move.node}: {move.seen}." for move in moves],
            "own_moves": [place for place, move in enumerate(moves) if move.seat == position.seat],
        }

    def steady_facts(self) -> frozenset[str]:
        return frozenset(("rule_text", "seat"))

    def example_position(self, node: str) -> Position[Rules]:
        moves = [Moved(0, one.name, "...") for one in NODES[: [one.name for one in NODES].index(node)]]
        return Position(Rules(), node, SeatLog(0, [Begun(), HandDealt((1, 2, 2), only=0), *moves]))
