"""What prompts are told of Outsider: what was said as plain texts, which a prompt writes with `| quoted`."""

from dataclasses import asdict, dataclass
from typing import Any

from games.outsider.game import SEATS, TOPICS, DealEvent, OutsiderView

from dubito.game.record import PositionFile

RULES = (
    "All seats but one, the outsider, know a secret word of the topic. In turn each says one sentence about it, in "
    "which no word of the topic may stand. Then all vote at once for a seat that is not their own. If the outsider "
    "gets more votes than anybody else, all others win; if not, the outsider wins alone."
)


@dataclass(frozen=True, slots=True)
class Position:
    seat: int
    node: str
    topic: str
    word: str | None
    said: tuple[str, ...]
    others: tuple[str, ...]


class Notebook:
    """All that is needed stands in the view."""

    def __init__(self, seat: int, rules: Any) -> None:
        self._seat = seat

    def observe(self, event: DealEvent, cards: str | None) -> None:
        """Nothing that the view will not say."""

    def note_answer(self, node: str, answer: str) -> None:
        """Nor of what it did itself."""

    def position(self, node: str, view: OutsiderView, cards: str | None) -> Position:
        return Position(self._seat, node, view.topic, cards, view.said, tuple(view.others))


def facts(position: Position) -> dict[str, Any]:
    return asdict(position) | {
        "rules": RULES,
        "words": list(TOPICS[position.topic]),
        "said": [{"seat": place, "text": text} for place, text in enumerate(position.said)],
    }


def steady_facts() -> frozenset[str]:
    return frozenset({"rules", "seat", "topic", "word", "words", "others"})


def example_position(node: str) -> Position:
    """Seat 2 is to speak, or seat 0 to vote."""
    if node == "hint":
        return Position(2, node, "animals", "bat", ("You see it at night.", 'It "flies".'), SEATS[:2])
    return Position(0, node, "animals", None, ("It is small.", "It flies.", "Hm."), SEATS[1:3])


_FILE = PositionFile(Position, "outsider position 1", lambda one: None if one.topic in TOPICS else "no such topic")
to_json, from_json = _FILE.to_json, _FILE.from_json
