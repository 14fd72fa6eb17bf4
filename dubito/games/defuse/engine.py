"""The state of a game of draw and defuse.

Its only randomness is the stream that dealt the game. It uses no clock and no I/O.

A turn has one or more actions: see and shuffle cards, then a draw, a skip or a bottom card. If the drawn card is the
bomb, a defuse card in the hand is played and the seat chooses where to put the bomb. Cards are represented by their
names. Rulings D1 to D7 are in docs/defuse.md.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from operator import attrgetter
from random import Random
from types import MappingProxyType
from typing import Any, Final, Literal

from dubito.errors import IllegalOutput, describe_value, join_names
from dubito.game import Ending, GameEvent
from dubito.game.events import ANNOUNCED
from dubito.game.streams import SeatStreams
from dubito.games.defuse.events import (
    DealEvent,
    DrawEvent,
    EndEvent,
    HandEvent,
    HideEvent,
    LookEvent,
    PileEvent,
    PlaceEvent,
    PlayEvent,
    TakeEvent,
)

BOMB: Final = "bomb"
DEFUSE: Final = "defuse"
CARD_COUNTS: Final = {"skip": 4, "bottom": 4, "shuffle": 4, "see": 8, "nothing": 4}  # cards of the deck (D1)
HAND_SIZE: Final = 5  # cards dealt to each seat, besides one defuse card
SPARE_DEFUSES: Final = 2  # defuse cards in the pile
HAND_CARDS: Final = (DEFUSE, *CARD_COUNTS)  # all cards that a hand can contain, in display order
ALL_CARDS: Final[Mapping[str, int]] = MappingProxyType({BOMB: 1, DEFUSE: 2 + SPARE_DEFUSES, **CARD_COUNTS})
SEE_DEPTH: Final = 3  # cards shown by a see card

DRAW: Final = "draw"  # the action that plays no card
ENDS_TURN: Final = (DRAW, "skip", "bottom")
KEEPS_TURN: Final = ("shuffle", "see")  # after these the same seat acts again
ACTS: Final = (*ENDS_TURN, *KEEPS_TURN)
NodeName = Literal["turn", "place"]


class HandView:
    """A bot's live view of its hand."""

    __slots__ = ("_held",)

    def __init__(self, held: Mapping[str, int]) -> None:
        self._held = held

    def count(self, card: str) -> int:
        return self._held.get(card, 0)

    def __contains__(self, card: object) -> bool:
        return isinstance(card, str) and self._held.get(card, 0) > 0

    def __iter__(self) -> Iterator[str]:
        for card in HAND_CARDS:
            yield from (card,) * self._held[card]

    def __len__(self) -> int:
        return sum(self._held.values())

    def __str__(self) -> str:
        kinds = [f"{n} {card}s" if n > 1 else f"a {card}" for card in HAND_CARDS if (n := self._held[card])]
        return join_names(kinds) if kinds else "no cards"


@dataclass(slots=True)
class SeatCounts:
    turns: int = 0  # turns that the seat began
    draw: int = 0  # draws from the top; this and the next four fields are named after the actions
    skip: int = 0
    bottom: int = 0
    shuffle: int = 0
    see: int = 0
    bombs: int = 0  # drawn
    defuse: int = 0  # bombs survived
    forfeits: int = 0  # games ended by its mistakes


SEAT_COUNTS: Final = tuple(field.name for field in fields(SeatCounts))
GAME_COUNTS: Final = ("turns", "bombs")
_counts: Final = attrgetter(*SEAT_COUNTS)


