"""The facts for prompts of draw and defuse, and how positions are stored (`dubito.game.Facts`).

The facts contain everything that a hand-written bot can see or derive, and nothing else. Players are identified by
seat, never by name.
"""

from collections import Counter
from functools import cache
from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, Field

from dubito.files import CheckedModel
from dubito.game.record import PositionFile
from dubito.games.defuse.engine import ACTS, CARD_COUNTS, DEFUSE, DRAW, HAND_CARDS, HAND_SIZE
from dubito.games.defuse.knowledge import Act, ActName, Pile, Witness
from dubito.games.defuse.knowledge import Notebook as Notebook
from dubito.games.defuse.knowledge import Position as Position
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


BRIEF: Final = {"question", "hand", "other_cards", "pile", "known_from_top", "bomb_on_top", "bomb_at_bottom"}


def facts(position: Position) -> dict[str, Any]:
    """Return the facts as JSON values. Both nodes have the same keys; facts that do not apply are None.

    Raises UsageError for impossible actions.
    """
    witness, dealt = Witness(position), f"The cards are dealt. Yours: {', '.join(position.dealt)}."
    return {
        **_steady(),
        "seat": position.seat,
        "history": [dealt, *(_line(act, position.seat) for act in position.acts)],
        "own_moves": [number for number, act in enumerate(position.acts, start=1) if act.seat == position.seat],
        "node": position.node,
        **_question(position, witness),
        "hand": {card: n for card in HAND_CARDS if (n := witness.hand[card])},
        "own_cards": witness.sizes[position.seat],
        "other_cards": witness.sizes[1 - position.seat],
        "played": {card: n for card in HAND_CARDS if (n := witness.played.count(card))},
        "unseen": witness.unseen(),
        **_pile(witness.pile),
    }


def steady_facts() -> frozenset[str]:
    return frozenset({*_steady(), "seat"})


@cache
def _steady() -> dict[str, Any]:
    return {"rule_text": rule_paragraphs(), "objective": OBJECTIVE, "node_texts": _NODES, "meanings": _MEANINGS}


def _question(position: Position, witness: Witness) -> dict[str, Any]:
    if position.node == "place":
        last = witness.pile.size
        return {
            "question": f"Where do you put the bomb? 0 is the top, {last} the bottom.",
            "legal": list(range(last + 1)),
        }
    legal = [act for act in ACTS if act == DRAW or witness.hand[act]]
    return {"question": "It is your turn. What do you do?", "legal": legal}


def _pile(pile: Pile) -> dict[str, Any]:
    known = [card or "?" for card in pile.cards]
    while known and known[-1] == "?":
        known.pop()
    between = pile.bomb_range()
    return {
        "pile": pile.size,
        "known_from_top": known,
        "last_look": pile.looked,
        "bomb_put_back_since": pile.hidden,
        "bomb_between": list(between) if between else None,
        "bomb_on_top": pile.chance_on(0),
        "bomb_at_bottom": pile.chance_on(-1),
    }


def _line(act: Act, own: int) -> str:
    """Describe an action as seen by a seat."""
    mine = act.seat == own
    who, s = ("You", "") if mine else (f"seat {act.seat}", "s")
    match act.act:
        case "see":
            return f"{who} play{s} see." + (f" The top cards are {', '.join(act.cards)}." if mine else "")
        case "shuffle":
            return f"{who} play{s} shuffle; the pile is shuffled."
        case "skip":
            return f"{who} play{s} skip."
        case "place":
            return f"{who} put{s} the bomb back" + (f" at place {act.place}." if mine else ".")
    drawn = "a card" if act.card is None else f"the {act.card}" if act.card == "bomb" else f"a {act.card}"
    defuse = f" and play{s} defuse" if act.card == "bomb" else ""
    if act.act == "bottom":
        return f"{who} play{s} bottom: {drawn} from the bottom{defuse}."
    return f"{who} draw{s} {drawn} from the top{defuse}."


Seat = Annotated[int, Field(ge=0, le=1)]
Held = Literal["defuse", "skip", "bottom", "shuffle", "see", "nothing"]
Card = Literal["bomb", "defuse", "skip", "bottom", "shuffle", "see", "nothing"]


class _Act(CheckedModel):
    seat: Seat
    act: ActName
    card: Card | None = None
    cards: Annotated[tuple[Card, ...], Field(max_length=3)] = ()
    place: Annotated[int, Field(ge=0)] | None = None


def _find_fault(position: Position) -> str | None:
    """Explain why no game can reach this position, or return None. Raises UsageError for impossible actions."""
    dealt = Counter(position.dealt)
    if (
        dealt[DEFUSE] != 1
        or len(position.dealt) != HAND_SIZE + 1
        or any(dealt[card] > n for card, n in CARD_COUNTS.items())
    ):
        return f"dealt: must contain a defuse card and {HAND_SIZE} other cards"
    witness = Witness(position)
    if witness.seat != position.seat:
        return f"acts: the next question is for seat {witness.seat}"
    if witness.placing != (position.node == "place"):
        return "node: must be place after the bomb was drawn, and turn otherwise"
    return None


_ACT: Final = AfterValidator(lambda act: Act(**act.model_dump()))
_TYPES: Final = {"seat": Seat, "dealt": tuple[Held, ...], "acts": tuple[Annotated[_Act, _ACT], ...]}
_FILE: Final = PositionFile(Position, "defuse position 1", _find_fault, _TYPES, usual=False)
to_json, from_json = _FILE.to_json, _FILE.from_json


def example_position(node: str) -> Position:
    """Return a fixed position from the middle of a game, in which seat 0 has looked and later drawn the bomb."""
    acts = [
        Act(0, "see", cards=("nothing", "see", "shuffle")),
        Act(0, "draw", "nothing"),
        Act(1, "draw"),
        Act(0, "draw", "shuffle"),
        Act(1, "draw", "bomb"),
        Act(1, "place"),
        Act(0, "shuffle"),
    ]
    dealt = ("defuse", "skip", "bottom", "shuffle", "see", "nothing")
    if node == "turn":
        return Position(0, "turn", dealt, tuple(acts))
    return Position(0, "place", dealt, (*acts, Act(0, "draw", "bomb")))
