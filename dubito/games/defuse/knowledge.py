"""What one seat of draw and defuse knows about the pile and the hands."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from dubito.files import NoRules
from dubito.game.events import GameEvent
from dubito.game.reader import Reader
from dubito.games.defuse.engine import ALL_CARDS, BOMB, DEFUSE
from dubito.games.defuse.events import (
    DealEvent,
    DrawEvent,
    HandEvent,
    HideEvent,
    LookEvent,
    PlaceEvent,
    PlayEvent,
    TakeEvent,
)

_PILE = 17


@dataclass
class Pile:
    """What a seat knows about the pile.

    If the other seat has put the bomb back, the bomb is between places `least` and `most`, and `cards` are the other
    cards in order. Otherwise the bomb is one of `cards` if it was seen, or at one of the unknown places.
    """

    cards: list[str | None] = field(default_factory=lambda: [None] * _PILE)  # top card first; None if unknown
    astray: bool = False  # whether the other seat chose the bomb's place
    least: int = 0
    looked: int | None = None  # draws since the seat's last see card; None if the pile was shuffled since
    hidden: bool = False  # whether the other seat has put the bomb back since that look

    @property
    def size(self) -> int:
        return len(self.cards) + self.astray

    def shuffle(self) -> None:
        self.cards = [None] * self.size
        self.astray, self.looked, self.hidden = False, None, False

    def draw(self, top: bool, bomb: bool) -> None:
        """Remove the top or bottom card."""
        if self.looked is not None:
            self.looked += 1
        if bomb and self.astray:
            self.astray = False
            return
        self.cards.pop(0 if top else -1)
        if self.astray and top:
            self.least = max(0, self.least - 1)

    def look(self, shown: Sequence[str]) -> None:
        """Note the top cards that the seat saw."""
        if self.astray and BOMB in shown:
            self.cards.insert(shown.index(BOMB), BOMB)
            self.astray = False
        self.cards[: len(shown)] = shown
        self.least, self.looked, self.hidden = len(shown), 0, False

    def place(self, where: int | None) -> None:
        """Put the bomb back. `where` is None if the other seat chose the place."""
        if where is None:
            self.astray, self.least = True, 0
            self.hidden = self.looked is not None
        else:
            self.cards.insert(where, BOMB)

    def bomb_range(self) -> tuple[int, int] | None:
        """Return the first and the last place where the bomb may be, or None if the bomb is not in the pile."""
        if self.astray:
            return self.least, self.size - 1
        if BOMB in self.cards:
            return (place := self.cards.index(BOMB)), place
        unknown = [place for place, card in enumerate(self.cards) if card is None]
        return (unknown[0], unknown[-1]) if unknown else None

    def chance_on(self, place: int) -> float | None:
        """Return the probability that the bomb is at a place (-1: the bottom); None if the other seat placed it."""
        if not self.cards and not self.astray:
            return 0.0
        place %= self.size
        if self.astray:
            if place < self.least:
                return 0.0
            return 1.0 if self.least == self.size - 1 else None
        if BOMB in self.cards:
            return float(self.cards[place] == BOMB)
        return 1 / self.cards.count(None) if self.cards[place] is None else 0.0


class Knowledge:
    """A fold over the log of a seat (see `dubito.game.log`)."""

    def __init__(self, rules: NoRules, seat: int) -> None:
        self.seat, self._reader = seat, Reader(me=seat)
        self.hand: list[str] = []
        self.sizes: list[int] = []  # of both hands
        self.pile = Pile()
        self.played: list[str] = []
        self.placing = False  # whether a seat holds the bomb, to put it back
        self.history: list[str] = []  # a line per action
        self.own_moves: list[int] = []  # indices of own actions in the history
        self._drawn: DrawEvent | None = None  # the last draw

    def unseen(self) -> dict[str, int]:
        """Return the cards in the pile and the other hand: all cards except the seat's hand and the played cards."""
        remaining = Counter(ALL_CARDS)
        remaining.subtract([*self.hand, *self.played, *[BOMB] * self.placing])
        return {card: n for card, n in remaining.items() if n}

    def see(self, event: GameEvent) -> None:
        match event:
            case DealEvent(hands, pile):
                self.sizes, self.pile = [*hands], Pile([None] * pile)
            case HandEvent(cards):
                self.hand = [*cards]
                self.history.append(f"The cards are dealt. Yours: {', '.join(cards)}.")
            case PlayEvent(seat, card):
                self._see_play(seat, card)
            case LookEvent(cards):
                self.pile.look(cards)
                self.history[-1] += f" The top cards are {', '.join(cards)}."
            case DrawEvent():
                self._drawn = event
                self.pile.draw(event.end == "top", event.bomb)
                self.placing = event.bomb
                self.sizes[event.seat] += not event.bomb
                if event.end == "top":
                    self._tell(event.seat, "")
                self.history[-1] = self._describe_draw(event, "the bomb" if event.bomb else "a card")
            case TakeEvent(card):
                self.hand.append(card)
                assert self._drawn is not None
                self.history[-1] = self._describe_draw(self._drawn, f"a {card}")
            case PlaceEvent(seat):
                self.placing = False
                if seat != self.seat:
                    self.pile.place(None)
                self._tell(seat, f"{self._reader.starts(seat, 'puts')} the bomb back.")
            case HideEvent(place):
                self.pile.place(place)
                self.history[-1] = f"You put the bomb back at place {place}."

    def _see_play(self, seat: int, card: str) -> None:
        self.sizes[seat] -= 1
        self.played.append(card)
        if seat == self.seat:
            self.hand.remove(card)
        if card == DEFUSE:
            self.history[-1] = f"{self.history[-1][:-1]} and {self._reader.verb(seat, 'plays')} defuse."
            return
        then = ""
        if card == "shuffle":
            self.pile.shuffle()
            then = "; the pile is shuffled"
        self._tell(seat, f"{self._reader.starts(seat, 'plays')} {card}{then}.")

    def _describe_draw(self, event: DrawEvent, what: str) -> str:
        if event.end == "top":
            return f"{self._reader.starts(event.seat, 'draws')} {what} from the top."
        return f"{self._reader.starts(event.seat, 'plays')} bottom: {what} from the bottom."

    def _tell(self, seat: int, line: str) -> None:
        if seat == self.seat:
            self.own_moves.append(len(self.history))
        self.history.append(line)