class State:
    """The state of a game. Read its attributes freely; change it only through `apply` and `forfeit`."""

    def __init__(self, hands: Sequence[Sequence[str]], pile: Sequence[str], rng: Random) -> None:
        """Begin with seat 0. The end of `pile` is its top (D2). `rng` shuffles for shuffle cards."""
        self.hands = [{card: cards.count(card) for card in HAND_CARDS} for cards in hands]
        self.pile = list(pile)
        self.discard: list[str] = []
        self.seat = 0
        self.node: NodeName = "turn"
        self.over = False
        self.winner: int | None = None
        self.turns_played = 0
        self.moves = 0
        self.seen: tuple[str, ...] = ()  # cards shown in this turn, unless the pile was shuffled since
        self.counts = [SeatCounts(turns=1), SeatCounts()]
        self._view = View(self)
        self._rng = rng

    @property
    def start(self) -> Sequence[GameEvent]:
        hands = [HandEvent(tuple(HandView(hand)), only=seat) for seat, hand in enumerate(self.hands)]
        return [
            DealEvent(tuple(len(hand.cards) for hand in hands), len(self.pile)),
            *hands,
            PileEvent(tuple(reversed(self.pile))),
        ]

    def view(self) -> "View":
        return self._view

    def cards(self, seat: int, streams: SeatStreams) -> HandView:
        return HandView(self.hands[seat])  # this view does not draw from the streams

    def apply(self, output: Any, announce: int = ANNOUNCED) -> Sequence[GameEvent]:
        """Apply an action, or place the bomb (see `dubito.game.State`)."""
        if why := self.why_illegal(output):
            raise IllegalOutput(why)
        self.moves += 1
        seat, counts = self.seat, self.counts[self.seat]
        if self.node == "place":
            self.pile.insert(len(self.pile) - output, BOMB)
            self.node = "turn"
            self._end_turn()
            return [PlaceEvent(seat), HideEvent(output, only=seat)] if announce else ()
        if output == DRAW:  # the most common case
            counts.draw += 1
            return self._draw("top", announce)
        setattr(counts, output, getattr(counts, output) + 1)
        self.hands[seat][output] -= 1
        self.discard.append(output)
        events: list[GameEvent] = [PlayEvent(seat, output)] if announce else []
        if output == "see":
            self.seen = tuple(self.pile[: -SEE_DEPTH - 1 : -1])  # the end is the top
            if announce:
                events.append(LookEvent(self.seen, only=seat))
        elif output == "shuffle":
            shuffle(self.pile, self._rng)
            self.seen = ()
            if announce > ANNOUNCED:
                events.append(PileEvent(tuple(reversed(self.pile))))
        elif output == "bottom":
            events += self._draw("bottom", announce)
        else:
            self._end_turn()
        return events

    def forfeit(self, seat: int) -> None:
        """End the game after a seat's mistake: the other seat wins (D4)."""
        if self.over:
            raise IllegalOutput("the game is over")
        self.counts[seat].forfeits += 1
        self.winner, self.over = 1 - seat, True

    def ending(self) -> Ending:
        """Return the winner (mark 1) and the counts, which include the last turn."""
        bombs = sum(counts.bombs for counts in self.counts)
        marks = [int(seat == self.winner) for seat in (0, 1)]
        turns = self.turns_played + 1
        return Ending(
            capped=False, game_counts=(turns, bombs), marks=marks, counts=[_counts(counts) for counts in self.counts]
        )

    def legal(self) -> Sequence[str | int]:
        """Return the legal actions of the seat to move, in order."""
        if self.node == "place":
            return range(len(self.pile) + 1)
        hand = self.hands[self.seat]
        return [act for act in ACTS if act == DRAW or hand[act]]

    def why_illegal(self, output: object) -> str | None:
        """Return why the seat to move may not do this, or None if it may. Does not run the output's code."""
        if self.over:
            return "the game is over"
        if self.node == "place":
            last = len(self.pile)
            if type(output) is int and 0 <= output <= last:
                return None
            return (
                f"the bomb goes to a place from 0, the top, to {last}, the bottom, and not to {describe_value(output)}"
            )
        if type(output) is not str or output not in ACTS:
            return f"an act of a turn is one of {', '.join(ACTS)}, and not {describe_value(output)}"
        if output != DRAW and not self.hands[self.seat][output]:
            return f"the hand holds no {output} card"
        return None

    def _draw(self, end: Literal["top", "bottom"], announce: int) -> Sequence[GameEvent]:
        seat = self.seat
        card = self.pile.pop(-1 if end == "top" else 0)
        if card != BOMB:
            self.hands[seat][card] += 1
            self._end_turn()
            return [DrawEvent(seat, end, bomb=False), TakeEvent(card, only=seat)] if announce else ()
        drawn, counts, hand = DrawEvent(seat, end, bomb=True), self.counts[seat], self.hands[seat]
        counts.bombs += 1
        if not hand[DEFUSE]:
            self.winner, self.over = 1 - seat, True
            return [drawn, EndEvent(seat)] if announce else ()
        counts.defuse += 1
        hand[DEFUSE] -= 1
        self.discard.append(DEFUSE)
        self.node = "place"
        return [drawn, PlayEvent(seat, DEFUSE)] if announce else ()

    def _end_turn(self) -> None:
        self.turns_played += 1
        self.seat = 1 - self.seat
        self.counts[self.seat].turns += 1
        self.seen = ()


class View:
    """A read-only view of the table for the seat to move, computed from the game on access."""

    __slots__ = ("_state",)

    def __init__(self, state: State) -> None:
        self._state = state

    @property
    def node(self) -> NodeName:
        return self._state.node

    @property
    def pile(self) -> int:
        return len(self._state.pile)

    @property
    def other(self) -> int:
        return sum(self._state.hands[1 - self._state.seat].values())

    @property
    def discard(self) -> tuple[str, ...]:
        return tuple(self._state.discard)

    @property
    def seen(self) -> tuple[str, ...]:
        return self._state.seen

    @property
    def moves(self) -> int:
        return self._state.moves

    def legal(self) -> Sequence[str | int]:
        return self._state.legal()

    def why_illegal(self, output: Any) -> str | None:
        return self._state.why_illegal(output)


def deal(rng: Random) -> State:
    """Deal from the end of the deck, like the source project, then add the spare defuse cards and the bomb (D1)."""
    pile = [card for card, n in CARD_COUNTS.items() for _ in range(n)]
    shuffle(pile, rng)
    hands = [[DEFUSE, *(pile.pop() for _ in range(HAND_SIZE))] for _ in (0, 1)]
    pile += [DEFUSE] * SPARE_DEFUSES + [BOMB]
    shuffle(pile, rng)
    return State(hands, pile, rng)


def shuffle(pile: list[str], rng: Random) -> None:
    """Shuffle uniformly using only `random`. This is three times as fast as `Random.shuffle`."""
    draw = rng.random
    for last in range(len(pile) - 1, 0, -1):
        other = int(draw() * (last + 1))
        pile[last], pile[other] = pile[other], pile[last]
