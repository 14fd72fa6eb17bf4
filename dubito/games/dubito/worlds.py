"""Sample games of Dubito that one seat cannot distinguish from the actual game.

Every doubt reveals the whole board. What a seat does not know is therefore the cards played since the last doubt, and
the parts of other seats' first hands that were never shown. All deals that fit are assumed to be equally likely, and so
are all cards of a hand when one is played. How players choose their cards is ignored.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, product
from random import Random
from typing import Final

from dubito.errors import IllegalOutput, UsageError
from dubito.game import GameEvent
from dubito.game.log import SeatLog
from dubito.game.workshop import ForkStart
from dubito.games.dubito.cards import JOKER, NUMBERS, Hand, TurnOutput
from dubito.games.dubito.engine import Rules, State
from dubito.games.dubito.events import (
    CardsPlayedEvent,
    DiscardEvent,
    DoubtResolvedEvent,
    GameStartEvent,
    HandDealtEvent,
    OwnCardsEvent,
)

_MIXING_SWAPS: Final = 300  # swaps of two cards, enough to make all deals equally likely
_MAX_OWNERS: Final = 1_000  # ways to take cards from other seats that `change_hand` tries
_NUMBERS: Final = {str(card): card for card in (JOKER, *NUMBERS)}
_MAX_SWAPS: Final = 10_000  # maximum number of swaps without finding a deal that fits


@dataclass(frozen=True, slots=True)
class World:
    """A game so far: its deal and its moves."""

    rules: Rules
    hands: tuple[tuple[int, ...], ...]  # as dealt
    moves: tuple[TurnOutput, ...] = ()


def sample_world(rules: Rules, log: SeatLog, chance: Random) -> World:
    """Sample a world in which the seat holds these cards and sees these events."""
    own = iter([event.cards for event in log if isinstance(event, OwnCardsEvent)])
    bounds = _Bounds(rules, log)
    hands = bounds.deal(chance)
    state, moves = State(rules, [Hand(hand, rules.copies) for hand in hands]), list[TurnOutput]()
    for place, event in enumerate(log):
        match event:
            case CardsPlayedEvent(mover, number, n):
                if mover == log.seat:
                    cards = next(own)
                else:
                    cards = bounds.shown.get(place) or tuple(chance.sample(state.hands[mover].cards, n))
                moves.append(TurnOutput(False, None if state.number else number, cards))
            case DoubtResolvedEvent():
                moves.append(TurnOutput(True))
            case _:
                continue
        state.apply(moves[-1], announce=0)
    return World(rules, tuple(map(tuple, hands)), tuple(moves))


def start_of(world: World) -> ForkStart:
    copies = world.rules.copies
    return ForkStart(lambda: State(world.rules, [Hand(hand, copies) for hand in world.hands]), world.moves)


def change_hand(start: ForkStart, seat: int, text: str) -> ForkStart:
    """Deal other cards, so that the seat holds these after the same moves.

    It swaps cards that it was dealt and has not played with cards that other seats were dealt and have not played.
    Raises UsageError if there is no such deal.
    """
    state, log = start.replay()
    assert isinstance(state, State)
    dealt, rules = start.deal(), state.rules
    assert isinstance(dealt, State)
    held, others = Counter(state.hands[seat].cards), [other for other in range(len(dealt.hands)) if other != seat]
    wanted = Counter(_NUMBERS.get(card.strip(), -1) for card in text.split(","))
    given, taken = (held - wanted).elements(), [*(wanted - held).elements()]
    if wanted.total() == held.total():
        swaps = [*zip(given, taken, strict=True)]
        sources = [[other for other in others if card in state.hands[other].cards] for card in taken]
        for owners in islice(product(*sources), _MAX_OWNERS):
            hands = [[*hand.cards] for hand in dealt.hands]
            for (card, other_card), owner in zip(swaps, owners, strict=True):
                if card in hands[seat] and other_card in hands[owner]:
                    hands[seat].remove(card)
                    hands[owner].remove(other_card)
                    hands[seat].append(other_card)
                    hands[owner].append(card)
            changed = start_of(World(rules, tuple(map(tuple, hands)), tuple(start.moves)))
            counts = [n for hand in hands for card, n in Counter(hand).items() if card != JOKER]
            if rules.copies not in counts and _leads_to(changed, seat, wanted, log.of(-1)):  # no hand is dealt a set
                return changed
    free = Counter[int]()
    for other in range(len(dealt.hands)):
        free += Counter(state.hands[other].cards) & Counter(dealt.hands[other].cards)
    raise UsageError(
        f"hand: seat {seat} cannot hold these cards; give {held.total()}, separated by commas, as it holds "
        f"{', '.join(map(str, sorted(held.elements())))}, and exchange only cards that were dealt and not played: "
        f"{', '.join(f'{n} x {card}' for card, n in sorted(free.items()))}"
    )


def _leads_to(start: ForkStart, seat: int, hand: Counter[int], public: SeatLog) -> bool:
    """Return whether the moves are legal, everyone sees the same events, and the seat holds this hand."""
    try:
        state, log = start.replay()
    except IllegalOutput:
        return False
    assert isinstance(state, State)
    return [*log.of(-1)] == [*public] and Counter(state.hands[seat].cards) == hand


def split_shown_cards(event: DoubtResolvedEvent, sizes: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """Split the cards that a doubt has shown into the round's plays of these sizes."""
    cards = [*event.board_cards[: sum(sizes[:-1])], *event.latest_cards]
    for n in sizes:
        yield tuple(cards[:n])
        del cards[:n]


