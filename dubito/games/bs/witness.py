"""What one BS seat has seen, played and answered, turn by turn, and what it can infer.

The sizes show how a turn ended: which hand picked up the pile, and which hand lost a card to the pile. Everyone
therefore knows whether the play was a lie, and whose accusation counted. A card is only listed as held if this is
certain, not if it may have been played.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Annotated

from pydantic import BaseModel, Field

from dubito.errors import UsageError
from dubito.files import CheckedModel
from dubito.game import GameEvent
from dubito.game.record import Strict
from dubito.games.bs.cards import NUMBERS, Card, DealEvent, PlayEvent, TurnEvent
from dubito.games.bs.table import SEATS, NodeName, View

Number = Annotated[int, Field(ge=0, lt=NUMBERS)]


class BSRules(CheckedModel):
    """The rules that a config can change."""

    max_rounds: int = Field(
        default=1000, ge=1, description="Rounds after which the game ends without a winner."
    )  # (B2)


@dataclass(frozen=True, slots=True)
class Turn(Strict):
    """A turn as seen by a seat. The turn's index determines the mover and the number."""

    n_cards: Annotated[int, Field(ge=1)]  # number of cards in the play
    cards: tuple[Number, ...] = ()  # cards of the seat's own play, ascending; empty for other plays
    answer: bool | None = None  # own answer to another seat's play; None if not given yet, or if a substitute answered
    pile: int | None = None  # size after the turn; None during the turn
    hands: tuple[int, ...] = ()  # sizes after the turn
    taken: tuple[Number, ...] = ()  # cards the seat picked up with the pile, in the order they were played
    lost: Number | None = None  # card drawn from the seat's hand

    @property
    def is_over(self) -> bool:
        return self.pile is not None


@dataclass(frozen=True, slots=True)
class Position:
    """Everything that a seat has observed by the time it decides at a node."""

    rules: BSRules
    seat: int
    node: NodeName
    dealt: tuple[int, ...]  # the seat's first hand, ascending
    turns: tuple[Turn, ...]  # at `bs` the last turn is unfinished

    @property
    def number(self) -> int:
        return (len(self.turns) - (self.node == "bs")) % NUMBERS

    @property
    def mover(self) -> int:
        return (len(self.turns) - (self.node == "bs")) % len(SEATS)


class Notebook:
    """The record of one seat in one game, kept by its player or an observer.

    It infers from the hand what was played, picked up and lost, because a substitute may have played for the seat.
    """

    def __init__(self, seat: int, rules: BSRules | BaseModel) -> None:
        self._seat = seat
        self._rules = rules if isinstance(rules, BSRules) else BSRules(**rules.model_dump())
        self._dealt: tuple[int, ...] = ()
        self._turns: list[Turn] = []
        self._held: list[Card] = []  # the hand at the last event

    def observe(self, event: GameEvent, cards: Iterable[Card]) -> None:
        """Record an event. `cards` is the hand after the event, in the order drawn."""
        before, self._held = self._held, list(cards)
        match event:
            case DealEvent():
                self._dealt = _numbers(self._held)
            case PlayEvent():
                gone = set(before) - set(self._held)
                self._turns.append(Turn(event.n_cards, _numbers(gone) if event.seat == self._seat else ()))
            case TurnEvent():
                grown = len(self._held) - len(before)
                lost = next(iter(set(before) - set(self._held)), None)
                self._turns[-1] = replace(
                    self._turns[-1],
                    pile=event.pile,
                    hands=event.hands,
                    taken=tuple(card.number for card in self._held[-grown:]) if grown > 0 else (),
                    lost=lost.number if lost else None,
                )

    def note_answer(self, node: str, answer: object) -> None:
        if node == "bs":
            self._turns[-1] = replace(self._turns[-1], answer=bool(answer))

    def position(self, node: NodeName, view: View, cards: Iterable[Card]) -> Position:
        return Position(self._rules, self._seat, node, self._dealt, tuple(self._turns))


def _numbers(cards: Iterable[Card]) -> tuple[int, ...]:
    return tuple(sorted(card.number for card in cards))


