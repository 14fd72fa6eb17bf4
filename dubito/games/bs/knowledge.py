"""What one BS seat knows: the public state, its own cards, and which cards must lie where.

A card is only listed as held by another seat if this is certain, not if it may have been played since.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice

from pydantic import Field

from dubito.errors import pluralize
from dubito.files import CheckedModel
from dubito.game.events import AnswerEvent, GameEvent
from dubito.games.bs.cards import (
    NUMBERS,
    AccuseEvent,
    CardsEvent,
    DealEvent,
    HandEvent,
    LoseEvent,
    PlayEvent,
    TakeEvent,
    TurnEvent,
)
from dubito.games.bs.table import SEATS


class BSRules(CheckedModel):
    """The rules that a config can change."""

    max_rounds: int = Field(
        default=1000, ge=1, description="Rounds after which the game ends without a winner."
    )  # (B2)


@dataclass(frozen=True, slots=True)
class Laid:
    """Cards that were added to the pile together."""

    seat: int  # the seat they came from
    number: int | None  # claimed number; None for a card drawn from an accuser
    n_cards: int
    cards: tuple[int, ...] = ()  # empty if unknown to the seat

    def __str__(self) -> str:
        how = "drawn" if self.number is None else f"as {self.number}s"
        return f"{numbers(sorted(self.cards))} of seat {self.seat} ({how})"


def numbers(cards: Iterable[int]) -> str:
    return " ".join(map(str, cards)) or "none"


@dataclass(slots=True)
class SeatHistory:
    """What everyone has seen a seat do."""

    plays: int = 0
    lies: int = 0  # accused plays that were lies
    honest: int = 0  # accused plays that were honest
    right: int = 0  # own accusations that counted
    wrong: int = 0


@dataclass(eq=False, slots=True)
class Knowledge:
    """A fold over the log of a seat (see `dubito.game.log`)."""

    rules: BSRules
    seat: int
    hand: Counter[int] = field(default_factory=Counter)
    hands: list[int] = field(default_factory=list)  # sizes
    turns: int = 0  # finished turns
    play: PlayEvent | None = None  # the play in question
    pile: list[Laid] = field(default_factory=list)  # from bottom to top
    records: list[SeatHistory] = field(default_factory=lambda: [SeatHistory() for _ in SEATS])
    # cards that other seats are known to have picked up
    known: list[Counter[int]] = field(default_factory=lambda: [Counter() for _ in SEATS])
    put_down: list[int] = field(default_factory=lambda: [0] * len(SEATS))  # cards played since, perhaps some of these
    history: list[str] = field(default_factory=list)
    own_moves: list[int] = field(default_factory=list)  # indices of own plays and answers in the history
    _accusation: AccuseEvent | None = None  # of this turn
    _taken: Sequence[Laid] = ()  # the pile that the seat picked up in this turn

    @property
    def number(self) -> int:
        return self.turns % NUMBERS

    @property
    def mover(self) -> int:
        return self.turns % len(SEATS)

    @property
    def pile_size(self) -> int:
        return sum(laid.n_cards for laid in self.pile)

    def count_known_cards(self, seat: int, number: int) -> int:
        return max(0, self.known[seat][number] - self.put_down[seat])

    def own_pile_cards(self) -> list[int]:
        return sorted(card for laid in self.pile for card in laid.cards)

    def see(self, event: GameEvent) -> None:
        match event:
            case DealEvent(hands):
                self.hands = [*hands]
            case HandEvent(cards):
                self.hand = Counter(card.number for card in cards)
                dealt = numbers(sorted(self.hand.elements()))
                self.history.append(f"Every seat is dealt {len(cards)} cards. Yours: {dealt}.")
            case PlayEvent(seat, number, n):
                self.play, self._accusation, self._taken = event, None, ()
                self.records[seat].plays += 1
                self.hands[seat] -= n
                self._lay(Laid(seat, number, n))
                if seat != self.seat:
                    self.history.append(f"seat {seat} plays {pluralize(n)} as {number}s.")
            case CardsEvent(cards, lie):
                played, kind = sorted(card.number for card in cards), "a lie" if lie else "honest"
                self.hand -= Counter(played)
                self.pile[-1] = Laid(self.seat, self.number, len(played), tuple(played))
                count = pluralize(len(played))
                self.own_moves.append(len(self.history))
                self.history.append(f"You play {count} as {self.number}s: {numbers(played)}, {kind}.")
            case AnswerEvent(_, answer):
                self.own_moves.append(len(self.history))
                self.history.append("You accuse." if answer else "You do not accuse.")
            case AccuseEvent():
                self._accusation = event
                if event.taker != self.seat:  # otherwise the seat sees the pile first
                    self._settle(event)
            case TakeEvent(cards):
                assert self._accusation is not None
                # Assign the shown cards to the plays on the pile.
                shown = iter([card.number for card in cards])
                self.pile = [
                    Laid(laid.seat, laid.number, laid.n_cards, tuple(islice(shown, laid.n_cards))) for laid in self.pile
                ]
                self._taken = self.pile
                self._settle(self._accusation)
            case LoseEvent(card):
                self.hand -= Counter([card.number])
                self.pile[-1] = Laid(self.seat, None, 1, (card.number,))
            case TurnEvent():
                self.hands = [*event.hands]
                accusation = self._accusation
                ended = f"Nobody accuses: {pluralize(event.pile)} on the pile."
                self.history.append(ended if accusation is None else self._describe_accusation(accusation))
                self.turns += 1
                self.play = None

    def _lay(self, laid: Laid) -> None:
        self.pile.append(laid)
        if self.known[laid.seat]:
            self.put_down[laid.seat] += laid.n_cards

    def _settle(self, event: AccuseEvent) -> None:
        """Settle an accusation: update the records and the known cards, and begin a new pile."""
        mover, accuser, taker = self.records[event.mover], self.records[event.seat], event.taker
        if event.lie:
            mover.lies += 1
            accuser.right += 1
        else:
            mover.honest += 1
            accuser.wrong += 1
            play = self.pile[-1]
            self.pile[-1] = Laid(play.seat, play.number, play.n_cards, (self.number,) * play.n_cards)
        for laid in self.pile:
            if laid.seat == taker:
                self.put_down[taker] = max(0, self.put_down[taker] - laid.n_cards)
            elif laid.cards:
                self.known[laid.seat] -= Counter(laid.cards)  # Counter subtraction drops counts below 0
                self.put_down[laid.seat] = max(0, self.put_down[laid.seat] - laid.n_cards)
        if taker == self.seat:
            self.hand.update(card for laid in self.pile for card in laid.cards)
        else:
            self.known[taker].update(card for laid in self.pile if laid.seat != taker for card in laid.cards)
        self.pile = []
        # Forget what was known about a hand of which nothing is certain any more.
        for seat in SEATS:
            if self.put_down[seat] >= max(self.known[seat].values(), default=0):
                self.known[seat].clear()
                self.put_down[seat] = 0
        if event.lie:
            self._lay(Laid(event.seat, None, 1))

    def _describe_accusation(self, event: AccuseEvent) -> str:
        own, taken = self.seat, ", ".join(map(str, self._taken))
        who = f"seat {event.seat} accuses" if event.seat != own else "Your accusation counts"
        take = f"you pick up the pile: {taken}" if taken else f"seat {event.taker} picks up the pile"
        if not event.lie:
            return f"{who}: it was honest; {take}."
        lost = f"a card of seat {event.seat}" if event.seat != own else f"your {self.pile[0].cards[0]}"
        return f"{who}: it was a lie; {take}; {lost} is the new pile."
