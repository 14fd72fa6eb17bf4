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
from dubito.game.events import EVERYTHING, AnswerEvent
from dubito.games.bs.cards import (
    COPIES,
    DECK,
    NUMBERS,
    AccuseEvent,
    LoseEvent,
    PlayEvent,
    TakeEvent,
    TurnEvent,
    WinEvent,
)
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
    """One row per turn. Unknown cards and numbers are 0."""

    columns = {
        "cards": NUMBERS,  # cards played that the seat knows, by number
        "n": 1,
        "answer": 1,  # own answer: 1 for no, 2 for yes
        "accuser": 1,  # + 1
        "lie": 1,  # 1 no, 2 yes
        "lost": 1,  # card drawn from the accuser, + 1
    }

    def __init__(self, rules: Any, seat: int) -> None:
        super().__init__(rules, seat)
        self.picks = [0] * NUMBERS  # cards of an unfinished play, by number
        # From the bottom: the row and the number of cards, or 0 for a lost card.
        self._pile: list[tuple[list[int], int]] = []
        self._taken = self._pile  # the pile before

    def see(self, event: Any) -> None:
        match event:
            case AnswerEvent(_, pick) if pick < DONE:
                self.picks[pick] += 1
            case AnswerEvent(_, answer) if answer > DONE:
                self.fill(self.rows[-1], answer=1 + (answer == YES))
            case PlayEvent(seat, _, n):
                own = seat == self.seat
                self._pile.append((self.begin(cards=self.picks if own else (), n=n), n))
                self.picks = [0] * NUMBERS if own else self.picks
            case AccuseEvent(accuser, _, lie):
                self.fill(self.rows[-1], accuser=accuser + 1, lie=1 + lie)
                self._taken, self._pile = self._pile, [(self.rows[-1], 0)] if lie else []
            case TakeEvent(cards):
                self._show_pile([card.number for card in cards])
            case LoseEvent(card):
                self.fill(self.rows[-1], lost=card.number + 1)

    def _show_pile(self, cards: list[int]) -> None:
        """Fill in the cards that the seat picked up, which show what was played."""
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
        accusers, draws = [*self._accusers, *[seat] * accuses], list[float]()
        if seat == max({*SEATS} - {game.public.mover}):
            if len(accusers) > 1:
                accuser = yield draw("accuser", accusers)
                draws.append(draw_for_index(accusers.index(accuser), len(accusers)))
                accusers = [accuser]
            if accusers and game.lie:
                hand = self.hand(accusers[0])
                lost = yield draw("loses", hand)
                draws.append(draw_for_index(hand.index(lost), len(hand)))
            self._settle(accuses, draws)
        else:
            self._accusers = accusers
            game.apply(accuses)

    def _settle(self, accuses: bool, draws: list[float]) -> None:
        """End the turn after the last answer and the draws. Seats see their cards of the pile last."""
        self._accusers, self._draws.draws = [], draws
        events = self.engine.apply(accuses, EVERYTHING)
        assert not self._draws.draws, "the engine has drawn less than chance decided"
        self.log_events(sorted(events, key=lambda event: isinstance(event, TakeEvent | LoseEvent)))

    def describe_event(self, event: GameEvent) -> str:
        match event:
            case PlayEvent(seat, number, n):
                return f"seat {seat} plays {n} as {number}"
            case TurnEvent(pile, hands):
                return f"pile {pile}, hands {join_spaced(hands)}"
            case WinEvent(seat):
                return f"seat {seat} wins"
            case TakeEvent(cards):
                return f"takes {join_spaced(card.number for card in cards)}"
            case LoseEvent(card):
                return f"loses {card.number}"
        return "" if event.silent else type(event).__name__.removesuffix("Event").lower()

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
