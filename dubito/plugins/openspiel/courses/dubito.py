"""Dubito as a path down its game tree.

The decisions are the questions A-E, and the draws between them are chance. `FiveNodes` asks the questions, as for bots.
It is restarted after every answer with the answers so far, until it needs a new one. The hands are dealt one after
another, each in ascending order. `_HandDealt` computes the probability of each next card, given that deals with a set
in a hand are rejected (R2). `CardsCourse` is Dubito with cards as decisions: a seat can do anything that the rules
allow.
"""

import pickle
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache, partial
from itertools import chain, zip_longest
from math import comb, factorial, perm
from operator import attrgetter
from random import Random
from typing import Any, ClassVar, Final, Self, cast

from dubito.errors import UsageError
from dubito.game import Player
from dubito.game.events import AnswerEvent
from dubito.game.log import AnswerNotes, Log, Position, SeatLog
from dubito.game.streams import SeatStreams
from dubito.games.dubito.bot import NODES, FiveNodes, five_questions
from dubito.games.dubito.cards import JOKER, MAX_PLAY, NUMBERS, Hand, HandView, TurnData, TurnOutput
from dubito.games.dubito.engine import Rules, State, check_players, deal_hands, why_illegal
from dubito.games.dubito.events import (
    CardList,
    CardsPlayedEvent,
    DoubtResolvedEvent,
    OwnCardsEvent,
)
from dubito.games.dubito.game import GAME
from dubito.games.dubito.worlds import sample_world, split_shown_cards
from dubito.plugins.openspiel.course import (
    CHANCE,
    ChanceDraws,
    Course,
    Feature,
    Fork,
    QuestionCourse,
    Stage,
    count_by_kind,
    describe_event,
    draw,
    hand_feature,
    node_feature,
    one_hot,
)

VALUES: Final = len(NUMBERS) + 1  # of cards, including the joker 0


class _Drawing:
    """Cards that are drawn at random, in ascending order because their order is irrelevant."""

    def __init__(self, counts: Sequence[int], size: int) -> None:
        """Draw this many cards from these counts of each value."""
        self.counts, self.size = counts, size

    def outcomes(self, drawn: Sequence[int]) -> list[tuple[int, float]]:
        """Return each possible next card with its probability, ascending."""
        last = drawn[-1] if drawn else JOKER
        held = drawn.count(last)
        left, factor, ways = self.size - len(drawn) + held, 1, dict[int, int]()
        for card in range(last, len(self.counts)):
            n = self.counts[card]
            more = range(held + 1, min(left, self.most(card)) + 1)
            ways[card] = factor * sum(comb(n, k) * self.count_rest(card, left - k, drawn) for k in more)
            factor, left, held = factor * comb(n, held), left - held, 0
        total = sum(ways.values())
        return [(card, n / total) for card, n in ways.items() if n]

    def most(self, card: int) -> int:
        """Return how many cards of a value can be drawn."""
        return self.counts[card]

    def count_rest(self, card: int, left: int, drawn: Sequence[int]) -> int:
        """Count the ways to draw the rest above this card."""
        return comb(sum(self.counts[card + 1 :]), left)


class _HandDealt(_Drawing):
    """The hand of a seat, dealt so that neither it nor a later seat's hand contains a set (R2)."""

    def __init__(self, counts: Sequence[int], sizes: Sequence[int], copies: int) -> None:
        """Deal the first of these hands. The last one gets the remaining cards."""
        super().__init__(counts, sizes[0])
        self._later, self._copies = tuple(sizes[1:]), copies
        self._ways = dict[tuple[int, int, int], int]()

    def _is_whole(self, card: int) -> bool:
        return card != JOKER and self.counts[card] == self._copies

    def most(self, card: int) -> int:
        return self.counts[card] - self._is_whole(card)

    def count_rest(self, card: int, left: int, drawn: Sequence[int]) -> int:
        return self._count(card + 1, left, sum(self._is_whole(n) and n not in drawn for n in range(card)))

    def _count(self, card: int, left: int, whole: int) -> int:
        """Count the ways to deal the cards from this one, if later seats can get the sets of `whole` lower numbers."""
        if card == len(self.counts):
            return 0 if left else _deals_without_set(whole, self._later, self._copies)
        key = card, left, whole
        if key not in self._ways:
            self._ways[key] = sum(
                comb(self.counts[card], n) * self._count(card + 1, left - n, whole + (not n and self._is_whole(card)))
                for n in range(min(left, self.most(card)) + 1)
            )
        return self._ways[key]


