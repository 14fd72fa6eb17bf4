"""Sample games of draw and defuse that one seat cannot distinguish from the actual game.

The seat does not know the cards that the other seat was dealt and drew, the order of the pile, or where the other seat
put the bomb. Worlds are sampled with the probabilities of the deal and the shuffles. The likelihood of the other seat's
actions is ignored.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from math import exp, lgamma
from random import Random
from typing import Final, NamedTuple

from dubito.game.events import GameEvent
from dubito.game.log import SeatLog
from dubito.games.defuse.engine import ALL_CARDS, BOMB, CARD_COUNTS, DEFUSE, HAND_CARDS, HAND_SIZE
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

_MIXING_CHANGES: Final = 80  # changes to try; enough to reach the right distribution
_MAX_CHANGES: Final = 20_000  # changes to try before giving up
_LOG_FACTORIALS: Final = [lgamma(n + 1) for n in range(sum(ALL_CARDS.values()) + 1)]  # logarithm of n!

Kinds = dict[int, str]  # card names by number, as in `Trace`


@dataclass
class Trace:
    """A seat's log, with cards renumbered after each shuffle. `kinds` maps the identified cards to their names."""

    log: SeatLog
    orders: dict[int, list[int]] = field(default_factory=dict)  # the pile, top first, by the event that ordered it
    kinds: Kinds = field(default_factory=dict)
    taken: dict[int, int] = field(default_factory=dict)  # the card that the other seat drew, by event
    places: dict[int, int] = field(default_factory=dict)  # where the other seat put the bomb, by event

    numbers: Iterator[int] = field(default_factory=count)
    pile: list[int] = field(default_factory=list)  # top first
    drawn: int = -1  # the last card that was drawn
    bomb: int = -1  # the bomb, if a seat has put it back since the last shuffle

    def follow(self, spots: Mapping[int, float]) -> int | None:
        """Follow the log and return the last place of the bomb before it becomes impossible, or None.

        `spots` are the other seat's places for the bomb, as fractions of the pile.
        """
        last = -1
        for place, event in enumerate(self.log):
            if place in spots:
                last = place
            if not all(self._fits(card, kind) for card, kind in self._move(place, event, spots)):
                return last
        return None

    def _move(self, place: int, event: GameEvent, spots: Mapping[int, float]) -> Iterator[tuple[int, str | None]]:
        """Move the cards, and yield those of which the seat sees something, with their names."""
        match event:
            case DealEvent(_, size):
                self._order(place, size)
            case PlayEvent(_, "shuffle"):
                self._order(place, len(self.pile))
            case LookEvent(cards):
                yield from zip(self.pile, cards, strict=False)
            case DrawEvent(seat, end, is_bomb):
                self.drawn = self.pile.pop(0 if end == "top" else -1)
                if seat != self.log.seat and not is_bomb:
                    self.taken[place] = self.drawn
                yield self.drawn, BOMB if is_bomb else None
                if is_bomb:
                    self.bomb = -1
            case TakeEvent(name):
                yield self.drawn, name
            case PlaceEvent() if place in spots:
                self.places[place] = int(spots[place] * (len(self.pile) + 1))
                self._hide(self.places[place])
            case HideEvent(where):
                self._hide(where)

    def _order(self, place: int, size: int) -> None:
        self.pile, self.bomb = [next(self.numbers) for _ in range(size)], -1
        self.orders[place] = self.pile[:]

    def _hide(self, where: int) -> None:
        self.bomb = next(self.numbers)
        self.kinds[self.bomb] = BOMB
        self.pile.insert(where, self.bomb)

    def _fits(self, card: int, kind: str | None) -> bool:
        if kind is None:  # the seat only knows that it was not the bomb
            return self.kinds.get(card) != BOMB
        if self.bomb >= 0 and (kind == BOMB) != (card == self.bomb):
            return False
        return self.kinds.setdefault(card, kind) == kind


class World(NamedTuple):
    """What a seat cannot know about a game."""

    hand: Sequence[str]  # the other seat's deal, without its defuse card
    orders: Mapping[int, Sequence[str]]  # the pile, top first, by the event that ordered it
    places: Mapping[int, int]  # where the other seat put the bomb, by event


def dealt_cards(log: SeatLog) -> Sequence[str]:
    return next(event.cards for event in log if isinstance(event, HandEvent))


def sample_world(log: SeatLog, chance: Random) -> World:
    """Sample a world in which this seat sees the events of this log."""
    trace = _trace_log(log, chance)
    hand = range(-HAND_SIZE, 0)  # the other seat's deal
    dealt = dealt_cards(log)
    kinds = _Guess(trace, dealt, hand).kinds(chance)
    orders = _arrange_piles(trace, dealt, hand, kinds, chance)
    return World([kinds[card] for card in hand], orders, trace.places)


