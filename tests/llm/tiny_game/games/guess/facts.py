"""The game's facts for prompts."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from .state import NODES, Moved, Rules, Seen


@dataclass(frozen=True, slots=True)
class Position:
    """All information that a seat has when a node is asked."""

    seat: int
    node: str
    turns: int
    held: tuple[int, ...]
    legal: tuple[Any, ...]
    moves: tuple[tuple[int, str, Any], ...]


class Notebook:
    """Remembers all moves."""

    def __init__(self, seat: int, rules: Rules) -> None:
        self.seat, self.rules = seat, rules
        self.moves: list[Moved] = []

    def observe(self, event: Any, cards: Sequence[int]) -> None:
        if hasattr(event, "seen"):
            self.moves.append(event)

    def note_answer(self, node: str, answer: Any) -> None:
        """Ignore it, because every seat observes the move."""

    def position(self, node: str, view: Seen, cards: Sequence[int]) -> Position:
        moves = tuple((move.seat, move.node, move.seen) for move in self.moves)
        return Position(self.seat, node, self.rules.turns, tuple(cards), tuple(view.legal), moves)


def facts(position: Position) -> dict[str, Any]:
    """Return the facts as plain values."""
    return {
        "rule_text": f"A game of {position.turns} turns, four moves each.",
        "seat": position.seat,
        "node": position.node,
        "held": list(position.held),
        "legal": list(position.legal),
        "history": [f"Seat {seat} said {node}: {seen}." for seat, node, seen in position.moves],
        "own_moves": [place for place, (seat, _, _) in enumerate(position.moves) if seat == position.seat],
    }


def steady_facts() -> frozenset[str]:
    return frozenset(("rule_text", "seat"))


def example_position(node: str) -> Position:
    moves = tuple((0, one.name, "...") for one in NODES[: [one.name for one in NODES].index(node)])
    return Position(0, node, 4, (1, 2, 2), tuple(Seen(node, (1, 2, 2), False).legal), moves)


def to_json(position: Position) -> str:
    return json.dumps(asdict(position)) + "\n"


def from_json(text: str) -> Position:
    """Return facts from their JSON form."""
    plain = json.loads(text)
    plain.pop("hidden", None)
    moves = tuple((seat, node, seen) for seat, node, seen in plain.pop("moves"))
    return Position(**plain | {"held": tuple(plain["held"]), "legal": tuple(plain["legal"]), "moves": moves})