@lru_cache(maxsize=2**14)
def _deals_without_set(whole: int, sizes: Sequence[int], copies: int) -> int:
    """Count the deals of all cards to hands of these sizes without a set, by inclusion-exclusion.

    The cards contain all copies of `whole` numbers.
    """
    shares = {0: Fraction(1)}  # by number of sets
    for size in sizes:
        joined: dict[int, Fraction] = {}
        for sets, share in shares.items():
            for n in range(min(whole - sets, size // copies) + 1):
                more = share / (factorial(n) * factorial(size - copies * n))
                joined[sets + n] = joined.get(sets + n, Fraction(0)) + more
        shares = joined
    signed = [(-1) ** n * perm(whole, n) * factorial(sum(sizes) - copies * n) * share for n, share in shares.items()]
    return int(sum(signed))


_hand_dealt: Final = lru_cache(maxsize=2**10)(_HandDealt)


class _Missing(Exception):
    """Stops a walk until its fork is decided."""


class _Walker(FiveNodes):
    """Replays a turn with the answers and draws so far, in order."""

    def __init__(self, seat: int, hand: Hand, given: Sequence[int]) -> None:
        super().__init__(seat)
        self.cards = _Hand(hand, self)
        self._given = iter(given)

    def next(self, fork: Fork) -> int:
        for value in self._given:
            return value
        raise _Missing(fork)

    def _draw(self, most: int) -> int:
        return self.next(draw("n", [min(n, len(self.cards)) for n in range(1, most + 1)]))

    def _draw_number(self, p: TurnData) -> int:
        return self.next(draw("number", p.playing_cards or NUMBERS[:1]))


class _Hand(HandView):
    """A hand whose random cards are chosen by chance."""

    __slots__ = ("_walker",)

    def __init__(self, hand: Hand, walker: _Walker) -> None:
        super().__init__(hand, SeatStreams(b""))  # unused streams
        self._walker = walker

    def pick_random(self, n: int) -> list[int]:
        if n >= len(self):
            return list(self)
        drawing, picked = _Drawing(count_by_kind(list(self), range(VALUES)), n), list[int]()
        while len(picked) < n:
            picked.append(self._walker.next(Fork("card", (), partial(drawing.outcomes, tuple(picked)))))
        return picked


_SCALES: Final = (18, 50, 50, 20, 10, 10)  # scales of a seat's six counters
_counters: Final = attrgetter("n_cards", "turns", "not_first_turns", "doubts", "honest_times", "dishonest_times")


def _board(course: "DubitoCourse", seat: int) -> list[float]:
    game = course.engine
    return [len(game.board) / 54, game.streak / 10, game.can_doubt]


def _seat(course: "DubitoCourse", seat: int) -> list[float]:
    numbers = _counters(course.engine.counts[seat])
    return [n / of for n, of in zip(numbers, _SCALES, strict=True)]


def _bluffs(course: "DubitoCourse", seat: int) -> list[float]:
    game, node = course.engine, course.node if course.player == seat else ""
    must = node == "E" and not game.hands[seat].counts[game.number]
    return [float(must or (node in ("B", "E") and course.script[-1:] == [1]))]


_OBSERVED_FEATURES: Final = (
    hand_feature(range(VALUES)),
    Feature("number", VALUES, lambda course, seat: one_hot(course.engine.number, VALUES)),
    Feature("last_play", MAX_PLAY + 1, lambda course, seat: one_hot(course.engine.n_cards_played, MAX_PLAY + 1)),
    Feature("board", 3, _board),
    Feature("in_play", len(NUMBERS), lambda course, seat: [n in course.engine.playing_cards for n in NUMBERS]),
    Feature("last_player", 1, lambda course, seat: [course.engine.last_player == seat], around=True),
    Feature("seats", len(_SCALES), _seat, around=True),
)


def describe_log(log: SeatLog) -> str:
    """Return the information state (see `Course.information`) of a seat whose game may have unsorted plays."""
    sizes, texts = list[int](), list[str]()
    for event in log:
        match event:
            case CardsPlayedEvent(_, _, n):
                sizes.append(n)
            case OwnCardsEvent(cards):
                event = replace(event, cards=tuple(sorted(cards)))
            case DoubtResolvedEvent():
                *older, latest = (sorted(cards) for cards in split_shown_cards(event, sizes))
                left = latest if event.correct else [card for card in latest if card != JOKER]
                event = replace(event, latest_cards=CardList(latest), board_cards=CardList([*chain(*older), *left]))
                sizes = []
        texts.append(describe_event(event))
    return "; ".join(texts)


class DubitoCourse(QuestionCourse):
    """A game of Dubito. Actions are 0 (no) and 1 (yes). Outcomes are a card, a number, or a count of cards."""

    game, long_name = GAME, "Dubito"
    kinds = drawn = range(VALUES)
    done: ClassVar[Sequence[object]] = (False, True)
    observed: ClassVar[Sequence[Feature]] = (
        node_feature("ABCDE"),
        Feature("bluffs", 1, _bluffs),
        *_OBSERVED_FEATURES,
    )
    engine: State
    rules: Rules

    def __init__(self, players: int, rules: Rules) -> None:
        check_players(players, rules)
        self.zero_sum = rules.duel
        turns = 2 * rules.max_turns  # each turn can earn a free turn
        self.longest = 8 * turns + len(rules.deck)
        self.most_rows = 4 * turns + len(rules.deck)
        super().__init__(players, rules)

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        """Copy faster than the default, because enumerating a tree copies each state."""
        twin = copy(self)
        twin.log, twin.history, twin.script = Log(self.log.events), self.history[:], self.script[:]
        twin.engine = pickle.loads(pickle.dumps(self.engine))  # noqa: S301, our own
        return twin

    def hand(self, seat: int) -> Sequence[int]:
        return sorted(self.engine.hands[seat].cards)

    def deal(self) -> Stage:
        """Yield the cards of all hands but the last, which gets the remaining cards."""
        left, hands = Counter(self.rules.deck), list[list[int]]()
        sizes = [len(range(seat, len(self.rules.deck), self.players)) for seat in range(self.players)]
        for seat in range(self.players - 1):
            counts, hand = tuple(left[card] for card in range(self.rules.ranks + 1)), list[int]()
            while len(hand) < sizes[seat]:
                dealt = _hand_dealt(counts, tuple(sizes[seat:]), self.rules.copies)
                hand.append((yield Fork("deal", (), partial(dealt.outcomes, tuple(hand)))))
            left -= Counter(hand)
            hands.append(hand)
        hands.append(sorted(left.elements()))
        cards = [card for around in zip_longest(*hands) for card in around if card is not None]
        hands_dealt = deal_hands(cast(Random, ChanceDraws(cards)), self.players, self.rules)
        self.finish_deal(State(self.rules, hands_dealt))

    def turn(self) -> Stage:
        given = list[int]()
        while isinstance(output := self._output(given), Fork):
            given.append((yield output))
        cards = tuple(sorted(output.cards or ()))  # their order within a play is irrelevant
        self.move(replace(output, cards=cards))

    def _output(self, given: Sequence[int]) -> TurnOutput | Fork:
        """Return the turn's output, or the fork to decide next."""
        game = self.engine
        walker = _Walker(game.seat, game.hands[game.seat], given)
        walk = five_questions(walker, game.turn_data())
        try:
            node = next(walk)
            while True:
                node = walk.send(walker.next(Fork(node, (0, 1))) == 1)
        except StopIteration as end:
            output: TurnOutput = end.value
            return output
        except _Missing as missing:
            fork: Fork = missing.args[0]
            return fork

    def steps(self, player: Player) -> list[int]:
        """Return the bot's answers to the questions. The bot's own draws are dropped, because chance draws here."""
        log, before = Log(self.log.events), len(self.log.events)
        if isinstance(player, FiveNodes):
            player._seating.log = log.of(self.player)
            player.listeners = (AnswerNotes(log, self.player),)
            player.play(self.engine.turn_data())
        if len(log.events) == before:
            raise UsageError(
                f"{type(player).__name__} does not answer the nodes A-E, but plays cards of its choice: load "
                "dubito(moves=cards), or seat a bot that derives from bots.base.BotBase"
            )
        return [int(event.answer) for event in log.events[before:] if isinstance(event, AnswerEvent)]

    def words(self, player: int, action: int) -> str:
        return f"{self.node} {'yes' if action else 'no'}" if player != CHANCE else super().words(player, action)

    def make(self, move: TurnOutput) -> None:
        """Make a turn with this output. A play is made as a bluff, because a bluff can play any cards."""
        cards, turns = deque(sorted(move.cards or ())), self.engine.turns_played
        steps = {"A": 1, "B": 0, "C": int(move.doubt), "D": 1, "E": 0, "n": len(cards), "number": move.number}
        while self.engine.turns_played == turns:
            self.apply(cards.popleft() if self.node == "card" else steps[self.node] or 0)

    def world(self, seat: int, chance: Random) -> Self:
        """Sample a game with the same decisions of this seat and other cards in the other hands."""
        world = type(self)(self.players, self.rules)
        if self.engine is None:
            return world  # while nobody has seen anything yet
        other = sample_world(self.rules, self.log.of(seat), chance)
        for card in chain(*map(sorted, other.hands[:-1])):
            world.apply(card)
        own = deque(self._own_steps(seat))
        for move in other.moves:
            turns = world.engine.turns_played
            if world.engine.seat != seat:
                world.make(move)
            while world.engine.turns_played == turns:
                world.apply(own.popleft())
        for step in own:  # the steps of an unfinished turn
            world.apply(step)
        assert world.information(seat) == self.information(seat), "the seat can distinguish this world from its own"
        return world

    def question(self) -> Position:
        return Position(GAME.rules(**self.rules.stored_form()), self.node, self.log.of(self.player))

    def ask_player(self, player: Player) -> object:
        return getattr(player, NODES[self.node])(self.engine.view())

    def _own_steps(self, seat: int) -> Iterator[int]:
        """Return the seat's answers and the draws of its turns."""
        mover = CHANCE
        for player, action in self.history:
            mover = mover if player == CHANCE else player
            if mover == seat:
                yield action


DONE: Final = VALUES  # actions below are cards
DOUBT: Final = DONE + 1
DECLARE: Final = DOUBT  # with the number added
_DECLARED: Final = [DECLARE + number for number in NUMBERS]


def _script(course: "CardsCourse", seat: int) -> list[int]:
    return course.script if course.player == seat else []


class CardsCourse(DubitoCourse):
    """A game of Dubito with cards as actions.

    Actions 0 to 13 add a card, 14 ends the play, 15 doubts, and 16 to 28 declare a number. Cards are in ascending
    order, and an opening starts with its number. Turns have no chance decisions.
    """

    done = (*(f"card {card}" for card in range(VALUES)), "done", "doubt", *(f"declare {n}" for n in NUMBERS))
    terms = ("declare", "play", "more")
    observed = (
        node_feature(terms),
        Feature(
            "declared",
            len(NUMBERS),
            lambda course, seat: count_by_kind(_script(course, seat), _DECLARED),
        ),
        Feature("picks", VALUES, lambda course, seat: count_by_kind(_script(course, seat), range(VALUES))),
        *_OBSERVED_FEATURES,
    )

    def _output(self, given: Sequence[int]) -> TurnOutput | Fork:
        game, picks = self.engine, [action for action in given if action < DONE]
        if DOUBT in given:
            return TurnOutput(True)
        if DONE in given or len(picks) == MAX_PLAY:
            return TurnOutput(False, None if game.number else given[0] - DECLARE, picks)
        if not game.number and not given:
            return Fork("declare", _DECLARED[: self.rules.ranks])
        left, least = Counter(game.hands[game.seat].cards), max(picks, default=0)
        left.subtract(picks)
        cards = [card for card in range(least, VALUES) if left[card] > 0]
        if picks:
            return Fork("more", [*cards, DONE])
        return Fork("play", [*cards, DOUBT] if game.can_doubt else cards)

    steps, words = Course.steps, Course.words

    def why_illegal(self, output: Any) -> str | None:
        game = self.engine
        return why_illegal(output, game.hands[game.seat].counts, game.number, game.can_doubt, self.rules.ranks)

    def actions_of(self, output: TurnOutput) -> list[int]:
        """Return the decisions: a doubt, or the cards, which in an opening follow the number."""
        if output.doubt:
            return [DOUBT]
        cards = sorted(output.cards or ())
        number = [] if self.engine.number else [DECLARE + (output.number or 0)]
        return [*number, *cards, *([DONE] if len(cards) < MAX_PLAY else [])]

    def make(self, move: TurnOutput) -> None:
        for action in self.actions_of(move):
            self.apply(action)