class _Bounds:
    """Bounds on the cards that the other seats were dealt, derived from what they have shown since."""

    def __init__(self, rules: Rules, log: SeatLog) -> None:
        self.seat, self.rules = log.seat, rules
        self.shown: dict[int, tuple[int, ...]] = {}  # by the index of the play in the log
        self.own: Sequence[int] = ()
        self._sizes: Sequence[int] = ()
        self._grown: int | None = None  # the seat that has just picked up cards and may discard sets
        self._round: list[tuple[int, int, int]] = []  # index of the event, seat, number of cards
        for place, event in enumerate(log):
            self._watch(place, event)
        self._note_discarded_sets()

    def _watch(self, place: int, event: GameEvent) -> None:
        if not isinstance(event, DiscardEvent):
            self._note_discarded_sets()
        match event:
            case GameStartEvent():
                self._sizes = event.initial_card_counts
                self.least = [Counter[int]() for _ in self._sizes]
                most = dict.fromkeys(NUMBERS, self.rules.copies - 1) | {JOKER: 2}
                self.most = [Counter(most) for _ in self._sizes]
                self._net = [Counter[int]() for _ in self._sizes]  # cards picked up, minus cards played and discarded
            case HandDealtEvent(cards):
                self.own = cards
            case CardsPlayedEvent(seat, _, n):
                self._round.append((place, seat, n))
            case DoubtResolvedEvent():
                shown = split_shown_cards(event, [n for _, _, n in self._round])
                for (played, seat, _), cards in zip(self._round, shown, strict=True):
                    self.shown[played] = cards
                    self._net[seat].subtract(cards)
                    for card in cards:
                        self.least[seat][card] = max(self.least[seat][card], -self._net[seat][card])
                self._round = []
                self._net[event.loser_id].update(event.board_cards)
                self._grown = event.loser_id
            case DiscardEvent(seat, number):
                dealt = self.rules.copies - self._net[seat][number]
                self.least[seat][number] = self.most[seat][number] = dealt
                self._net[seat][number] -= self.rules.copies

    def _note_discarded_sets(self) -> None:
        """Note that a seat that picked up cards has discarded all its sets."""
        if self._grown is not None:
            most, net = self.most[self._grown], self._net[self._grown]
            for number in NUMBERS:
                most[number] = min(most[number], self.rules.copies - 1 - net[number])
            self._grown = None

    def deal(self, chance: Random) -> list[list[int]]:
        """Sample first hands that fit the bounds."""
        remaining = Counter(self.rules.deck)
        remaining.subtract(self.own)
        for least in self.least[: self.seat] + self.least[self.seat + 1 :]:
            remaining.subtract(least)
        while True:
            rest = list(remaining.elements())
            chance.shuffle(rest)
            hands = []
            for seat, size in enumerate(self._sizes):
                hand = list(self.own) if seat == self.seat else list(self.least[seat].elements())
                while len(hand) < size:
                    hand.append(rest.pop())
                hands.append(hand)
            if self._improve_hands(hands, chance):
                return hands

    def _improve_hands(self, hands: list[list[int]], chance: Random) -> bool:
        """Swap cards between hands as long as the fit does not get worse. Return whether the hands fit in the end."""
        counts = [Counter(hand) for hand in hands]
        others = [seat for seat in range(len(hands)) if seat != self.seat]
        wrong = sum(self._distance(seat, card, counts) for seat in others for card in (JOKER, *NUMBERS))
        if len(others) == 1:
            return not wrong
        for step in range(_MAX_SWAPS):
            if step >= _MIXING_SWAPS and not wrong:
                return True
            one, other = chance.sample(others, 2)
            here, there = int(chance.random() * len(hands[one])), int(chance.random() * len(hands[other]))
            card, for_it = hands[one][here], hands[other][there]
            if card == for_it:
                continue
            pairs = [(seat, value) for seat in (one, other) for value in (card, for_it)]
            before = sum([self._distance(*pair, counts) for pair in pairs])
            self._swap(counts, one, other, card, for_it)
            after = sum([self._distance(*pair, counts) for pair in pairs])
            if after > before:
                self._swap(counts, one, other, for_it, card)
            else:
                hands[one][here], hands[other][there] = for_it, card
                wrong += after - before
        return False

    def _distance(self, seat: int, card: int, counts: Sequence[Counter[int]]) -> int:
        n = counts[seat][card]
        return max(0, self.least[seat][card] - n, n - self.most[seat][card])

    def _swap(self, counts: Sequence[Counter[int]], one: int, other: int, card: int, for_it: int) -> None:
        counts[one][card] -= 1
        counts[one][for_it] += 1
        counts[other][for_it] -= 1
        counts[other][card] += 1
