"""Sapper, which estimates where the bomb is."""

from collections.abc import Generator
from typing import Final

from dubito.game import GameEvent
from dubito.games.defuse.bot import DefuseBot
from dubito.games.defuse.engine import View
from dubito.games.defuse.events import DrawEvent, HideEvent, LookEvent, PlaceEvent, PlayEvent
from dubito.games.defuse.knowledge import Pile

ARMED: Final = 0.1  # highest accepted chance of the bomb with a defuse card
BARE: Final = 0.08  # and without one
PUT: Final = 0.5  # assumed chance of a place where the other player may have put the bomb
SKIPS: Final = 0.25  # above this chance of the bomb it plays a skip card


class Sapper(DefuseBot):
    """Estimates where the bomb is, looks only if the odds are bad, and leaves a bomb on top to the other.

    With n unknown places the bomb is on top with probability 1/n; what it saw, the draws since and the places it chose
    itself make that 0 or 1. If the other player has placed the bomb, counting does not help: it assumes one half until
    a shuffle makes it 1/n again. It draws at up to one in ten while it holds a defuse card, and one in twelve without.
    Above that it looks, since three known cards give it two safe draws. It avoids a bomb on top by playing bottom,
    which gains a card, then shuffle, and skip last: when the pile is only the bomb, only skip and defuse cards keep a
    player alive. It puts its own bomb third from the top, so that the other player draws it after one draw each.
    """

    origin = "Dubito"

    def __init__(self, id: int) -> None:
        super().__init__(id)
        self.pile = Pile()  # what it knows of the pile

    def observe(self, event: GameEvent) -> None:
        """Track the pile."""
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
        """Return the probability that the bomb is there."""
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
