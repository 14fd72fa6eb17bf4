"""What prompts are told of draw and defuse, and how its positions are kept (`dubito.game.Facts`).

Everything that a hand-written bot can see or derive is in the facts, and nothing else. Players are seats, never names.
"""

from collections import Counter
from functools import cache
from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, Field

from dubito.files import Checked
from dubito.game.record import PositionFile
from dubito.games.defuse.engine import ACTS, DEALT, DEFUSE, DRAW, HELD, IN_HAND
from dubito.games.defuse.knowledge import Act, ActName, Pile, Witness
from dubito.games.defuse.knowledge import Notebook as Notebook
from dubito.games.defuse.knowledge import Position as Position
from dubito.games.defuse.words import OBJECTIVE, rule_sentences

_NODES: Final = {
    "turn": "Asked on your turn, and again after a see or shuffle card that you have played in it: what do you do? "
    "draw takes the top card and ends your turn; skip plays a skip card and ends it; bottom plays a bottom card, takes "
    "the bottom card and ends it; shuffle and see play such a card, and you are asked again. You must hold the card.",
    "place": "Asked when you have drawn the bomb and a defuse card was played for you: where in the pile does the bomb "
    "go? 0 is the top, the number of cards in the pile the bottom.",
}

# What each line of the shared partial means.
_MEANINGS: Final = {
    "seat": "your seat",
    "hand": "your cards, how many of each name",
    "own_cards, other_cards": "how many cards you hold, and the other player",
    "pile": "how many cards the pile has, without a bomb that is to be placed",
    "played": "the cards that both have played, how many of each name",
    "unseen": "the cards of the pile and of the other's hand together: all that you neither hold nor saw played",
    "known_from_top": "what you know to lie in the pile, place by place from the top, ? for what you do not know; "
    "where the other player has put the bomb back since, these are the other cards in their order, and the bomb lies "
    "somewhere among or below them",
    "last_look": "how many cards were drawn since your last see card, unless the pile was shuffled since",
    "bomb_put_back_since": "whether the other player has put the bomb back since that look",
    "bomb_between": "the first and the last place at which the bomb may lie, 0 being the top",
    "bomb_on_top, bomb_at_bottom": "the chance that the bomb is drawn there; unknown where the other player has chosen "
    "its place and nobody has shuffled since",
    "node": "the question that is asked",
}


def facts(position: Position) -> dict[str, Any]:
    """The facts as plain values that JSON can hold; the keys are the same at both nodes, and None where one is lacking.

    Raises UsageError for acts that no game can have.
    """
    witness, dealt = Witness(position), f"The cards are dealt. Yours: {', '.join(position.dealt)}."
    return {
        **_steady(),
        "seat": position.seat,
        "history": [dealt, *(_line(act, position.seat) for act in position.acts)],
        "own_moves": [number for number, act in enumerate(position.acts, start=1) if act.seat == position.seat],
        "node": position.node,
        **_question(position, witness),
        "hand": {card: n for card in HELD if (n := witness.hand[card])},
        "own_cards": witness.sizes[position.seat],
        "other_cards": witness.sizes[1 - position.seat],
        "played": {card: n for card in HELD if (n := witness.played.count(card))},
        "unseen": witness.unseen(),
        **_pile(witness.pile),
    }


def steady_facts() -> frozenset[str]:
    return frozenset({*_steady(), "seat"})


@cache
def _steady() -> dict[str, Any]:
    return {"rule_text": rule_sentences(), "objective": OBJECTIVE, "node_texts": _NODES, "meanings": _MEANINGS}


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
    between = pile.bomb_from()
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
    """What a seat has seen of an act."""
    mine = act.seat == own
    who, s = ("You", "") if mine else (f"seat {act.seat}", "s")
    match act.act:
        case "see":
            return f"{who} play{s} see" + (f": from the top {', '.join(act.cards)}." if mine else ".")
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


class _Act(Checked):
    seat: Seat
    act: ActName
    card: Card | None = None
    cards: Annotated[tuple[Card, ...], Field(max_length=3)] = ()
    place: Annotated[int, Field(ge=0)] | None = None


def _fault(position: Position) -> str | None:
    """Why no game can have it; raises UsageError for acts that none can."""
    dealt = Counter(position.dealt)
    if dealt[DEFUSE] != 1 or len(position.dealt) != IN_HAND + 1 or any(dealt[card] > n for card, n in DEALT.items()):
        return f"dealt: it is a defuse card and {IN_HAND} others"
    witness = Witness(position)
    if witness.seat != position.seat:
        return f"acts: after them it is seat {witness.seat} that is asked"
    if witness.placing != (position.node == "place"):
        return "node: place is asked after the bomb was drawn, and turn otherwise"
    return None


_ACT: Final = AfterValidator(lambda act: Act(**act.model_dump()))
_TYPES: Final = {"seat": Seat, "dealt": tuple[Held, ...], "acts": tuple[Annotated[_Act, _ACT], ...]}
_FILE: Final = PositionFile(Position, "defuse position 1", _fault, _TYPES, usual=False)
to_json, from_json = _FILE.to_json, _FILE.from_json


def example_position(node: str) -> Position:
    """A fixed position in the middle of a game: seat 0 has looked, and drawn the bomb later."""
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
