"""The facts for prompts of draw and defuse (`dubito.game.Facts`).

The facts contain everything that a hand-written bot can see or derive, and nothing else. Players are identified by
seat, never by name.
"""

from functools import cache
from typing import Any, Final

from dubito.files import NoRules
from dubito.game import Facts
from dubito.game.log import Position, SeatLog
from dubito.games.defuse.engine import ACTS, DRAW, HAND_CARDS
from dubito.games.defuse.events import (
    DealEvent,
    DrawEvent,
    HandEvent,
    LookEvent,
    PlaceEvent,
    PlayEvent,
    TakeEvent,
)
from dubito.games.defuse.knowledge import Knowledge
from dubito.games.defuse.words import OBJECTIVE, rule_paragraphs

_NODES: Final = {
    "turn": "What do you do? Asked on your turn, and again after you play see or shuffle. draw takes the top card and "
    "ends your turn; skip plays a skip card and ends it; bottom plays a bottom card, takes the bottom card and ends "
    "it; shuffle and see play that card. You must hold the card.",
    "place": "Where in the pile do you put the bomb? Asked when you drew it and played a defuse card. 0 is the top, "
    "the number of cards in the pile is the bottom.",
}

# What the lines of prompts/defuse/shared/facts.jinja mean.
_MEANINGS: Final = {
    "seat": "your seat",
    "hand": "how many cards you hold of each kind",
    "own_cards, other_cards": "how many cards you and the other player hold",
    "pile": "how many cards are in the pile, without a bomb that you are placing",
    "played": "cards that both players have played",
    "unseen": "cards in the pile and the other player's hand together: all that you do not hold and did not see played",
    "known_from_top": "what you know of the pile, place by place from the top, ? for an unknown card. If the other "
    "player has put the bomb back since, these are the other cards in their order, and the bomb is somewhere among or "
    "below them",
    "last_look": "how many cards were drawn since your last see card, unless the pile was shuffled since",
    "bomb_put_back_since": "whether the other player has put the bomb back since that look",
    "bomb_between": "the first and the last place where the bomb may be; 0 is the top",
    "bomb_on_top, bomb_at_bottom": "the chance that you draw the bomb there; unknown if the other player chose its "
    "place and nobody has shuffled since",
    "node": "the question",
}


class DefuseFacts(Facts[NoRules]):
    BRIEF = {"question", "hand", "other_cards", "pile", "known_from_top", "bomb_on_top", "bomb_at_bottom"}

    def facts(self, position: Position[NoRules]) -> dict[str, Any]:
        """Return the facts as JSON values. Both nodes have the same keys; facts that do not apply are None."""
        known = position.known(Knowledge)
        pile = known.pile
        from_top = [card or "?" for card in pile.cards]
        while from_top and from_top[-1] == "?":
            from_top.pop()
        between = pile.bomb_range()
        question = "It is your turn. What do you do?"
        legal: list[str | int] = [act for act in ACTS if act == DRAW or act in known.hand]
        if position.node == "place":
            question = f"Where do you put the bomb? 0 is the top, {pile.size} the bottom."
            legal = list(range(pile.size + 1))
        return {
            **_steady(),
            "seat": position.seat,
            "history": known.history.copy(),
            "own_moves": known.own_moves.copy(),
            "node": position.node,
            "question": question,
            "legal": legal,
            "hand": {card: n for card in HAND_CARDS if (n := known.hand.count(card))},
            "own_cards": known.sizes[position.seat],
            "other_cards": known.sizes[1 - position.seat],
            "played": {card: n for card in HAND_CARDS if (n := known.played.count(card))},
            "unseen": known.unseen(),
            "pile": pile.size,
            "known_from_top": from_top,
            "last_look": pile.looked,
            "bomb_put_back_since": pile.hidden,
            "bomb_between": list(between) if between else None,
            "bomb_on_top": pile.chance_on(0),
            "bomb_at_bottom": pile.chance_on(-1),
        }

    def steady_facts(self) -> frozenset[str]:
        return frozenset({*_steady(), "seat"})

    def example_position(self, node: str) -> Position[NoRules]:
        """Return a fixed position from the middle of a game, in which seat 0 has looked and later drawn the bomb."""
        drawn = [DrawEvent(0, "top", bomb=True), PlayEvent(0, "defuse")] if node == "place" else []
        return Position(NoRules(), node, SeatLog(0, [*_EXAMPLE, *drawn]))


@cache
def _steady() -> dict[str, Any]:
    return {"rule_text": rule_paragraphs(), "objective": OBJECTIVE, "node_texts": _NODES, "meanings": _MEANINGS}


_EXAMPLE: Final = (
    DealEvent((6, 6), 17),
    HandEvent(("defuse", "skip", "bottom", "shuffle", "see", "nothing"), only=0),
    PlayEvent(0, "see"),
    LookEvent(("nothing", "see", "shuffle"), only=0),
    DrawEvent(0, "top", bomb=False),
    TakeEvent("nothing", only=0),
    DrawEvent(1, "top", bomb=False),
    DrawEvent(0, "top", bomb=False),
    TakeEvent("shuffle", only=0),
    DrawEvent(1, "top", bomb=True),
    PlayEvent(1, "defuse"),
    PlaceEvent(1),
    PlayEvent(0, "shuffle"),
)
