"""BS as a path down its game tree: a play is chosen card by card, then the other three seats are asked.

Cards are in ascending order. Cards of a number are interchangeable, so the first one in the hand is played. In addition
to the deal, chance decides which of several accusers counts and which card a right accuser loses.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from operator import attrgetter
from random import Random
from typing import Any, Final, Self, cast

from dubito.game import GameEvent
from dubito.games.bs.cards import COPIES, DECK, NUMBERS, CardsEvent, HandEvent, HandView, LoseEvent, TakeEvent
from dubito.games.bs.engine import State, deal
from dubito.games.bs.game import GAME
from dubito.games.bs.knowledge import BSRules
from dubito.games.bs.table import SEATS
from dubito.plugins.openspiel.course import ChanceDraws, Course, Fork, Stage, draw, draw_for_index
from dubito.plugins.openspiel.features import Feature, count_by_kind, hand_feature, node_feature, one_hot

KINDS: Final = range(NUMBERS)
DONE: Final = NUMBERS  # actions below are numbers
NO, YES = DONE + 1, DONE + 2


_table: Final = attrgetter("engine.public.n_cards", "engine.public.pile")


def _without_copies(event: GameEvent) -> GameEvent:
    """Replace the cards that a seat sees by their numbers."""
    match event:
        case HandEvent(cards) | CardsEvent(cards) | TakeEvent(cards):
            return replace(event, cards=cast(Any, tuple(card.number for card in cards)))
        case LoseEvent(card):
            return replace(event, card=cast(Any, card.number))
    return event


class BSCourse(Course):
    """A game of BS. Actions 0 to 12 add a card of that number, 13 ends the play, 14 accepts it, 15 accuses."""

    game, short_name, long_name = GAME, "dubito_bs", "BS, king of the hill"
    kinds = drawn = KINDS
    done = (*(f"card {number}" for number in KINDS), "done", "believes it", "accuses")
    observed = (
        node_feature(("cards", "bs")),
        hand_feature(KINDS),
        Feature("picks", NUMBERS, lambda course, seat: count_by_kind(course.choices(seat), KINDS)),
        Feature("number", NUMBERS, lambda course, seat: one_hot(course.engine.public.number, NUMBERS)),
        Feature("mover", 1, lambda course, seat: [course.engine.public.mover == seat], around=True),
        Feature("table", 2, lambda course, seat: [n / NUMBERS for n in _table(course)]),
        Feature("hands", 1, lambda course, seat: [course.engine.public.hands[seat] / NUMBERS], around=True),
    )

    engine: State
    rules: BSRules

    def __init__(self, players: int, rules: BSRules) -> None:
        turns = rules.max_rounds * players
        # The deal, and per turn at most all cards of the deck, three answers and two draws.
        self.longest = len(DECK) + turns * (len(DECK) + 1 + 3 + 2)
        # The deal; seven short events per turn; four piles and a play, also card by card, per round.
        self.most_rows = 5 + turns * 7 + rules.max_rounds * 2 * len(DECK)
        super().__init__(players, rules)

    def hand(self, seat: int) -> Sequence[int]:
        return [card.number for card in self.engine.hands[seat].cards]

    def deal(self) -> Stage:
        left, deck = Counter(dict.fromkeys(KINDS, COPIES)), []
        while left.total():
            number = yield draw("deal", left)
            deck.append(DECK[COPIES * (number + 1) - left[number]])
            left[number] -= 1
        self.draws = ChanceDraws(deck)
        self.finish_deal(deal(self.rules.max_rounds, cast(Random, self.draws)))

    def turn(self) -> Stage:
        """Yield a play's cards or an answer and, after the last answer, the chance draws."""
        game, seat = self.engine, self.engine.seat
        if game.public.node == "cards":
            left, picks = Counter(self.hand(seat)), list[int]()
            while DONE not in picks:
                numbers = [number for number in range(max(picks, default=0), NUMBERS) if left[number] > 0]
                picks.append((yield Fork("cards", [*numbers, DONE] if picks else numbers)))
                left[picks[-1]] -= 1
            self.move(GAME.output_of("cards", picks[:-1], HandView(game.hands[seat])))
            return
        accuses = (yield Fork("bs", (NO, YES))) == YES
        accusers, draws = [*game.accusers, *[seat] * accuses], list[float]()
        if seat == max({*SEATS} - {game.public.mover}):
            if len(accusers) > 1:
                accuser = yield draw("accuser", accusers)
                draws.append(draw_for_index(accusers.index(accuser), len(accusers)))
                accusers = [accuser]
            if accusers and game.lie:
                hand = self.hand(accusers[0])
                lost = yield draw("loses", hand)
                draws.append(draw_for_index(hand.index(lost), len(hand)))
        self.move(accuses, draws)

    def log_events(self, events: Iterable[GameEvent]) -> None:
        super().log_events(map(_without_copies, events))

    def actions_of(self, output: Any) -> list[int]:
        if isinstance(output, bool):
            return [YES if output else NO]
        return [*sorted(card.number for card in output), DONE]

    def world(self, seat: int, chance: Random) -> Self:
        raise NotImplementedError(
            "BS cannot be sampled from an information state because most plays are never revealed, and the possible "
            "ones depend on the whole game"
        )
