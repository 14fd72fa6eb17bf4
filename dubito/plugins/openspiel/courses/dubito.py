"""Dubito as a path down its game tree.

The decisions are the questions A-E, and the draws between them are chance. `FiveNodes` asks the questions, as for bots.
It is restarted after every answer with the answers so far, until it needs a new one. The hands are dealt one after
another, each in ascending order. `_HandDealt` computes the probability of each next card, given that deals with a set
in a hand are rejected (R2). `CardsCourse` is Dubito with cards as decisions: a seat can do anything that the rules
allow.
"""

import pickle
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import lru_cache, partial
from itertools import chain, product, repeat, zip_longest
from math import comb, factorial, perm, prod
from operator import attrgetter
from random import Random
from types import MappingProxyType
from typing import Any, ClassVar, Final, Self, cast

from dubito.errors import UsageError
from dubito.game import Player
from dubito.game.events import AnswerEvent
from dubito.game.log import AnswerNotes, Log, SeatLog
from dubito.game.streams import SeatStreams
from dubito.games.dubito.bot import FiveNodes
from dubito.games.dubito.cards import COPIES, JOKER, MAX_PLAY, NUMBERS, Hand, HandView, TurnData, TurnOutput
from dubito.games.dubito.engine import Rules, State, check_players, deal_game, why_illegal
from dubito.games.dubito.events import CardList, CardsPlayedEvent, DoubtResolvedEvent, OwnCardsEvent
from dubito.games.dubito.game import GAME
from dubito.games.dubito.worlds import sample_world, split_shown_cards
from dubito.plugins.openspiel.course import CHANCE, ChanceDraws, Course, Fork, MoveCourse, Stage, describe_event, draw
from dubito.plugins.openspiel.features import Feature, count_by_kind, hand_feature, node_feature, one_hot

VALUES: Final = len(NUMBERS) + 1  # of cards, including the joker 0
_NO_SETS: Final = len(NUMBERS) * COPIES  # more copies than a hand contains


def list_next_cards(
    counts: tuple[int, ...], sizes: tuple[int, ...], copies: int, drawn: Sequence[int]
) -> list[tuple[int, float]]:
    """Return each possible next card of a hand with its probability, ascending.

    The cards, of which there are these counts by value, are dealt to hands of these sizes, so that none of them
    contains a set (R2). The first hand, which has `drawn` so far, is drawn in ascending order, which is irrelevant.
    """
    cards = range(max(drawn, default=JOKER), len(counts))
    ways = {card: _count_hands(counts, sizes, copies, (*drawn, card)) for card in cards}
    total = sum(ways.values())
    return [(card, n / total) for card, n in ways.items() if n]


def _count_hands(counts: tuple[int, ...], sizes: tuple[int, ...], copies: int, drawn: Sequence[int]) -> int:
    """Count the deals in which the first hand begins with these cards, in ascending order."""
    *_, last = drawn
    held, whole = drawn.count(last), [card != JOKER and n == copies for card, n in enumerate(counts)]
    left, skipped = sizes[0] - len(drawn) + held, sum(whole[card] and card not in drawn for card in range(last))
    return prod(comb(counts[card], drawn.count(card)) for card in range(last)) * sum(
        comb(counts[last], n) * _count_deals(counts[last + 1 :], (left - n, *sizes[1:]), copies, skipped)
        for n in range(held, min(left, counts[last] - whole[last]) + 1)
    )


@lru_cache(maxsize=2**16)
def _count_deals(counts: tuple[int, ...], sizes: tuple[int, ...], copies: int, skipped: int) -> int:
    """Count the deals of these cards without a set to hands of these sizes.

    All copies of another `skipped` numbers go to the hands after the first.
    """
    if not counts:
        return 0 if sizes[0] else _count_later_deals(skipped, sizes[1:], copies)
    whole = counts[0] == copies
    return sum(
        comb(counts[0], n) * _count_deals(counts[1:], (sizes[0] - n, *sizes[1:]), copies, skipped + (whole and not n))
        for n in range(min(sizes[0], counts[0] - whole) + 1)
    )


