"""The cards of draw and defuse, by their names, and hands of them."""

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Final

BOMB: Final = "bomb"
DEFUSE: Final = "defuse"
DRAW: Final = "draw"  # an act that takes no card

DEALT: Final = {"skip": 4, "bottom": 4, "shuffle": 4, "see": 8, "nothing": 4}  # of these, five each (D1)
IN_HAND: Final = 5
SPARE: Final = 2  # defuse cards that go into the pile, with the bomb
HELD: Final = (DEFUSE, *DEALT)  # all cards that a hand may hold, in the order in which they are told
ALL_CARDS: Final[Mapping[str, int]] = MappingProxyType({BOMB: 1, DEFUSE: 2 + SPARE, **DEALT})

WITHIN: Final = ("shuffle", "see")  # acts after which the turn goes on
ENDING: Final = (DRAW, "skip", "bottom")  # acts that end it
ACTS: Final = (DRAW, "skip", "bottom", "shuffle", "see")
SHOWN: Final = 3  # a see card shows so many, from the top


class HandView:
    """What a seat holds, read from the game when asked; a bot's `self.cards`."""

    __slots__ = ("_held",)

    def __init__(self, held: Mapping[str, int]) -> None:
        self._held = held

    def count(self, card: str) -> int:
        """How many cards of that name are held; 0 for any other name."""
        return self._held.get(card, 0)

    def __contains__(self, card: object) -> bool:
        """Whether at least one card of that name is held."""
        return isinstance(card, str) and self._held.get(card, 0) > 0

    def __iter__(self) -> Iterator[str]:
        """The names, each as often as it is held."""
        for card in HELD:
            yield from (card,) * self._held[card]

    def __len__(self) -> int:
        """How many cards are held."""
        return sum(self._held.values())

    def __str__(self) -> str:
        """As `a defuse, 2 sees and a nothing`."""
        return in_words(self)


def in_words(cards: Iterable[str]) -> str:
    """What is held, in words: `a defuse, 2 sees and a nothing`."""
    held = [*cards]
    counts = {card: held.count(card) for card in HELD}
    parts = [f"{n} {card}s" if n > 1 else f"a {card}" for card, n in counts.items() if n]
    if len(parts) < 2:
        return parts[0] if parts else "no cards"
    return f"{', '.join(parts[:-1])} and {parts[-1]}"
