"""Facts about Stacks for prompts."""

from typing import Any

from games.stacks.game import DealEvent, DrawnEvent, HandEvent, LaidEvent, OwnCardEvent, Rules

from dubito.game import Facts
from dubito.game.log import Position, SeatLog


class StacksFacts(Facts[Rules]):
    def facts(self, position: Position[Rules]) -> dict[str, Any]:
        held, heights, drawn = list[int](), list[int](), list[int]()
        for event in position.log:
            match event:
                case DealEvent(seats):
                    heights = [0] * seats
                case HandEvent(cards):
                    held = [*cards]
                case LaidEvent(seat):
                    heights[seat] += 1
                case OwnCardEvent(card):
                    held.remove(card)
                case DrawnEvent(card):
                    held.append(card)
                    drawn.append(card)
        return {"seat": position.seat, "held": held, "heights": heights, "drawn": drawn, "laid": sum(heights)}

    def steady_facts(self) -> frozenset[str]:
        return frozenset({"seat"})

    def example_position(self, node: str) -> Position[Rules]:
        return Position(Rules(), "lay", SeatLog(1, [DealEvent(2), HandEvent((1, 3, 6), only=1), LaidEvent(0)]))
