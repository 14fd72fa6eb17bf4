"""BS as a path down its game tree: a play is chosen card by card, then the other three seats are asked.

Cards are in ascending order. Cards of a number are interchangeable, so the first one in the hand is played. In addition
to the deal, chance decides which of several accusers counts and which card a right accuser loses.
"""

from collections import Counter
from collections.abc import Sequence
from operator import attrgetter
from random import Random
from typing import Any, Final, Self, cast

from dubito.errors import UsageError
from dubito.game import GameEvent
from dubito.games.bs.cards import COPIES, DECK, NUMBERS, PlayEvent, TurnEvent, WinEvent
from dubito.games.bs.engine import State, deal
from dubito.games.bs.game import GAME
from dubito.games.bs.table import SEATS
from dubito.plugins.openspiel.course import (
    ChanceDraws,
    Course,
    Feature,
    Fork,
    Recall,
    Stage,
    count_by_kind,
    draw,
    draw_for_index,
    hand_feature,
    join_spaced,
    node_feature,
    one_hot,
)

KINDS: Final = range(NUMBERS)
DONE: Final = NUMBERS  # actions below are numbers
NO, YES = DONE + 1, DONE + 2


class BSRecall(Recall):
    """One row per turn.

    Unknown cards and numbers are 0. The sizes show who accused and whether the play was a lie.
    """

    columns = {
        "cards": NUMBERS,  # cards played that the seat knows, by number
        "n": 1,
        "answer": 1,  # own answer: 1 for no, 2 for yes
        "accuser": 1,  # + 1
        "lie": 1,  # 1 no, 2 yes
        "lost": 1,  # card drawn from the accuser, + 1
    }

    def __init__(self, seat: int) -> None:
        super().__init__(seat)
        self.picks = [0] * NUMBERS  # cards of an unfinished play, by number
        self._sizes = [NUMBERS] * len(SEATS)
        # From the bottom: the row and the number of cards, or 0 for a lost card.
        self._pile: list[tuple[list[int], int]] = []
        self._taken = self._pile  # the pile before

    def add(self, what: Any) -> None:
        match what:
            case ("did", _, pick) if pick < DONE:
                self.picks[pick] += 1
            case ("did", _, answer) if answer > DONE:
                self.fill(self.rows[-1], answer=1 + (answer == YES))
            case PlayEvent(seat, _, n):
                own = seat == self.seat
                self._pile.append((self.begin(cards=self.picks if own else (), n=n), n))
                self._sizes[seat] -= n
                self.picks = [0] * NUMBERS if own else self.picks
            case TurnEvent(pile, hands):
                self._note_settlement(pile, hands)
            case ("takes", cards):
                self._learn([*cards])
            case ("loses", number):
                self.fill(self.rows[-1], lost=number + 1)

    def _note_settlement(self, pile: int, hands: Sequence[int]) -> None:
        changed = [seat for seat in SEATS if hands[seat] != self._sizes[seat]]
        self._sizes, self._taken = [*hands], self._pile
        if changed:
            lie, mover = pile == 1, (len(self.rows) - 1) % len(SEATS)
            accuser = next(seat for seat in changed if seat != mover)
            self.fill(self.rows[-1], accuser=accuser + 1, lie=1 + lie)
            self._pile = [(self.rows[-1], 0)] if lie else []

    def _learn(self, cards: list[int]) -> None:
        """Note the cards that the seat picked up, which show what was played."""
        for row, n in self._taken:
            if n:
                self.fill(row, cards=count_by_kind(cards[:n], KINDS))
            else:
                self.fill(row, lost=cards[0] + 1)
            del cards[: n or 1]


_public: Final = attrgetter("engine.public")
_table: Final = attrgetter("engine.public.n_cards", "engine.public.pile")