@lru_cache(maxsize=2**14)
def _count_later_deals(whole: int, sizes: tuple[int, ...], copies: int) -> int:
    """Count the deals of all cards to hands of these sizes without a set, by inclusion-exclusion.

    The cards contain all copies of `whole` numbers.
    """
    total = 0
    for sets in product(*(range(size // copies + 1) for size in sizes)):
        ways = (-1) ** sum(sets) * perm(whole, sum(sets)) * factorial(sum(sizes) - copies * sum(sets))
        for n, size in zip(sets, sizes, strict=True):
            ways //= factorial(n) * factorial(size - copies * n)
        total += ways
    return total


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

    def _ask(self, node: str, p: TurnData) -> bool:
        return self.next(Fork(node, (0, 1))) == 1

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
        counts, sizes, picked = tuple(self._counts), (n, len(self) - n), list[int]()
        while len(picked) < n:
            cards = partial(list_next_cards, counts, sizes, _NO_SETS, tuple(picked))
            picked.append(self._walker.next(Fork("card", (), cards)))
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


class DubitoCourse(Course):
    """A game of Dubito. Actions are 0 (no) and 1 (yes). Outcomes are a card, a number, or a count of cards."""

    game, long_name = GAME, "Dubito"
    kinds = drawn = range(VALUES)
    done: ClassVar[Sequence[object]] = (False, True)
    observed: ClassVar[Sequence[Feature]] = (node_feature("ABCDE"), Feature("bluffs", 1, _bluffs), *_OBSERVED_FEATURES)
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
        twin.history, twin.script = self.history[:], self.script[:]
        twin.engine = pickle.loads(pickle.dumps(self.engine))  # noqa: S301, our own
        return twin

    def hand(self, seat: int) -> Sequence[int]:
        return sorted(self.engine.hands[seat].cards)

    def deal(self) -> Stage:
        """Yield the cards of all hands but the last, which gets the remaining cards."""
        left, hands = Counter(self.rules.deck), list[list[int]]()
        sizes = tuple(len(range(seat, len(self.rules.deck), self.players)) for seat in range(self.players))
        for seat in range(self.players - 1):
            counts, hand = tuple(left[card] for card in range(self.rules.ranks + 1)), list[int]()
            while len(hand) < sizes[seat]:
                cards = partial(list_next_cards, counts, sizes[seat:], self.rules.copies, tuple(hand))
                hand.append((yield Fork("deal", (), cards)))
            left -= Counter(hand)
            hands.append(hand)
        hands.append(sorted(left.elements()))
        deck = ChanceDraws([card for around in zip_longest(*hands) for card in around if card is not None])
        self.finish_deal(deal_game(self.rules, self.players, cast(Random, deck)))

    def turn(self) -> Stage:
        given = list[int]()
        while isinstance(output := self._output(given), Fork):
            given.append((yield output))
        cards = tuple(sorted(output.cards or ()))  # their order within a play is irrelevant
        self.move(replace(output, cards=cards))

    def _output(self, given: Sequence[int]) -> TurnOutput | Fork:
        """Return the turn's output, or the fork to decide next."""
        game = self.engine
        try:
            return _Walker(game.seat, game.hands[game.seat], given)._play_with_listeners(game.view())
        except _Missing as missing:
            return cast(Fork, missing.args[0])

    def steps(self, player: Player) -> list[int]:
        """Return the bot's answers to the questions. The bot's own draws are dropped, because chance draws here."""
        log = Log(self.log.events)
        if isinstance(player, FiveNodes):
            player._seating.log, player.listeners = log.of(self.player), (AnswerNotes(log, self.player),)
            player.play(self.engine.view())
        answers = log.events[len(self.log.events) :]
        if not answers:
            raise UsageError(
                f"{type(player).__name__} does not answer the nodes A-E, but plays cards of its choice: load "
                "dubito(moves=cards), or seat a bot that derives from bots.base.BotBase"
            )
        return [int(event.answer) for event in answers if isinstance(event, AnswerEvent)]

    def words(self, player: int, action: int) -> str:
        return f"{self.node} {'yes' if action else 'no'}" if player != CHANCE else super().words(player, action)

    def deal_cards(self, hands: Sequence[Sequence[int]]) -> None:
        """Deal these hands."""
        for card in chain(*map(sorted, hands[:-1])):
            self.apply(card)

    def make(self, move: TurnOutput, own: deque[int]) -> None:
        """Make a turn with this output and these answers of the seat, if they are known.

        If they are unknown, a play is made as a bluff, because a bluff can play any cards.
        """
        cards, turns = deque(sorted(move.cards or ())), self.engine.turns_played
        steps = {"A": 1, "B": 0, "C": int(move.doubt), "D": 1, "E": 0, "n": len(cards), "number": move.number}
        while self.engine.turns_played == turns:
            if own and self.player != CHANCE:
                self.apply(own.popleft())
            else:
                self.apply(cards.popleft() if self.node == "card" else steps[self.node] or 0)

    def world(self, seat: int, chance: Random) -> Self:
        """Sample a game with the same decisions of this seat and other cards in the other hands."""
        world = type(self)(self.players, self.rules)
        if self.engine is None:
            return world  # while nobody has seen anything yet
        log = self.log.of(seat)
        other = sample_world(self.rules, log, chance)
        world.deal_cards(other.hands)
        own = deque(self.done.index(event.answer) for event in log if isinstance(event, AnswerEvent))
        for move in other.moves:
            world.make(move, own if world.engine.seat == seat else deque())
        for action in own:  # of an unfinished turn
            world.apply(action)
        assert world.information(seat) == self.information(seat), "the seat can distinguish this world from its own"
        return world


DONE: Final = VALUES  # actions below are cards
DOUBT: Final = DONE + 1
DECLARE: Final = DOUBT  # with the number added
_DECLARED: Final = [DECLARE + number for number in NUMBERS]


class CardsCourse(DubitoCourse, MoveCourse):
    """A game of Dubito with cards as actions.

    Actions 0 to 13 add a card, 14 ends the play, 15 doubts, and 16 to 28 declare a number. Cards are in ascending
    order, and an opening starts with its number. Turns have no chance decisions.
    """

    moves = "cards"
    small = MappingProxyType(Rules(0, "contested", max_turns=3, ranks=2, copies=2, duel=True).stored_form())
    done = (*(f"card {card}" for card in range(VALUES)), "done", "doubt", *(f"declare {n}" for n in NUMBERS))
    terms = ("declare", "play", "more")
    observed = (
        node_feature(terms),
        Feature("declared", len(NUMBERS), lambda course, seat: count_by_kind(course.choices(seat), _DECLARED)),
        Feature("picks", VALUES, lambda course, seat: count_by_kind(course.choices(seat), range(VALUES))),
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
        left = Counter(game.hands[game.seat].cards) - Counter(picks)
        cards = [card for card in range(max(picks, default=0), VALUES) if left[card]]
        return Fork("more", [*cards, DONE]) if picks else Fork("play", [*cards, *[DOUBT] * game.can_doubt])

    steps, words = Course.steps, Course.words

    def plays_by_answers(self, bot: type[Player]) -> bool:
        plays = ("play", "doubt", "bluff", "play_truthfully")
        return issubclass(bot, FiveNodes) and all(getattr(bot, name) is getattr(FiveNodes, name) for name in plays)

    def ask(self, given: Sequence[int]) -> TurnOutput | Fork:
        return super()._output(given)

    def why_illegal(self, output: Any) -> str | None:
        game = self.engine
        return why_illegal(output, game.hands[game.seat].counts, game.number, game.can_doubt, self.rules.ranks)

    def actions_of(self, output: TurnOutput) -> list[int]:
        """Return the decisions: a doubt, or the cards, which in an opening follow the number."""
        return [DOUBT] if output.doubt else _list_actions(output.number, output.cards or ())

    def make(self, move: TurnOutput, own: deque[int]) -> None:
        for action in self.actions_of(move):
            self.apply(own.popleft() if own else action)


def _list_actions(number: int | None, cards: Sequence[int]) -> list[int]:
    declared = [] if number is None else [DECLARE + number]
    return [*declared, *sorted(cards), *([DONE] if len(cards) < MAX_PLAY else [])]


def _describe_actions(actions: Sequence[int]) -> list[str]:
    nodes = chain(["declare"] * (actions[0] > DECLARE), ["play"], repeat("more"))
    return [f"{node} {CardsCourse.done[action]}" for node, action in zip(nodes, actions, strict=False)]


def describe_log(log: SeatLog) -> str:
    """Return the information state in `CardsCourse` of a seat whose game may have been played in another way."""
    sizes, texts = list[int](), list[str]()
    events = [event for event in log if not isinstance(event, AnswerEvent)]
    for event, after in zip_longest(events, events[1:]):
        match event:
            case CardsPlayedEvent(seat, number, n):
                if seat == log.seat:
                    assert isinstance(after, OwnCardsEvent)
                    texts += _describe_actions(_list_actions(None if sizes else number, after.cards))
                sizes.append(n)
            case OwnCardsEvent(cards):
                event = replace(event, cards=tuple(sorted(cards)))
            case DoubtResolvedEvent():
                texts += _describe_actions([DOUBT]) if event.doubter_id == log.seat else []
                *older, latest = (sorted(cards) for cards in split_shown_cards(event, sizes))
                left = latest if event.correct else [card for card in latest if card != JOKER]
                event = replace(event, latest_cards=CardList(latest), board_cards=CardList([*chain(*older), *left]))
                sizes = []
        texts.append(describe_event(event))
    return "; ".join(texts)


def draw_move(log: SeatLog, table: Mapping[str, Mapping[int, float]], chance: Random) -> TurnOutput:
    """Draw a seat's move from the probabilities of actions in each information state of `CardsCourse`."""
    known, actions = describe_log(log), list[int]()
    while not actions or (actions[-1] not in (DONE, DOUBT) and sum(one < DONE for one in actions) < MAX_PLAY):
        row = table["; ".join([known, *(_describe_actions(actions) if actions else ())])]
        actions += chance.choices([*row], [*row.values()])
    if actions == [DOUBT]:
        return TurnOutput(True)
    number = actions[0] - DECLARE if actions[0] > DECLARE else None
    return TurnOutput(False, number, [action for action in actions if action < DONE])
