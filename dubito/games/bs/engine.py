"""The state of a game of BS. Its only randomness is the stream that dealt the game. It uses no clock and no I/O.

A turn has four moves: the mover plays cards, then each of the other seats answers yes or no, in seat order.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from operator import attrgetter
from random import Random
from typing import Any, Final

from dubito.errors import IllegalOutput, UsageError
from dubito.game import Ending, GameEvent
from dubito.game.events import ANNOUNCED, AnswerEvent
from dubito.game.streams import SeatStreams
from dubito.games.bs.cards import (
    COPIES,
    DECK,
    NUMBERS,
    AcceptEvent,
    AccuseEvent,
    Card,
    CardsEvent,
    DealEvent,
    Hand,
    HandEvent,
    HandView,
    LoseEvent,
    PlayEvent,
    RoundEvent,
    TakeEvent,
    TurnEvent,
    WinEvent,
)
from dubito.games.bs.table import SEATS, PublicState, View, check

# For each mover, the next seat to ask after each seat, in seat order (B5). None marks the end.
_ASKED_NEXT: Final = ((None, 2, 3, None), (2, None, 3, None), (1, 3, None, None), (1, 2, None, None))


@dataclass(slots=True)
class SeatCounts:
    cards: int = 0  # cards held at the end
    plays: int = 0
    cards_played: int = 0
    lies: int = 0  # plays that were lies
    lies_accused: int = 0  # lies that were accused
    accusations: int = 0  # accusations made
    accusations_drawn: int = 0  # accusations that counted, since only one of several accusers is drawn
    accusations_right: int = 0  # correct accusations among the counted ones
    asked: int = 0  # whether it is BS
    forfeits: int = 0  # games ended by its mistakes


SEAT_COUNTS: Final = tuple(field.name for field in fields(SeatCounts))
_values: Final = attrgetter(*SEAT_COUNTS)
GAME_COUNTS: Final = ("turns", "rounds")


class State:
    """The state of a game. Read its attributes freely; change it only through `apply` and `forfeit`."""

    def __init__(self, hands: Sequence[Sequence[Card]], max_rounds: int, rng: Random) -> None:
        """Begin a game with seat 0 and number 0 (B1). `rng` draws accusers and the cards that they lose."""
        if len(hands) != len(SEATS):
            raise UsageError(f"BS needs {len(SEATS)} players, not {len(hands)}")
        self.hands = [Hand(cards) for cards in hands]
        self.pile = Hand()
        self.max_rounds = max_rounds
        self.seat = 0
        self.over = False
        self.turns_played = 0
        self.winner: int | None = None
        self.counts = [SeatCounts() for _ in SEATS]
        self.public = PublicState([len(cards) for cards in hands])
        self._views = [View(self.public, hand) for hand in self.hands]
        self._rng = rng
        self.accusers: list[int] = []  # seats that have accused the last play so far
        self._is_lie = False  # whether the play in question is a lie

    @property
    def lie(self) -> bool | None:
        return self._is_lie if self.public.node == "bs" else None

    @property
    def start(self) -> Sequence[GameEvent]:
        hands = [HandEvent(tuple(hand.cards), only=seat) for seat, hand in enumerate(self.hands)]
        return [DealEvent(tuple(self.public.hands)), *hands]

    def view(self) -> View:
        return self._views[self.seat]

    def cards(self, seat: int, streams: SeatStreams) -> HandView:
        return HandView(self.hands[seat])

    def apply(self, output: Any, announce: int = ANNOUNCED) -> Sequence[GameEvent]:
        """Play cards or answer whether to accuse, for the seat to move (see `dubito.game.State`)."""
        if self.over:
            raise IllegalOutput("the game is over")
        public = self.public
        if public.node == "cards":
            return self._play(output, announce)
        if output is not False and output is not True:
            check("bs", output, None)
        seat = self.seat
        counts = self.counts[seat]
        counts.asked += 1
        if output:
            counts.accusations += 1
            self.accusers.append(seat)
        following = _ASKED_NEXT[public.mover][seat]
        if following is not None:
            self.seat = following
            return [AnswerEvent("bs", output, only=seat)] if announce > ANNOUNCED else ()
        mover = public.mover
        accusation = self._accuse(announce) if self.accusers else None
        ended = self._end_turn(announce)
        if announce <= ANNOUNCED:
            return ended
        settled = [AcceptEvent(mover)] if accusation is None else accusation
        return [AnswerEvent("bs", output, only=seat), *settled, *ended]

    def copy_of(self, output: Sequence[Card]) -> list[Card]:
        return list(output)

    def forfeit(self, seat: int) -> None:
        """End the game after a seat's mistake. The game has no winner, and counts for all seats (B3)."""
        if self.over:
            raise IllegalOutput("the game is over")
        self.counts[seat].forfeits += 1
        self.over = True

    def ending(self) -> Ending:
        """Return the winner and the counts. A game without a winner is marked as capped."""
        counts = []
        for count, hand in zip(self.counts, self.hands, strict=True):
            count.cards = len(hand.cards)
            counts.append(_values(count))
        rounds = -(-self.turns_played // len(SEATS))
        marks = [int(seat == self.winner) for seat in SEATS]
        return Ending(self.winner is None, (self.turns_played, rounds), marks, counts)

    def _play(self, output: object, announce: int) -> Sequence[GameEvent]:
        seat, public = self.seat, self.public
        hand = self.hands[seat]
        cards, bits = hand.chosen(output)
        n = len(cards)
        self._is_lie = bits & ~(15 << COPIES * public.number) != 0
        hand.drop(cards, bits)
        self.pile.add(cards, bits)
        public.node = "bs"
        public.n_cards = n
        public.pile += n
        public.hands[seat] -= n
        counts = self.counts[seat]
        counts.plays += 1
        counts.cards_played += n
        counts.lies += self._is_lie
        self.seat = 0 if seat else 1
        if announce > ANNOUNCED:
            return [PlayEvent(seat, public.number, n), CardsEvent(tuple(cards), self._is_lie, only=seat)]
        return [PlayEvent(seat, public.number, n)] if announce else ()

    def _accuse(self, announce: int) -> Sequence[GameEvent]:
        """Draw one of the accusers, resolve the accusation (B5) and return its silent events."""
        accusers, mover, public = self.accusers, self.public.mover, self.public
        accuser = accusers[0] if len(accusers) == 1 else accusers[int(self._rng.random() * len(accusers))]
        accusers.clear()
        self.counts[accuser].accusations_drawn += 1
        loser = mover if self._is_lie else accuser
        silent: list[GameEvent] = []
        if announce > ANNOUNCED:
            pile = tuple(self.pile.cards)
            silent = [AccuseEvent(accuser, mover, self._is_lie, len(pile)), TakeEvent(pile, only=loser)]
        self.hands[loser].take(self.pile)
        public.hands[loser] += public.pile
        public.pile = 0
        if self._is_lie:
            self.counts[mover].lies_accused += 1
            self.counts[accuser].accusations_right += 1
            hand = self.hands[accuser]
            (lost,), bits = hand.pop(int(self._rng.random() * len(hand.cards)))
            self.pile.add([lost], bits)
            public.hands[accuser] -= 1
            public.pile = 1
            if announce > ANNOUNCED:
                silent.append(LoseEvent(lost, only=accuser))
        return silent

    def _end_turn(self, announce: int) -> Sequence[GameEvent]:
        """Begin the next turn, or end the game if a hand is empty (B6) or `max_rounds` is reached (B2)."""
        public = self.public
        sizes = public.hands
        self.turns_played += 1
        public.number = self.turns_played % NUMBERS
        public.node = "cards"
        public.n_cards = 0
        finished = public.round
        if 0 in sizes:
            self.winner = sizes.index(0)
            self.over = True
        mover = public.mover
        if mover < SEATS[-1]:
            public.mover = self.seat = mover + 1
        else:
            public.mover = self.seat = 0
            public.round = finished + 1
            if finished == self.max_rounds:
                self.over = True
        if not announce:
            return ()
        hands = tuple(sizes)
        events: list[GameEvent] = [TurnEvent(public.pile, hands)]
        if self.over or mover == SEATS[-1]:
            events.append(RoundEvent(finished, public.number, public.pile, hands))  # B7
        if self.winner is not None:
            events.append(WinEvent(self.winner))
        return events


def deal(max_rounds: int, rng: Random) -> State:
    deck = list(DECK)
    rng.shuffle(deck)
    return State([deck[first : first + NUMBERS] for first in range(0, len(deck), NUMBERS)], max_rounds, rng)
