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

from dubito.games.defuse.engine import ALL_CARDS, BOMB, CARD_COUNTS, DEFUSE, HAND_CARDS, HAND_SIZE, HandView, State
from dubito.games.defuse.knowledge import Act, Notebook, Position

_MIXING_CHANGES: Final = 80  # changes to try; enough to reach the right distribution
_MAX_CHANGES: Final = 20_000  # changes to try before giving up
_LOG_FACTORIALS: Final = [lgamma(n + 1) for n in range(sum(ALL_CARDS.values()) + 1)]  # logarithm of n!

Kinds = dict[int, str]  # card names by number, as in `Trace`


@dataclass
class Trace:
    """The actions, with cards renumbered after each shuffle. `kinds` maps the identified cards to their names."""

    acts: Sequence[Act]
    seat: int
    orders: dict[int, list[int]] = field(default_factory=dict)  # the pile, top first, by the act that ordered it
    kinds: Kinds = field(default_factory=dict)
    taken: dict[int, int] = field(default_factory=dict)  # the card that the other seat drew, by act
    places: dict[int, int] = field(default_factory=dict)  # where the other seat put the bomb, by act

    def follow(self, spots: Mapping[int, float]) -> int | None:
        """Replay the actions and return the first that fails, or None.

        `spots` are the other seat's places for the bomb, as fractions of the pile.
        """
        numbers, bomb, last = count(), -1, -1
        pile = self.orders[-1] = [next(numbers) for _ in range(17)]
        pile = pile[:]
        for place, act in enumerate(self.acts):
            shown: list[tuple[int, str | None]] = []
            match act.act:
                case "shuffle":
                    pile, bomb = [next(numbers) for _ in pile], -1
                    self.orders[place] = pile[:]
                case "see":
                    shown = list(zip(pile, act.cards, strict=False))
                case "draw" | "bottom":
                    shown = [(pile.pop(0 if act.act == "draw" else -1), act.card)]
                    if act.card is None:
                        self.taken[place] = shown[0][0]
                case "place":
                    where = int(spots[place] * (len(pile) + 1)) if act.place is None else act.place
                    self.places[place], last, bomb = where, place, next(numbers)
                    self.kinds[bomb] = BOMB
                    pile.insert(where, bomb)
            for card, kind in shown:
                if not self._fits(card, kind, bomb):
                    return last
            if act.card == BOMB:
                bomb = -1
        return None

    def _fits(self, card: int, kind: str | None, bomb: int) -> bool:
        if kind is None:  # the seat only knows that it was not the bomb
            return self.kinds.get(card) != BOMB
        if bomb >= 0 and (kind == BOMB) != (card == bomb):
            return False
        return self.kinds.setdefault(card, kind) == kind


class World(NamedTuple):
    """What a seat cannot know about a game."""

    hand: Sequence[str]  # the other seat's deal, without its defuse card
    orders: Mapping[int, Sequence[str]]  # the pile, top first, by act (-1 is the deal)
    places: Mapping[int, int]  # where the bomb is after each act

    def replay_position(self, position: Position) -> Position:
        """Return the position in this world. Raises IllegalOutput for an impossible action."""
        seat, hands = position.seat, [position.dealt, [DEFUSE, *self.hand]]
        state = State(hands if seat == 0 else hands[::-1], self.orders[-1][::-1], Random(0))
        book, cards = Notebook(seat, None), HandView(state.hands[seat])
        book.observe(state.start[0], cards)
        for place, act in enumerate(position.acts):
            events = state.apply(self.places[place] if act.act == "place" else act.act)
            state.pile[:] = self.orders.get(place, state.pile[::-1])[::-1]  # as shuffled
            for event in events:
                if event.only in (None, seat):
                    book.observe(event, cards)
        return book.position(position.node, state.view(), cards)


def sample_world(position: Position, chance: Random) -> World:
    """Sample a world in which this seat is dealt the given cards and sees the given actions."""
    seat, dealt = position.seat, position.dealt
    acts = [
        act if act.seat == seat else Act(act.seat, act.act, BOMB if act.card == BOMB else None) for act in position.acts
    ]
    trace = _trace_acts(acts, seat, chance)
    hand = range(-HAND_SIZE, 0)  # the other seat's deal
    kinds = _Guess(trace, dealt, hand).kinds(chance)
    orders = _arrange_piles(trace, dealt, hand, kinds, chance)
    return World([kinds[card] for card in hand], orders, trace.places)


def _trace_acts(acts: Sequence[Act], seat: int, chance: Random) -> Trace:
    """Trace the actions, with places of the bomb that agree with everything seen."""
    spots = {place: chance.random() for place, act in enumerate(acts) if act.act == "place"}
    while True:
        trace = Trace(acts, seat)
        wrong = trace.follow(spots)
        if wrong is None:
            return trace
        spots[wrong] = chance.random()


@dataclass
class _Piles:
    """Which numbered cards are in each hand and pile after every action."""

    trace: Trace
    dealt: Sequence[str]
    hand: Sequence[int]

    def orders(self, kinds: Kinds) -> Iterator[tuple[int, Counter[str], Counter[str], int]]:
        """Yield each ordering of the pile.

        Each is a tuple of the action, the pile's cards, the cards identified in `kinds`, and how many cards the other
        seat has played since the previous ordering without holding them.
        """
        trace, short = self.trace, 0
        hands = {
            trace.seat: Counter(self.dealt),
            1 - trace.seat: Counter([DEFUSE, *(kinds[card] for card in self.hand)]),
        }
        pile = Counter(ALL_CARDS)
        for hand in hands.values():
            pile.subtract(hand)
        yield -1, pile, self._count_kinds(-1, kinds), 0
        for place, act in enumerate(trace.acts):
            hand = hands[act.seat]
            if act.act not in ("draw", "place"):
                hand[act.act] -= 1
                short += hand[act.act] < 0
            if act.act == "shuffle":
                yield place, pile, self._count_kinds(place, kinds), short
                short = 0
            elif act.card == BOMB:
                hand[DEFUSE] -= 1
                short += hand[DEFUSE] < 0
            elif act.act in ("draw", "bottom"):
                card = act.card or kinds[trace.taken[place]]
                hand[card] += 1
                pile[card] -= 1
        yield len(trace.acts), pile, Counter(), short

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
