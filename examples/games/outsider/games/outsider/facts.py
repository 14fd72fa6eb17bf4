"""The facts for prompts about Outsider. Messages are plain text; prompts show them with `| quoted`."""

from typing import Any

from dubito.files import NoRules
from dubito.game import Facts
from dubito.game.log import Position, SeatLog
from games.outsider.game import SEATS, TOPICS, DealEvent, HintEvent, WordEvent

RULES = (
    "All seats except the outsider know a secret word of the topic. In turn, each says one sentence about it, which "
    "must not contain any word of the topic. Then all vote at the same time for another seat. If the outsider gets "
    "more votes than any other seat, all other seats win; if not, the outsider wins alone."
)


class OutsiderFacts(Facts):
    def facts(self, position: Position[NoRules]) -> dict[str, Any]:
        log = position.log
        dealt = next(event for event in log if isinstance(event, DealEvent))
        return {
            "rules": RULES,
            "seat": position.seat,
            "node": position.node,
            "topic": dealt.topic,
            "words": list(TOPICS[dealt.topic]),
            "word": next(event.word for event in log if isinstance(event, WordEvent)),
            "said": [{"seat": event.seat, "text": event.said} for event in log if isinstance(event, HintEvent)],
            "others": [SEATS[seat] for seat in range(dealt.seats) if seat != position.seat],
        }

    def steady_facts(self) -> frozenset[str]:
        return frozenset({"rules", "seat", "topic", "word", "words", "others"})

    def example_position(self, node: str) -> Position[NoRules]:
        """Return a position in which seat 2 says a sentence, or seat 0 votes."""
        if node == "hint":
            hints = [HintEvent(0, "You see it at night."), HintEvent(1, 'It "flies".')]
            return _position(node, 2, "bat", hints)
        return _position(node, 0, None, [HintEvent(0, "It is small."), HintEvent(1, "It flies."), HintEvent(2, "Hm.")])


def _position(node: str, seat: int, word: str | None, hints: list[HintEvent]) -> Position[NoRules]:
    return Position(NoRules(), node, SeatLog(seat, [DealEvent("animals", 3), WordEvent(word, only=seat), *hints]))
