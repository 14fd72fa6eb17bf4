"""The public state of a BS table, and the view of the seat to move."""

from dataclasses import dataclass, field
from typing import Any, Final, Literal

from dubito.errors import IllegalOutput
from dubito.games.bs.cards import Hand, type_in_words

SEATS: Final = (0, 1, 2, 3)  # in turn order

NodeName = Literal["cards", "bs"]


@dataclass(eq=False, slots=True)
class PublicState:
    """The public state of the table. The engine updates it and views read it."""

    hands: list[int]  # sizes
    mover: int = 0
    number: int = 0
    pile: int = 0
    round: int = 1
    node: NodeName = field(default="cards", init=False)
    n_cards: int = field(default=0, init=False)


class View:
    """A read-only view of the table, computed from the game on access.

    A stored view shows the current state of the game.
    """

    __slots__ = ("_hand", "_public")

    def __init__(self, public: PublicState, hand: Hand | None = None) -> None:
        self._public = public
        self._hand = hand

    @property
    def node(self) -> NodeName:
        return self._public.node

    @property
    def number(self) -> int:
        return self._public.number

    @property
    def mover(self) -> int:
        return self._public.mover

    @property
    def n_cards(self) -> int:
        return self._public.n_cards

    @property
    def pile(self) -> int:
        return self._public.pile

    @property
    def hands(self) -> tuple[int, ...]:
        return tuple(self._public.hands)

    @property
    def order(self) -> tuple[int, ...]:
        return SEATS

    @property
    def round(self) -> int:
        return self._public.round

    def why_illegal(self, output: Any) -> str | None:
        """Return why this is not a legal answer to the current question, or None if it is legal."""
        try:
            check(self._public.node, output, self._hand)
        except IllegalOutput as error:
            return str(error)
        return None


Table = View  # the name used by BS bots


def check(node: NodeName, output: object, hand: Hand | None) -> None:
    """Raise IllegalOutput unless this is a legal answer to the question with this hand."""
    if node == "bs":
        if output is not True and output is not False:
            raise IllegalOutput(f"bs must be answered with True or False, not {type_in_words(output)}")
    elif hand is None:
        raise IllegalOutput("this view is between two questions, so it accepts no answer")
    else:
        hand.chosen(output)


def explain_shortage(number: int, held: int, wanted: int) -> str:
    if not held:
        return f"the hand holds no card of number {number}; play cards that it holds"
    return f"the hand holds {held} card{'s' * (held > 1)} of number {number}, not {wanted}"
