"""Sapper, who reckons where the bomb lies."""

from collections.abc import Generator
from typing import Final

from dubito.game import GameEvent
from dubito.games.defuse.bot import DefuseBot
from dubito.games.defuse.events import DrawEvent, HideEvent, LookEvent, PlaceEvent, PlayEvent
from dubito.games.defuse.knowledge import Pile
from dubito.games.defuse.state import View

ARMED: Final = 0.1  # a chance of the bomb that it takes with a defuse card in hand
BARE: Final = 0.08  # and without one
PUT: Final = 0.5  # what it fears of a place at which the other may have put the bomb
SKIPS: Final = 0.25  # a chance of the bomb at which a skip card is well spent


class Sapper(DefuseBot):
    """Reckons where the bomb is, looks only when the odds are bad, and leaves a bomb on top for the other to draw.

    With n places unknown to it, the bomb lies on top with the chance 1/n; what it has seen, the draws since and
    its own places make that 0 or 1. Where the other has put the bomb, no count helps: it reckons with one half, and a
    shuffle makes that 1/n again. It draws at up to one in ten while it holds a defuse card, and one in twelve without.
    Above that it looks: three known cards are two safe draws of its own. A bomb on top is left for the other to draw:
    by a bottom card first, which gains a card, else by a shuffle, and by a skip card last, since in the end, when the
    pile is the bomb alone, only skip and defuse cards keep a player alive. Its own bomb goes third from the top, where
    the other draws it after one draw each.
    """

    origin = "Dubito"

    def __init__(self, id: int) -> None:
        super().__init__(id)
        self.pile = Pile()  # as far as it is known

    def observe(self, event: GameEvent) -> None:
        """Keep book of the pile."""
        match event:
            case DrawEvent():
                self.pile.draw(event.end == "top", event.bomb)
            case PlayEvent(_, "shuffle"):
                self.pile.shuffle()
            case LookEvent(cards):
                self.pile.look(cards)
            case PlaceEvent(seat) if seat != self.id:
                self.pile.place(None)
            case HideEvent(place):
                self.pile.place(place)

    def chance(self, place: int) -> float:
        """That the bomb lies there."""
        known = self.pile.chance_on(place)
        return PUT if known is None else known

    def turn(self, view: View) -> Generator[str, tuple[str, ...], str]:
        cards, limit = self.cards, ARMED if "defuse" in self.cards else BARE
        while (top := self.chance(0)) > limit:
            if top < 1 and "see" in cards:
                yield "see"
            elif "bottom" in cards and self.chance(-1) <= min(top, limit):
                return "bottom"
            elif "shuffle" in cards and view.pile > 2 and top > 1.5 / view.pile:
                yield "shuffle"
            elif "skip" in cards and top > SKIPS and ("defuse" not in cards or top == 1):
                return "skip"
            else:
                break
        return "draw"

    def defuse(self, view: View) -> int:
        return min(2, view.pile)