class BSCourse(Course):
    """A game of BS. Actions 0 to 12 add a card of that number, 13 ends the play, 14 accepts it, 15 accuses."""

    game, short_name, long_name = GAME, "dubito_bs", "BS, king of the hill"
    kinds = drawn = KINDS
    done = (*(f"card {number}" for number in KINDS), "done", "believes it", "accuses")
    recalls = BSRecall
    recalled = (Feature("picks", NUMBERS, lambda course, seat: course.updated_recall(seat).picks),)
    rows = "turns"
    observed = (
        node_feature(("cards", "bs")),
        hand_feature(KINDS),
        Feature(
            "picks", NUMBERS, lambda course, seat: count_by_kind(course.picks if course.player == seat else (), KINDS)
        ),
        Feature("number", NUMBERS, lambda course, seat: one_hot(_public(course).number, NUMBERS)),
        Feature("mover", 1, lambda course, seat: [_public(course).mover == seat], around=True),
        Feature("table", 2, lambda course, seat: [n / NUMBERS for n in _table(course)]),
        Feature("hands", 1, lambda course, seat: [_public(course).hands[seat] / NUMBERS], around=True),
    )

    engine: State

    def __init__(self, players: int, rules: Any) -> None:
        if rules.max_rounds < 1:
            raise UsageError(f"max_rounds: {rules.max_rounds} is less than 1")
        self.most_rows = rules.max_rounds * players
        # The deal, and per turn at most all cards of the deck, three answers and two draws.
        self.longest = len(DECK) + self.most_rows * (len(DECK) + 1 + 3 + 2)
        self._draws = ChanceDraws()
        self._accusers: list[int] = []  # answers about the current play
        super().__init__(players, rules)

    @property
    def picks(self) -> Sequence[int]:
        return self.script if self.node == "cards" else ()

    def hand(self, seat: int) -> Sequence[int]:
        return [card.number for card in self.engine.hands[seat].cards]

    def deal(self) -> Stage:
        left, deck = Counter(dict.fromkeys(KINDS, COPIES)), []
        while left.total():
            number = yield draw("deal", left)
            deck.append(DECK[COPIES * (number + 1) - left[number]])
            left[number] -= 1
        self._draws = ChanceDraws(deck)
        self.finish_deal(deal(self.rules.max_rounds, cast(Random, self._draws)))

    def turn(self) -> Stage:
        """Yield a play's cards or an answer and, after the last answer, the chance draws."""
        game, seat = self.engine, self.engine.seat
        if game.public.node == "cards":
            left, picks = Counter(self.hand(seat)), list[int]()
            while DONE not in picks:
                numbers = [number for number in range(max(picks, default=0), NUMBERS) if left[number] > 0]
                picks.append((yield Fork("cards", [*numbers, DONE] if picks else numbers)))
                left[picks[-1]] -= 1
            self.log_events(game.apply(GAME.output_of("cards", picks[:-1], game.cards(seat, cast(Any, None)))))
            return
        accuses = (yield Fork("bs", (NO, YES))) == YES
        accusers, draws, lost = [*self._accusers, *[seat] * accuses], [], None
        if seat == max({*SEATS} - {game.public.mover}):
            if len(accusers) > 1:
                accuser = yield draw("accuser", accusers)
                draws.append(draw_for_index(accusers.index(accuser), len(accusers)))
                accusers = [accuser]
            if accusers and game.lie:
                hand = self.hand(accusers[0])
                lost = yield draw("loses", hand)
                draws.append(draw_for_index(hand.index(lost), len(hand)))
            self._settle(accuses, accusers, draws, lost)
        else:
            self._accusers = accusers
            game.apply(accuses)

    def _settle(self, accuses: bool, accusers: Sequence[int], draws: list[float], lost: int | None) -> None:
        """End the turn after the last answer and the draws."""
        game = self.engine
        mover, lie, pile = game.public.mover, game.lie, tuple(card.number for card in game.pile.cards)
        self._accusers, self._draws.draws = [], draws
        self.log_events(game.apply(accuses))
        assert not self._draws.draws, "the engine has drawn less than chance decided"
        if accusers:
            self.note(f"takes {join_spaced(pile)}", ("takes", pile), mover if lie else accusers[0])
        if lost is not None:
            self.note(f"loses {lost}", ("loses", lost), accusers[0])

    def describe_event(self, event: GameEvent) -> str:
        match event:
            case PlayEvent(seat, number, n):
                return f"seat {seat} plays {n} as {number}"
            case TurnEvent(pile, hands):
                return f"pile {pile}, hands {join_spaced(hands)}"
            case WinEvent(seat):
                return f"seat {seat} wins"
        return type(event).__name__.removesuffix("Event").lower()

    def actions_of(self, output: Any) -> list[int]:
        if isinstance(output, bool):
            return [YES if output else NO]
        return [*sorted(card.number for card in output), DONE]

    def pending_outcomes(self) -> Sequence[str]:
        """Return the deal or accusations that are not complete yet."""
        if self.engine is None:
            return [f"dealt {join_spaced(self.script)}"] if self.script else []
        accused, drawn = ([], []) if self.node == "cards" else (self.script[:1], self.script[1:])
        return [f"accuser {a}" for a in [*drawn, *self._accusers, *[self.engine.seat] * (accused == [YES])][:1]]

    def world(self, seat: int, chance: Random) -> Self:
        raise NotImplementedError(
            "BS cannot be sampled from an information state because most plays are never revealed, and the possible "
            "ones depend on the whole game"
        )
