"""Sample games of draw and defuse that one seat cannot distinguish from the actual game.

The seat does not know the cards that the other seat was dealt and drew, the order of the pile, or where the other seat
put the bomb. Worlds are sampled with the probabilities of the deal and the shuffles. The likelihood of the other seat's
actions is ignored.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, count, cycle
from math import exp, lgamma
from random import Random
from typing import Final, NamedTuple

from dubito.game.events import GameEvent
from dubito.game.log import SeatLog
from dubito.games.defuse import events
from dubito.games.defuse.engine import ALL_CARDS, BOMB, CARD_COUNTS, DEFUSE, HAND_CARDS, HAND_SIZE

_MIXING_CHANGES: Final = 80  # changes to try; enough to reach the right distribution
_MAX_CHANGES: Final = 20_000  # changes to try before giving up
_LOG_FACTORIALS: Final = [lgamma(n + 1) for n in range(sum(ALL_CARDS.values()) + 1)]  # logarithm of n!
_OTHER_DEAL: Final = range(-HAND_SIZE, 0)  # the other seat's deal, without its defuse card

Kinds = dict[int, str]  # card names by number, as in `Trace`


class World(NamedTuple):
    """What a seat cannot know about a game."""

    orders: Mapping[int, Sequence[str]]  # the pile, top first, by the event that ordered it; both deals precede it
    places: Mapping[int, int]  # where the other seat put the bomb, by event


class Trace:
    """A seat's log, with cards renumbered after each shuffle. `kinds` maps the identified cards to their names."""

    def __init__(self, log: SeatLog, spots: Mapping[int, float]) -> None:
        """Begin the log. `spots` are the other seat's places for the bomb, as fractions of the pile, by event."""
        self.log, self._spots = log, spots
        self.dealt: Sequence[str] = ()  # to this seat, without its defuse card
        self.kinds: Kinds = {}
        self.orders: dict[int, list[int]] = {}  # the pile, top first, by the event that ordered it
        self.taken: dict[int, int] = {}  # the card that the other seat drew, by event
        self.places: dict[int, int] = {}  # where the other seat put the bomb, by event
        self._pile: list[int] = []  # top first
        self._drawn = self._bomb = -1  # the last drawn card, and the bomb if a seat has put it back since the shuffle
        self._numbers = count()

    def follow(self) -> int | None:
        """Follow the log and return the last place of the bomb before it becomes impossible, or None."""
        last = -1
        for place, event in enumerate(self.log):
            last = place if place in self._spots else last
            if not all(self._fits(card, kind) for card, kind in self._move(place, event)):
                return last
        return None

    def _move(self, place: int, event: GameEvent) -> Iterator[tuple[int, str | None]]:
        """Move the cards, and yield those of which the seat sees something, with their names."""
        match event:
            case events.DealEvent(_, size):
                self._order(place, size)
            case events.HandEvent(cards):
                self.dealt = [card for card in cards if card != DEFUSE]
            case events.PlayEvent(_, "shuffle"):
                self._order(place, len(self._pile))
            case events.LookEvent(cards):
                yield from zip(self._pile, cards, strict=False)
            case events.DrawEvent(seat, end, is_bomb):
                self._drawn = self._pile.pop(0 if end == "top" else -1)
                if seat != self.log.seat and not is_bomb:
                    self.taken[place] = self._drawn
                yield self._drawn, BOMB if is_bomb else None
                if is_bomb:
                    self._bomb = -1
            case events.TakeEvent(name):
                yield self._drawn, name
            case events.PlaceEvent() if place in self._spots:
                self.places[place] = int(self._spots[place] * (len(self._pile) + 1))
                self._hide(self.places[place])
            case events.HideEvent(where):
                self._hide(where)

    def _order(self, place: int, size: int) -> None:
        self._pile, self._bomb = [next(self._numbers) for _ in range(size)], -1
        self.orders[place] = self._pile[:]

    def _hide(self, where: int) -> None:
        self._bomb = next(self._numbers)
        self.kinds[self._bomb] = BOMB
        self._pile.insert(where, self._bomb)

    def _fits(self, card: int, kind: str | None) -> bool:
        if kind is None:  # the seat only knows that it was not the bomb
            return self.kinds.get(card) != BOMB
        if self._bomb >= 0 and (kind == BOMB) != (card == self._bomb):
            return False
        return self.kinds.setdefault(card, kind) == kind

    def piles(self, kinds: Kinds) -> Iterator[tuple[int, Counter[str], Counter[str], int]]:
        """Yield the pile at each shuffle and at the end, if these are the kinds of cards.

        Each is a tuple of the event, the pile's cards, its cards of known kind, and how many cards the other seat has
        played since the last shuffle without holding them.
        """
        hand, pile, lacking = Counter([DEFUSE, *(kinds[card] for card in _OTHER_DEAL)]), Counter(ALL_CARDS), 0
        pile.subtract([DEFUSE, *self.dealt, *hand.elements()])
        for place, event in enumerate(self.log):
            match event:
                case events.PlayEvent(seat, card) if seat != self.log.seat:
                    hand[card] -= 1
                    lacking += hand[card] < 0
                case events.TakeEvent(card):
                    pile[card] -= 1
                case events.DrawEvent() if place in self.taken:
                    card = kinds[self.taken[place]]
                    hand[card] += 1
                    pile[card] -= 1
            if place in self.orders:
                yield place, pile, Counter(kinds[card] for card in self.orders[place] if card in kinds), lacking
                lacking = 0
        yield len(self.log), pile, Counter(), lacking