@dataclass(frozen=True, slots=True)
class Laid:
    """Cards that were added to the pile together."""

    seat: int  # the seat they came from
    number: int | None  # claimed number; None for a card drawn from an accuser
    n_cards: int
    cards: tuple[int, ...]  # empty if unknown to the seat


@dataclass(frozen=True, slots=True)
class Seen:
    """A turn, and what the sizes of hands and pile reveal about it."""

    mover: int
    number: int
    turn: Turn
    accuser: int | None = None  # the accuser that counted; None without an accusation or during the turn
    lie: bool | None = None  # None if unknown
    shown: tuple[Laid, ...] = ()  # the cards that the seat picked up


@dataclass(slots=True)
class SeatHistory:
    """What everyone has seen a seat do."""

    plays: int = 0
    lies: int = 0  # accused plays that were lies
    honest: int = 0  # accused plays that were honest
    right: int = 0  # own accusations that counted
    wrong: int = 0


class Witness:
    """The public state of a game after some turns, and what one seat knows for certain."""

    def __init__(self, position: Position) -> None:
        """Process the turns. Raises UsageError if they are impossible."""
        self.seat = position.seat
        self.hand = Counter(position.dealt)
        self.hands = [NUMBERS] * len(SEATS)  # sizes
        self.pile: list[Laid] = []  # from bottom to top
        self.records = [SeatHistory() for _ in SEATS]
        self.turns: list[Seen] = []
        self.known = [Counter[int]() for _ in SEATS]  # cards that other seats are known to have picked up
        self.put_down = [0] * len(SEATS)  # number of cards played since, which may include these
        for place, turn in enumerate(position.turns):
            try:
                self._watch(place % len(SEATS), place % NUMBERS, turn)
            except ValueError as error:
                raise UsageError(f"turns.{place}: {error}") from None

    @property
    def pile_size(self) -> int:
        return sum(laid.n_cards for laid in self.pile)

    def count_known_cards(self, seat: int, number: int) -> int:
        return max(0, self.known[seat][number] - self.put_down[seat])

    def own_pile_cards(self) -> list[int]:
        return sorted(card for laid in self.pile for card in laid.cards)

    def count_located(self, number: int) -> int:
        """Count the cards of this number that the seat can locate.

        These are in its hand, among its own cards on the pile, or certainly in other hands.
        """
        others = sum(self.count_known_cards(seat, number) for seat in SEATS)
        return self.hand[number] + self.own_pile_cards().count(number) + others

    def _watch(self, mover: int, number: int, turn: Turn) -> None:
        self._check_play(mover, turn)
        self.records[mover].plays += 1
        self.hand -= Counter(turn.cards)
        self.hands[mover] -= turn.n_cards
        self._lay(Laid(mover, number, turn.n_cards, turn.cards))
        if not turn.is_over:
            self.turns.append(Seen(mover, number, turn))
            return
        accuser, lie = self._ending(mover, turn)
        self._check_ending(mover, number, turn, accuser, lie)
        shown: tuple[Laid, ...] = ()
        if accuser is not None:
            shown = self._settle(self.pile[-1], accuser, bool(lie), turn)
        self.hands = list(turn.hands)
        self.turns.append(Seen(mover, number, turn, accuser, lie, shown))

    def _lay(self, laid: Laid) -> None:
        self.pile.append(laid)
        if self.known[laid.seat]:
            self.put_down[laid.seat] += laid.n_cards

    def _ending(self, mover: int, turn: Turn) -> tuple[int | None, bool | None]:
        """Infer from the sizes who accused, if anyone, and whether the play was a lie."""
        changes = {seat: n - self.hands[seat] for seat, n in enumerate(turn.hands) if n != self.hands[seat]}
        if not changes and turn.pile == self.pile_size:
            return None, None
        for accuser in set(SEATS) - {mover}:
            if turn.pile == 0 and changes == {accuser: self.pile_size}:
                return accuser, False
            if turn.pile == 1 and changes == {mover: self.pile_size, accuser: -1}:
                return accuser, True
        raise ValueError("no turn can end with these sizes")

    def _settle(self, play: Laid, accuser: int, lie: bool, turn: Turn) -> tuple[Laid, ...]:
        """Settle an accusation: update the known cards and return what the seat picked up."""
        taker = play.seat if lie else accuser
        if lie:
            self.records[play.seat].lies += 1
            self.records[accuser].right += 1
        else:
            self.records[play.seat].honest += 1
            self.records[accuser].wrong += 1
            self.pile[-1] = play = Laid(play.seat, play.number, play.n_cards, (play.number or 0,) * play.n_cards)
        if taker == self.seat:
            self.pile = list(_split(self.pile, turn.taken))
        for laid in self.pile:
            if laid.seat == taker:
                self.put_down[taker] = max(0, self.put_down[taker] - laid.n_cards)
            elif laid.cards:
                self._note_identified(laid)
        taken_cards = Counter(card for laid in self.pile if laid.seat != taker for card in laid.cards)
        if taker == self.seat:
            self.hand += Counter(turn.taken)
        else:
            self.known[taker] += taken_cards
        shown = tuple(self.pile) if taker == self.seat else ()
        self.pile = []
        self._forget()
        if lie:
            lost = () if turn.lost is None else (turn.lost,)
            self.hand -= Counter(lost)
            self._lay(Laid(accuser, None, 1, lost))
        return shown

    def _note_identified(self, laid: Laid) -> None:
        self.known[laid.seat] -= Counter(laid.cards)  # Counter subtraction drops counts below 0
        self.put_down[laid.seat] = max(0, self.put_down[laid.seat] - laid.n_cards)

    def _forget(self) -> None:
        """Forget what was known about a hand of which nothing is certain any more."""
        for seat in SEATS:
            if self.put_down[seat] >= max(self.known[seat].values(), default=0):
                self.known[seat].clear()
                self.put_down[seat] = 0

    def _check_play(self, mover: int, turn: Turn) -> None:
        """Raise ValueError for an impossible play."""
        if 0 in self.hands:
            raise ValueError("the game had already ended")
        if turn.n_cards > self.hands[mover]:
            raise ValueError(f"n_cards: seat {mover} holds {self.hands[mover]}")
        if len(turn.cards) != (turn.n_cards if mover == self.seat else 0):
            raise ValueError(f"cards: list all cards that seat {self.seat} played on its own turns, and no others")
        if Counter(turn.cards) - self.hand:
            raise ValueError(f"cards: seat {self.seat} does not hold these cards")
        if mover == self.seat and turn.answer is not None:
            raise ValueError("answer: a seat is not asked about its own play")
        if turn.is_over != bool(turn.hands):
            raise ValueError("pile and hands: set both for a finished turn, and neither for an unfinished one")
        if turn.is_over and len(turn.hands) != len(SEATS):
            raise ValueError(f"hands: there are {len(SEATS)} seats")

    def _check_ending(self, mover: int, number: int, turn: Turn, accuser: int | None, lie: bool | None) -> None:
        """Raise ValueError for an ending that contradicts what the seat knows."""
        own = self.seat
        if turn.answer is not None and turn.answer != (accuser == own) and accuser in (None, own):
            raise ValueError("answer: does not match the sizes")
        if mover == own and lie is not None and lie == all(card == number for card in turn.cards):
            raise ValueError("cards: do not match the sizes")
        if len(turn.taken) != (self.pile_size if own == (mover if lie else accuser) else 0):
            raise ValueError(f"taken: must be the pile if seat {own} picks it up, and empty otherwise")
        loses = accuser == own and bool(lie)
        if loses != (turn.lost is not None) or not self.hand >= Counter(() if turn.lost is None else (turn.lost,)):
            raise ValueError(f"lost: must be the card drawn from seat {own} if it accuses rightly, else null")


def _split(pile: Sequence[Laid], cards: Sequence[int]) -> Iterator[Laid]:
    """Assign the shown cards to the plays on the pile. Raises ValueError if they contradict what the seat knows."""
    start = 0
    for laid in pile:
        here = tuple(cards[start : start + laid.n_cards])
        if laid.cards and sorted(laid.cards) != sorted(here):
            raise ValueError("taken: does not match the cards that were played")
        yield Laid(laid.seat, laid.number, laid.n_cards, here)
        start += laid.n_cards
