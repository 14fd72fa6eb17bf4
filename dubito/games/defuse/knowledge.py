"""What one seat of draw and defuse has seen and can infer about the pile and the hands."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from dubito.errors import UsageError
from dubito.game import GameEvent
from dubito.games.defuse.engine import ALL_CARDS, BOMB, DEFUSE, HAND_CARDS, NodeName
from dubito.games.defuse.events import DealEvent, DrawEvent, HideEvent, LookEvent, PlaceEvent, PlayEvent, TakeEvent

_PILE = 17
ActName = Literal["draw", "skip", "bottom", "shuffle", "see", "place"]


@dataclass(frozen=True, slots=True)
class Act:
    """An action as seen by a seat."""

    seat: int  # the acting seat
    act: ActName
    card: str | None = (
        None  # the drawn card, if it is the bomb or the seat's own draw; None if unseen or nothing was drawn
    )
    cards: tuple[str, ...] = ()  # cards cards shown by the seat's own see card, top card first
    place: int | None = None  # where the seat put the bomb


@dataclass(frozen=True, slots=True)
class Position:
    """Everything that a seat has observed by the time it decides at a node."""

    seat: int
    node: NodeName
    dealt: tuple[str, ...]  # the seat's first hand
    acts: tuple[Act, ...]  # the actions of both seats


class Notebook:
    """The record of one seat in one game, kept by its player or an observer."""

    def __init__(self, seat: int, rules: Any) -> None:
        self._seat = seat
        self._dealt: tuple[str, ...] = ()
        self._acts: list[Act] = []

    def observe(self, event: GameEvent, cards: Iterable[str]) -> None:
        """Record an event. `cards` is the hand after the event."""
        acts = self._acts
        match event:
            case DealEvent():
                self._dealt = tuple(sorted(cards, key=HAND_CARDS.index))
            case PlayEvent(seat, "skip" | "shuffle" | "see" as card):
                acts.append(Act(seat, card))
            case LookEvent(seen):
                acts[-1] = replace(acts[-1], cards=seen)
            case DrawEvent():
                act: ActName = "draw" if event.end == "top" else "bottom"
                acts.append(Act(event.seat, act, "bomb" if event.bomb else None))
            case TakeEvent(card):
                acts[-1] = replace(acts[-1], card=card)
            case PlaceEvent(seat):
                acts.append(Act(seat, "place"))
            case HideEvent(place):
                acts[-1] = replace(acts[-1], place=place)

    def note_answer(self, node: str, answer: object) -> None:
        """Do nothing, since all effects of an answer are observed."""

    def position(self, node: NodeName, view: object, cards: Iterable[str]) -> Position:
        return Position(self._seat, node, self._dealt, tuple(self._acts))


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

    @property
    def max_place(self) -> int:
        return self.size - 1

    def shuffle(self) -> None:
        self.cards = [None] * self.size
        self.astray, self.looked, self.hidden = False, None, False

    def draw(self, top: bool, bomb: bool, seen: str | None = None) -> None:
        """Remove the top or bottom card. `seen` is the card, if known."""
        if self.looked is not None:
            self.looked += 1
        if bomb and self.astray:
            self.astray = False
            return
        if not self.cards:
            raise UsageError("a card was drawn from an empty pile")
        known = self.cards.pop(0 if top else -1)
        if known is not None and known != (BOMB if bomb else seen or known):
            raise UsageError(f"a {known} card was there, but another card was drawn")
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
        elif 0 <= where <= len(self.cards):
            self.cards.insert(where, BOMB)
        else:
            raise UsageError(f"place {where}: the pile has {len(self.cards)} cards")

    def bomb_range(self) -> tuple[int, int] | None:
        """Return the first and the last place where the bomb may be, or None if the bomb is not in the pile."""
        if self.astray:
            return self.least, self.max_place
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
            return 1.0 if self.least == self.max_place else None
        if BOMB in self.cards:
            return float(self.cards[place] == BOMB)
        return 1 / self.cards.count(None) if self.cards[place] is None else 0.0


@dataclass
class Witness:
    """The hands, the pile and the played cards of a position. Raises UsageError if it is impossible."""

    position: Position
    pile: Pile = field(default_factory=Pile)
    hand: Counter[str] = field(default_factory=Counter)
    sizes: list[int] = field(default_factory=lambda: [6, 6])
    played: list[str] = field(default_factory=list)
    seat: int = 0  # the seat to act next
    placing: bool = False

    def __post_init__(self) -> None:
        self.hand.update(self.position.dealt)
        for number, act in enumerate(self.position.acts):
            try:
                self._act(act)
            except (UsageError, ValueError) as error:
                raise UsageError(f"acts.{number}: {error}") from None

    def unseen(self) -> dict[str, int]:
        """Return the cards in the pile and the other hand: all cards except the seat's hand and the played cards."""
        remaining = Counter(ALL_CARDS)
        remaining.subtract(self.hand)
        remaining.subtract(self.played)
        if self.placing:
            remaining[BOMB] -= 1
        return {card: n for card, n in remaining.items() if n}

    def _act(self, act: Act) -> None:
        own = self.position.seat
        if act.seat != self.seat or (act.act == "place") != self.placing:
            raise UsageError(f"the next action cannot be {act.act} by seat {act.seat}")
        if act.act == "place":
            self.placing = False
            if (act.place is None) == (act.seat == own):
                raise UsageError("only the seat that hid the bomb knows its place")
            self.pile.place(act.place)
            self.seat = 1 - self.seat
            return
        if act.act != "draw":
            self._play(act.seat, act.act)
        if act.act == "shuffle":
            self.pile.shuffle()
        elif act.act == "see":
            if act.seat == own:
                if len(act.cards) != min(3, self.pile.size):
                    raise UsageError("a see card shows three cards, or all if there are fewer")
                self.pile.look(act.cards)
        elif act.act == "skip":
            self.seat = 1 - self.seat
        else:
            self._draw(act)

    def _draw(self, act: Act) -> None:
        bomb = act.card == BOMB
        self.pile.draw(act.act == "draw", bomb, act.card)
        if bomb:
            self._play(act.seat, DEFUSE)
            self.placing = True
            return
        self.sizes[act.seat] += 1
        if act.seat == self.position.seat:
            if act.card is None:
                raise UsageError("the card is missing, but a seat sees its own draws")
            self.hand[act.card] += 1
        self.seat = 1 - self.seat

    def _play(self, seat: int, card: str) -> None:
        self.sizes[seat] -= 1
        self.played.append(card)
        if seat == self.position.seat:
            if not self.hand[card]:
                raise UsageError(f"the hand holds no {card} card")
            self.hand[card] -= 1
