"""ConMan, the winner on the question's scoreboard. It tracks all 52 cards."""

import math
from collections.abc import Iterator, Sequence
from itertools import chain

from dubito.games.bs.bot import BSBot
from dubito.games.bs.cards import Card
from dubito.games.bs.table import Table

NUMBERS = 13
COPIES = 4
SEATS = 4  # a seat's next turn asks for a number this much higher
PILE, UNKNOWN = 4, 5  # places besides the seats


class Record:
    """What ConMan believes about a card: its place, how certain that is, and which own card it is."""

    __slots__ = ("card", "confidence", "number", "place")

    def __init__(self, number: int) -> None:
        self.number = number
        self.place = UNKNOWN
        self.confidence = 1.0
        self.card: Card | None = None


class ConMan(BSBot):
    """Tracks where every card probably is; accuses impossible and winning plays; plans its own plays.

    Verbatim from the first upload, which switches two more accusation rules off. It won
    60.73 ± 0.28 % of its games in the pool of the seven verbatim players.
    """

    origin = "ImpEmp/bs 5c43742"

    def __init__(self, id: int) -> None:
        super().__init__(id)
        self.deck = [[Record(number) for _ in range(COPIES)] for number in range(NUMBERS)]
        self.pile = 0  # sizes when it last looked
        self.hands = [0] * SEATS
        self.held: list[Record] = []  # its hand when it last looked, including cards played since
        self.route: list[int] = []  # numbers of its coming turns at which it can play honestly

    def request_cards(self, number: int, table: Table) -> Sequence[Card]:
        self.catch_up(self.id, number, 0, table)
        if self.route[0] == number:
            play = [record for record in self.held if record.number == number]
        else:
            play = [next(record for record in self.held if record.number == self.route[-1])]
        for record in play:
            record.place = PILE
        self.pile = table.pile + len(play)
        self.hands[self.id] = len(self.held) - len(play)
        return [record.card for record in play if record.card is not None]

    def bs(self, seat: int, number: int, n_cards: int, table: Table) -> bool:
        self.catch_up(seat, number, n_cards, table)
        hand = table.hands[seat] + n_cards
        p = self.probability(seat, number, n_cards, hand)
        accuses = math.isnan(p)
        return self.follow(seat, number, n_cards, hand, 0.0 if accuses else p) or accuses

    def records(self) -> Iterator[Record]:
        """Iterate over all 52 records, by number."""
        return chain.from_iterable(self.deck)

    def catch_up(self, mover: int, number: int, n_cards: int, table: Table) -> None:
        """Infer the last accusation from the sizes; look at the own hand if its size has changed."""
        if self.pile + n_cards != table.pile:
            self.resolve(mover, n_cards, table.hands)
        self.pile = table.pile
        self.hands = list(table.hands)
        if len(self.held) != len(self.cards):
            self.look(mover, number)

    def resolve(self, mover: int, n_cards: int, hands: Sequence[int]) -> None:
        """Move the pile to the seat with more cards than before; a seat with fewer was the accuser."""
        loser, winner = mover, None
        for seat, size in enumerate(hands):
            if size > self.hands[seat]:
                loser = seat
            elif size + n_cards * (seat == mover) < self.hands[seat]:
                winner = seat
        lost_last = winner is not None and hands[winner] + n_cards * (winner == mover) == 1
        for record in self.records():
            if record.place == PILE:
                if loser == self.id:
                    record.place, record.confidence = UNKNOWN, 1.0
                else:
                    record.place = loser
            elif record.place == winner:
                if winner == self.id:
                    record.place, record.confidence = PILE, 1.0
                elif lost_last:
                    record.confidence = 0.0

    def look(self, mover: int, number: int) -> None:
        """Assign records to the cards in hand and plan the coming turns."""
        self.held = [self.record_of(card) for card in self.cards]
        left = {record.number for record in self.held}
        self.route = []
        number = (number + (self.id - mover) % SEATS) % NUMBERS
        while left:
            if number in left:
                left.remove(number)
                self.route.append(number)
            number = (number + SEATS) % NUMBERS

    def record_of(self, card: Card) -> Record:
        """Return an own card's record: the one assigned, the last of unknown place, or the least certain."""
        records = self.deck[card.number]
        record = next((record for record in records if record.card == card), None)
        if record is None:
            free = [record for record in records if record.card is None]
            unknown = [record for record in free if record.place == UNKNOWN]
            record = unknown[-1] if unknown else min(free, key=lambda record: record.confidence)
            record.card = card
        record.place, record.confidence = self.id, 1.0
        return record

    def probability(self, seat: int, number: int, n_cards: int, hand: int) -> float:
        """Return the probability that this play is honest; NaN if it cannot be."""
        held = elsewhere = 0.0
        for record in self.deck[number]:
            if record.place == seat:
                held += record.confidence
            elif record.place != UNKNOWN:
                elsewhere += record.confidence
        possible, needed = math.floor(COPIES - elsewhere + 0.5), math.floor(n_cards - held + 0.5)
        if needed > possible:
            return math.nan
        if needed <= 0:
            return 1.0
        cards, room = self.unaccounted(seat, hand)
        ways = sum(choose(possible, i) * choose(cards - possible, room - i) for i in range(needed, possible + 1))
        of = choose(cards, room)
        return ways / of if of else math.nan

    def unaccounted(self, seat: int, hand: int) -> tuple[float, float]:
        """Return the number of cards of unknown place, and how many of them the mover can hold."""
        cards, room = 0.0, float(hand)
        for record in self.records():
            if record.place == UNKNOWN:
                cards += 1
            else:
                cards += 1 - record.confidence
                if record.place == seat:
                    room -= record.confidence
        return cards, room

    def follow(self, seat: int, number: int, n_cards: int, hand: int, p: float) -> bool:
        """Move the play to the pile, as far as it can be honest. Return whether it wins by unseen cards."""
        moved = 0
        for record in self.deck[number]:
            if record.place == seat and moved < n_cards:
                record.place = PILE
                moved += 1
        if moved == n_cards:
            return False
        left, missing = hand - moved, n_cards - moved
        wins = left == missing
        share = (1 - missing / left) * (1 - p) + p
        for record in self.records():
            if record.place == seat:
                if wins:
                    record.place = PILE
                else:
                    record.confidence *= share
        self.deck[number].sort(key=lambda record: (record.place != UNKNOWN, record.confidence))
        for record in self.deck[number]:
            if record.place == UNKNOWN or record.confidence < p:
                record.place, record.confidence = PILE, p
                moved += 1
                if moved == n_cards:
                    break
        return wins


def choose(upper: float, lower: float) -> float:
    """Return the binomial coefficient, also for real numbers."""
    if lower in (0, upper):
        return 1.0
    if lower < 0 or lower > upper:
        return 0.0
    return math.gamma(upper + 1) / (math.gamma(lower + 1) * math.gamma(upper - lower + 1))