def sample_world(log: SeatLog, chance: Random) -> World:
    """Sample a world in which this seat sees the events of this log."""
    other = 1 - log.seat
    placed = [place for place, event in enumerate(log) if isinstance(event, events.PlaceEvent) and event.seat == other]
    spots = {place: chance.random() for place in placed}
    while (wrong := (trace := Trace(log, spots)).follow()) is not None:
        spots[wrong] = chance.random()
    kinds, orders = _guess_kinds(trace, chance), dict[int, list[str]]()
    for place, pile, known, _ in trace.piles(kinds):
        rest = list((pile - known).elements())
        chance.shuffle(rest)
        orders[place] = [kinds[card] if card in kinds else rest.pop() for card in trace.orders.get(place, ())]
    deals = [trace.dealt, [kinds[card] for card in _OTHER_DEAL]]
    return World({**orders, 0: [*deals[log.seat], *deals[other], *orders[0]]}, trace.places)


def _guess_kinds(trace: Trace, chance: Random) -> Kinds:
    """Guess what the other seat was dealt and drew, by repeatedly changing one or two cards."""
    unknown = [*_OTHER_DEAL, *(card for card in trace.taken.values() if card not in trace.kinds)]
    left, names = Counter(CARD_COUNTS), tuple(CARD_COUNTS)
    left.subtract(trace.dealt)
    rest = list(left.elements())
    chance.shuffle(rest)
    kinds = trace.kinds | dict(zip(unknown, chain(rest, cycle(names)), strict=False))
    faults, weight = _judge(trace, left, kinds)
    for step in range(_MAX_CHANGES):
        if step >= _MIXING_CHANGES and not faults:
            break
        one, other = chance.choice(unknown), chance.choice(unknown)
        before = kinds[one], kinds[other]
        if one == other:
            kinds[one] = chance.choice(names if one in _OTHER_DEAL else HAND_CARDS)
        elif DEFUSE in before and (one in _OTHER_DEAL or other in _OTHER_DEAL):
            continue  # a seat is dealt only one defuse card
        else:
            kinds[one], kinds[other] = kinds[other], kinds[one]
        now, likely = _judge(trace, left, kinds)
        if now < faults or (now == faults and (now or chance.random() < exp(min(0, likely - weight)))):
            faults, weight = now, likely
        else:
            kinds[one], kinds[other] = before
    assert not faults, "no hand of the other seat fits what was seen"
    return kinds


def _judge(trace: Trace, left: Counter[str], kinds: Kinds) -> tuple[int, float]:
    """Return how many impossibilities these kinds imply, and the logarithm of their probability."""
    faults, weight = _count_ways(left, Counter(kinds[card] for card in _OTHER_DEAL))
    for _, pile, known, lacking in trace.piles(kinds):
        wrong, likely = _count_ways(pile, known)
        faults, weight = faults + wrong + lacking, weight + likely
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
