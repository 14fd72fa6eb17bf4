"""A second implementation of ConMan's and CalculatingLiar's memory, from their description alone.

Tables are plain numbers: the player's hand is a list of (number, copy), next to the pile's size and all hands' sizes by
seat.
"""

from dataclasses import dataclass, field
from math import floor, gamma, isnan, nan

PILE, UNKNOWN = "pile", "unknown"
CardKey = tuple[int, int]


@dataclass
class Liar:
    """CalculatingLiar: remembers its own cards on the pile, and the pile's size."""

    known: list[int] = field(default_factory=list)
    last: int = 0

    def refresh(self, pile: int) -> None:
        if self.last > pile:
            self.known = []
        self.last = pile

    def request_cards(self, k: int, hand: list[CardKey], pile: int) -> list[CardKey]:
        """Return all matching cards, or otherwise the card that is needed last."""
        play = [card for card in hand if card[0] == k]
        if not play:
            order = [(k + 4 * step) % 13 for step in range(13)]
            furthest = max((card[0] for card in hand), key=order.index)
            play = [next(card for card in hand if card[0] == furthest)]
        self.refresh(pile)
        for card in play:
            self.known.append(card[0])
        self.last = pile + len(play)
        return play

    def bs(self, k: int, n: int, hand: list[CardKey], pile: int, movers_hand: int) -> bool:
        """Return whether one of the four reasons to accuse applies."""
        self.refresh(pile)
        mine = len([card for card in hand if card[0] == k])
        on_pile = len([number for number in self.known if number == k])
        return movers_hand == 0 or n > 4 or mine + on_pile + n > 4 or (movers_hand < 5 and len(hand) == 1)


@dataclass
class Believed:
    """One of ConMan's 52 records."""

    number: int
    place: str | int = UNKNOWN
    confidence: float = 1.0
    bound: CardKey | None = None


@dataclass
class Con:
    """ConMan's memory, in seat `me`."""

    me: int
    records: dict[int, list[Believed]] = field(
        default_factory=lambda: {k: [Believed(k) for _ in range(4)] for k in range(13)}
    )
    pile: int = 0
    sizes: list[int] = field(default_factory=lambda: [0, 0, 0, 0])
    snapshot: list[Believed] = field(default_factory=list)
    t: list[int] = field(default_factory=list)

    def everything(self) -> list[Believed]:
        return [record for k in range(13) for record in self.records[k]]

    def sync(self, mover: int, k: int, n: int, hand: list[CardKey], pile: int, sizes: list[int]) -> None:
        """Do the first steps of both calls: (a) an accusation, (b) sizes, (c) the player's own hand."""
        if self.pile + n != pile:
            self.accusation(mover, n, sizes)
        self.pile, self.sizes = pile, list(sizes)
        if len(self.snapshot) != len(hand):
            self.rebuild(mover, k, hand)

    def accusation(self, mover: int, n: int, sizes: list[int]) -> None:
        """Process an accusation, step (a)."""
        loser: int = mover
        winner = -1
        for seat in range(4):
            before_play = sizes[seat] + (n if seat == mover else 0)
            if sizes[seat] > self.sizes[seat]:
                loser = seat
            elif before_play < self.sizes[seat]:
                winner = seat
        for record in self.everything():
            if record.place == PILE and loser == self.me:
                record.place, record.confidence = UNKNOWN, 1.0
            elif record.place == PILE:
                record.place = loser
            elif record.place == self.me and winner == self.me:
                record.place, record.confidence = PILE, 1.0
            elif record.place == winner and sizes[winner] + (n if winner == mover else 0) == 1:
                record.confidence = 0.0

    def rebuild(self, mover: int, k: int, hand: list[CardKey]) -> None:
        """Do step (c)."""
        self.snapshot = []
        for card in hand:
            four = self.records[card[0]]
            bound = [record for record in four if record.bound == card]
            unbound = [record for record in four if record.bound is None]
            unknown = [record for record in unbound if record.place == UNKNOWN]
            if bound:
                record = bound[0]
            elif unknown:
                record = unknown[-1]
            else:
                lowest = min(record.confidence for record in unbound)
                record = next(record for record in unbound if record.confidence == lowest)
            record.bound, record.place, record.confidence = card, self.me, 1.0
            self.snapshot.append(record)
        ahead = 0
        while (mover + ahead) % 4 != self.me:
            ahead += 1
        turns = [(k + ahead + 4 * step) % 13 for step in range(13)]
        held = {record.number for record in self.snapshot}
        self.t = [number for number in turns if number in held]

    def request_cards(self, k: int, hand: list[CardKey], pile: int, sizes: list[int]) -> list[CardKey]:
        """Return all cards of the number if its turn is the next in T, otherwise one card of the last number in T."""
        self.sync(self.me, k, 0, hand, pile, sizes)
        number = k if self.t[0] == k else self.t[-1]
        play = [record for record in self.snapshot if record.number == number]
        if self.t[0] != k:
            play = play[:1]
        for record in play:
            record.place = PILE
        self.pile = pile + len(play)
        self.sizes[self.me] = len(self.snapshot) - len(play)
        return [record.bound for record in play if record.bound]

    def bs(self, mover: int, k: int, n: int, hand: list[CardKey], pile: int, sizes: list[int]) -> bool:
        """Return whether to accuse, and update the beliefs."""
        self.sync(mover, k, n, hand, pile, sizes)
        h = sizes[mover] + n
        p = self.p(mover, k, n, h)
        accuse = isnan(p)
        if accuse:
            p = 0.0
        m = 0
        for record in self.records[k]:
            if record.place == mover and m < n:
                record.place = PILE
                m += 1
        if m >= n:
            return accuse
        left, needs = h - m, n - m
        others = [record for record in self.everything() if record.place == mover]
        for record in others:
            if left == needs:
                record.place = PILE
            else:
                record.confidence *= (1 - needs / left) * (1 - p) + p
        unknown = [record for record in self.records[k] if record.place == UNKNOWN]
        known = [record for record in self.records[k] if record.place != UNKNOWN]
        self.records[k] = unknown + sorted(known, key=lambda record: record.confidence)
        for record in self.records[k]:
            if m < n and (record.place == UNKNOWN or record.confidence < p):
                record.place, record.confidence = PILE, p
                m += 1
        return accuse or left == needs

    def p(self, mover: int, k: int, n: int, h: int) -> float:
        """Return the probability that the play is honest; nan if the bot accuses and continues with 0."""
        x, u, held, nothis = float(h), 0.0, 0.0, 0.0
        for record in self.everything():
            c = record.confidence
            if record.place == UNKNOWN:
                u += 1
            elif record.place == mover:
                x -= c
                u += 1 - c
                held += c if record.number == k else 0
            else:
                u += 1 - c
                nothis += c if record.number == k else 0
        possible, needed = floor(4 - nothis + 0.5), floor(n - held + 0.5)
        if needed > possible:
            return nan
        if needed <= 0:
            return 1.0
        numerator = sum(c_of(possible, i) * c_of(u - possible, x - i) for i in range(needed, possible + 1))
        return numerator / c_of(u, x) if c_of(u, x) else nan


def c_of(upper: float, lower: float) -> float:
    """Return the binomial coefficient for real arguments."""
    if lower in (upper, 0):
        return 1.0
    if lower < 0 or lower > upper:
        return 0.0
    return gamma(upper + 1) / gamma(lower + 1) / gamma(upper - lower + 1)