def _trace_log(log: SeatLog, chance: Random) -> Trace:
    """Trace the log, with places of the bomb that agree with everything seen."""
    placed = [place for place, event in enumerate(log) if isinstance(event, PlaceEvent) and event.seat != log.seat]
    spots = {place: chance.random() for place in placed}
    while True:
        trace = Trace(log)
        wrong = trace.follow(spots)
        if wrong is None:
            return trace
        spots[wrong] = chance.random()


@dataclass
class _Piles:
    """Which numbered cards are in each hand and pile after every event."""

    trace: Trace
    dealt: Sequence[str]
    hand: Sequence[int]

    def orders(self, kinds: Kinds) -> Iterator[tuple[int, Counter[str], Counter[str], int]]:
        """Yield each ordering of the pile.

        Each is a tuple of the event, the pile's cards, the cards identified in `kinds`, and how many cards the other
        seat has played since the previous ordering without holding them.
        """
        log, short = self.trace.log, 0
        own, other = Counter(self.dealt), Counter([DEFUSE, *(kinds[card] for card in self.hand)])
        pile = Counter(ALL_CARDS)
        pile.subtract(own)
        pile.subtract(other)
        for place, event in enumerate(log):
            match event:
                case PlayEvent(seat, card):
                    hand = own if seat == log.seat else other
                    hand[card] -= 1
                    short += hand[card] < 0
                case TakeEvent(card):
                    own[card] += 1
                    pile[card] -= 1
                case DrawEvent() if place in self.trace.taken:
                    card = kinds[self.trace.taken[place]]
                    other[card] += 1
                    pile[card] -= 1
            if place in self.trace.orders:
                yield place, pile, self._count_kinds(place, kinds), short
                short = 0
        yield len(log), pile, Counter(), short

    def _count_kinds(self, place: int, kinds: Kinds) -> Counter[str]:
        return Counter([kinds[card] for card in self.trace.orders[place] if card in kinds])


class _Guess:
    """A guess at what the other seat was dealt and drew."""

    def __init__(self, trace: Trace, dealt: Sequence[str], hand: Sequence[int]) -> None:
        self._hand = hand
        self._piles = _Piles(trace, dealt, hand)
        self._kinds = dict(trace.kinds)
        self._open = [*hand, *(card for card in trace.taken.values() if card not in trace.kinds)]
        self._left = Counter(CARD_COUNTS)
        self._left.subtract([card for card in dealt if card != DEFUSE])

    def kinds(self, chance: Random) -> Kinds:
        """Sample the cards by repeatedly changing one or two."""
        kinds, dealt = self._kinds, tuple(CARD_COUNTS)
        rest = list(self._left.elements())
        chance.shuffle(rest)
        kinds.update(zip(self._open, rest + list(dealt) * len(self._open), strict=False))
        faults, weight = self._judge()
        for step in range(_MAX_CHANGES):
            if step >= _MIXING_CHANGES and not faults:
                break
            one, other = chance.choice(self._open), chance.choice(self._open)
            before = kinds[one], kinds[other]
            if one == other:
                kinds[one] = chance.choice(dealt if one in self._hand else HAND_CARDS)
            elif DEFUSE in before and (one in self._hand or other in self._hand):
                continue  # a seat is dealt only one defuse card
            else:
                kinds[one], kinds[other] = kinds[other], kinds[one]
            now, likely = self._judge()
            if now < faults or (now == faults and (now or chance.random() < exp(min(0, likely - weight)))):
                faults, weight = now, likely
            else:
                kinds[one], kinds[other] = before
        assert not faults, "no hand of the other seat fits what was seen"
        return kinds

    def _judge(self) -> tuple[int, float]:
        """Return how many impossibilities the guess has, and the logarithm of its probability."""
        dealt = Counter([self._kinds[card] for card in self._hand])
        faults, weight = _count_ways(self._left, dealt)
        for _, pile, given, short in self._piles.orders(self._kinds):
            wrong, likely = _count_ways(pile, given)
            faults, weight = faults + wrong + short, weight + likely
        return faults, weight


def _count_ways(cards: Counter[str], given: Counter[str]) -> tuple[int, float]:
    """Return how many of these cards are missing, and the logarithm of the number of ways to draw them."""
    faults, weight = 0, 0.0
    for card, n in cards.items():
        wanted = given[card]
        if wanted > n or n < 0:
            faults += max(wanted - n, -n)
        elif wanted:
            weight += _LOG_FACTORIALS[n] - _LOG_FACTORIALS[n - wanted]
    return faults, weight


def _arrange_piles(
    trace: Trace, dealt: Sequence[str], hand: Sequence[int], kinds: Kinds, chance: Random
) -> dict[int, list[str]]:
    """Return the piles, top first, by the action that ordered each. Unknown cards are in random order."""
    orders = {}
    for place, pile, given, _ in _Piles(trace, dealt, hand).orders(kinds):
        if place in trace.orders:
            rest = list((pile - given).elements())
            chance.shuffle(rest)
            orders[place] = [kinds[card] if card in kinds else rest.pop() for card in trace.orders[place]]
    return orders
