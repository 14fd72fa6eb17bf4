"""The facts for prompts about Tricks."""

from typing import Any

from dubito.game import Facts, GameEvent
from dubito.game.log import Position, SeatLog
from games.tricks.game import DealEvent, HandEvent, PlayEvent, TrickEvent, TricksRules, legal_cards

RULES = (
    "The deck has four suits of six cards each: 9, 10, jack, queen, king and ace, from the lowest to the highest. Each "
    "of the three seats is dealt eight cards. Seat 0 leads a card to the first trick, and the other seats each play "
    "one in turn. A seat must play a card of the suit that was led, if it has one. The highest trump wins the trick; "
    "without a trump, the highest card of the suit that was led wins it. The winner leads the next trick. After eight "
    "tricks, the seat with the most tricks wins."
)


class Knowledge:
    """What a seat knows, computed from its log."""

    def __init__(self, rules: TricksRules, seat: int) -> None:
        self.seat = seat
        self.hand: list[str] = []
        self.trick: list[str] = []
        self.taken = [0, 0, 0]
        self.history: list[str] = []
        self.own_moves: list[int] = []

    def see(self, event: GameEvent) -> None:
        match event:
            case HandEvent(cards):
                self.hand = [*cards]
            case PlayEvent(seat, card):
                if seat == self.seat:
                    self.hand.remove(card)
                    self.own_moves.append(len(self.history))
                self.trick.append(card)
                self.history.append(f"Seat {seat}: {card}.")
            case TrickEvent(seat):
                self.trick = []
                self.taken[seat] += 1
                self.history.append(f"Seat {seat} wins the trick.")


class TricksFacts(Facts):
    def facts(self, position: Position[TricksRules]) -> dict[str, Any]:
        known = position.known(Knowledge)
        return {
            "rules": RULES,
            "seat": position.seat,
            "node": position.node,
            "trump": position.rules.trump,
            "hand": [*known.hand],
            "trick": [*known.trick],
            "taken": [*known.taken],
            "history": [*known.history],
            "own_moves": [*known.own_moves],
            "legal": legal_cards(known.hand, known.trick),
        }

    def steady_facts(self) -> frozenset[str]:
        return frozenset({"rules", "seat", "trump"})

    def example_position(self, node: str) -> Position[TricksRules]:
        hand = ("9 of clubs", "ace of clubs", "jack of hearts", "9 of spades", "king of spades")
        log = [DealEvent("spades"), HandEvent(hand, only=1), PlayEvent(0, "king of clubs")]
        return Position(TricksRules(), node, SeatLog(1, log))
