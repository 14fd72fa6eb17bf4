"""Dubito as a path down its game tree.

The decisions are the questions A-E, and the draws between them are chance. `FiveNodes` asks the questions, as for bots.
It is restarted after every answer with the answers so far, until it needs a new one. `Deal` computes the probability of
each card being dealt next, given that deals with a set in a hand are rejected (R2). The accepted deals are equally
likely, so a card's probability is the share of deals that begin with the cards so far and this card. These deals are
counted by inclusion-exclusion over the sets that seats could still complete. `CardsCourse` is Dubito with cards as
decisions: a seat can do anything that the rules allow.
"""

import pickle
from collections import Counter, deque
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import cache, lru_cache, partial
from itertools import chain, combinations, product, zip_longest
from math import comb, factorial, perm, prod
from operator import attrgetter
from random import Random
from typing import Any, ClassVar, Final, Self, cast

from dubito.errors import UsageError
from dubito.game import GameEvent, Player
from dubito.game.events import EVERYTHING, AnswerEvent
from dubito.game.log import Log, Position, SeatLog
from dubito.game.streams import SeatStreams
from dubito.games.dubito.bot import NODES, FiveNodes, Listener, five_questions
from dubito.games.dubito.cards import COPIES, JOKER, MAX_PLAY, NUMBERS, Hand, HandView, TurnData, TurnOutput
from dubito.games.dubito.engine import DUEL, Rules, State, check_players, deal_hands, why_illegal
from dubito.games.dubito.events import (
    CardList,
    CardsPlayedEvent,
    DiscardEvent,
    DoubtResolvedEvent,
    Event,
    GameStartEvent,
    OwnCardsEvent,
    PlayerWonEvent,
)
from dubito.games.dubito.game import GAME
from dubito.games.dubito.worlds import sample_world, split_shown_cards
from dubito.plugins.openspiel.course import (
    CHANCE,
    ChanceDraws,
    Course,
    Feature,
    Fork,
    KindsEvent,
    Recall,
    Stage,
    count_by_kind,
    draw,
    hand_feature,
    join_spaced,
    node_feature,
    one_hot,
)

VALUES: Final = len(NUMBERS) + 1  # of cards, including the joker 0
SHARED: Final = -1  # marks a number of which two seats hold cards, so that nobody can complete the set

_FACTOR: Final = 64  # more than the number of cards

Terms = dict[int, int]  # signed counts, by `_FACTOR` * sets of undealt numbers + cards of all sets
Seat = tuple[int, tuple[int, ...]]  # remaining cards; number of sets that lack 1, 2 and 3 cards


class Deal:
    """A deal, card by card around the table from the first seat."""

    def __init__(self, players: int, rules: Rules) -> None:
        size = len(rules.deck)
        self.cards: list[int] = []  # dealt so far, in order
        self.left = Counter(rules.deck)
        self._ranks, self._copies = rules.ranks, rules.copies
        self._holders: dict[int, int] = {}  # for each dealt number, the only seat with cards of it, or SHARED
        self._slots = [len(range(seat, size, players)) for seat in range(players)]  # cards that each still gets

    @property
    def seat(self) -> int:
        return len(self.cards) % len(self._slots)

    def give(self, card: int) -> None:
        seat = self.seat
        self._holders[card] = seat if self._holders.get(card, seat) == seat and card != JOKER else SHARED
        self._slots[seat] -= 1
        self.left[card] -= 1
        self.cards.append(card)

    def outcomes(self) -> list[tuple[int, float]]:
        """Return each possible next card with its probability, ascending."""
        orders: dict[tuple[bool, int | None, int], int] = {}  # cards with equal knowledge are interchangeable
        ways = {}
        for card, n in sorted(self.left.items()):
            alike = (card == JOKER, self._holders.get(card), n)
            if n and alike not in orders:
                orders[alike] = self._count_orders(card)
            ways[card] = n and n * orders[alike]
        total = sum(ways.values())
        return [(card, n / total) for card, n in ways.items() if n]

    def _count_orders(self, card: int) -> int:
        """Count the possible orders of the remaining cards after this card."""
        seat, holders = self.seat, self._holders
        holder_of_card = seat if holders.get(card, seat) == seat and card != JOKER else SHARED
        if holder_of_card == seat and self.left[card] == 1:
            return 0  # the only seat with cards would complete its set
        lacking = [[0, 0, 0] for _ in self._slots]
        for number, holder in {**holders, card: holder_of_card}.items():
            if holder != SHARED:
                lacking[holder][self.left[number] - 1 - (number == card)] += 1
        undealt = self._ranks - len({*holders, card} - {JOKER})
        seats = [(n - (place == seat), tuple(lacking[place])) for place, n in enumerate(self._slots)]
        return _orders_without_set(undealt, tuple(sorted(seats)), self._copies)


@lru_cache(maxsize=2**15)
def _orders_without_set(undealt: int, seats: tuple[Seat, ...], copies: int = COPIES) -> int:
    """Count the orders of the remaining deck in which no seat completes a set.

    All copies of the `undealt` numbers are in that deck.
    """
    left = sum(slots for slots, _ in seats)
    terms: Terms = {0: 1}
    for seat in seats:
        joined: Terms = {}
        for key, ways in terms.items():
            for more, factor in _with_sets(undealt, *seat, copies).items():
                joined[key + more] = joined.get(key + more, 0) + ways * factor
        terms = joined
    return sum(perm(undealt, key // _FACTOR) * factorial(left - key % _FACTOR) * ways for key, ways in terms.items())


@cache
def _with_sets(undealt: int, slots: int, lacking: tuple[int, ...], copies: int) -> Terms:
    """Count the ways to complete some of a seat's sets, negative for an odd number of sets.

    Sets of undealt numbers are only counted here. `_orders_without_set` chooses them.
    """
    terms: Terms = Counter()
    for sets in range(min(undealt, slots // copies) + 1):
        for chosen in product(*(range(n + 1) for n in lacking)):
            cards = copies * sets + sum(lack * n for lack, n in enumerate(chosen, 1))
            if cards <= slots:
                ways = prod(map(comb, lacking, chosen)) * perm(slots, cards) // factorial(sets)
                terms[_FACTOR * sets + cards] += ways * (-1) ** (sets + sum(chosen))
    return terms


def _hand_of_a_duel(rules: Rules) -> Generator[Fork, int, list[int]]:
    """Yield the first seat's hand in ascending order. The other seat gets the rest of the deck."""
    hand = list[int]()
    while len(hand) < _first_hand(rules):
        hand.append((yield Fork("deal", (), partial(_next_of_a_hand, rules, tuple(hand)))))
    return hand


@lru_cache(maxsize=2**12)
def _next_of_a_hand(rules: Rules, hand: tuple[int, ...]) -> list[tuple[int, float]]:
    cards = range(hand[-1] if hand else JOKER, rules.ranks + 1)
    return _shares({card: _count_ways(rules, (*hand, card)) for card in cards})


def _first_hand(rules: Rules) -> int:
    return -(-len(rules.deck) // DUEL)


def _count_ways(rules: Rules, begun: Sequence[int]) -> int:
    """Count the ascending hands with this beginning for which neither hand has a set."""
    counts, last = Counter(begun), begun[-1]

    @cache
    def count_rest(card: int, left: int) -> int:
        if card > rules.ranks:
            return left == 0
        n, least, most = (rules.copies, 1, rules.copies - 1) if card else (rules.jokers, 0, rules.jokers)
        top = counts[card] if card < last else most
        held = range(max(least, counts[card]), min(top, left) + 1)
        return sum(comb(n, k) * count_rest(card + 1, left - k) for k in held)

    return count_rest(JOKER, _first_hand(rules))


@lru_cache(maxsize=2**12)
def _picks(pool: tuple[int, ...], picked: tuple[int, ...], n: int) -> list[tuple[int, float]]:
    begun = len(picked)
    return _shares(Counter(cards[begun] for cards in combinations(pool, n) if cards[:begun] == picked))


def _shares(ways: Mapping[int, int]) -> list[tuple[int, float]]:
    total = sum(ways.values())
    return [(outcome, n / total) for outcome, n in sorted(ways.items()) if n]


class DubitoRecall(Recall):
    """One row per turn. Unknown cards are 0."""

    columns = {
        "seat": 1,  # + 1
        "doubt": 1,
        "number": 1,
        "n": 1,  # cards played
        "cards": MAX_PLAY,  # the cards + 1
        "own": 2,  # own turns: bluffed, and played as many as possible: 1 no, 2 yes
    }

    def __init__(self, rules: Any, seat: int) -> None:
        super().__init__(rules, seat)
        self.sets = [0] * VALUES  # turn after which a set of the number left the game
        self.own = [0, 0]  # answers of an unfinished turn
        self._round: list[tuple[list[int], int]] = []  # rows and their numbers of cards

    def see(self, event: Any) -> None:
        match event:
            case AnswerEvent("A" | "D", answer):
                self.own[0] = 1 + answer
            case AnswerEvent("B" | "E", answer):
                self.own[1] = 1 + answer
            case OwnCardsEvent(cards):
                self.fill(self.rows[-1], cards=[card + 1 for card in cards], own=self.own)
                self.own = [0, 0]
            case CardsPlayedEvent(seat, number, n):
                self._round.append((self.begin(seat=seat + 1, number=number, n=n), n))
            case DoubtResolvedEvent():
                self.begin(seat=event.doubter_id + 1, doubt=1, number=event.declared_number)
                shown = split_shown_cards(event, [n for _, n in self._round])
                for (row, _), cards in zip(self._round, shown, strict=True):
                    self.fill(row, cards=[card + 1 for card in cards])
                self._round = []
            case DiscardEvent(_, number):
                self.sets[number] = len(self.rows)


class _Missing(Exception):
    """Stops a walk until its fork is decided."""


class _Walker(FiveNodes):
    """Replays a turn with the answers and draws so far, in order."""

    def __init__(self, seat: int, hand: Hand, given: Sequence[int], at_once: bool) -> None:
        """Replay these decisions. If `at_once` is set, a play's random cards are drawn in ascending order."""
        super().__init__(seat)
        self.cards = _Hand(hand, self)
        self.at_once = at_once
        self._given = iter(given)

    def next(self, fork: Fork) -> int:
        for value in self._given:
            return value
        raise _Missing(fork)

    def _draw(self, most: int) -> int:
        numbers = range(1, most + 1)
        held = len(self.cards)
        return self.next(draw("n", [min(n, held) for n in numbers] if self.at_once else numbers))

    def _draw_number(self, p: TurnData) -> int:
        return self.next(draw("number", p.playing_cards or NUMBERS[:1]))


class _Hand(HandView):
    """A hand whose random cards are chosen by chance."""

    __slots__ = ("_walker",)

    def __init__(self, hand: Hand, walker: _Walker) -> None:
        super().__init__(hand, SeatStreams(b""))  # unused streams
        self._walker = walker

    def pick_random(self, n: int) -> list[int]:
        pool = list(self)
        if n >= len(pool):
            return pool
        picked = list[int]()
        if self._walker.at_once:
            pool.sort()
            while len(picked) < n:
                picked.append(self._walker.next(Fork("card", (), partial(_picks, tuple(pool), tuple(picked), n))))
            return picked
        for _ in range(n):
            picked.append(self._walker.next(draw("card", pool)))
            pool.remove(picked[-1])
        return picked


class _AnswerRecorder(Listener):
    """Collects the answers of a turn."""

    def __init__(self) -> None:
        self.answers: list[int] = []

    def note_answer(self, node: str, answer: bool) -> None:
        self.answers.append(int(answer))


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
    Feature("number", VALUES, lambda course, seat: one_hot(course.engine.number, VALUES), before=one_hot(0, VALUES)),
    Feature(
        "last_play",
        MAX_PLAY + 1,
        lambda course, seat: one_hot(course.engine.n_cards_played, MAX_PLAY + 1),
        before=one_hot(0, MAX_PLAY + 1),
    ),
    Feature("board", 3, _board),
    Feature(
        "in_play",
        len(NUMBERS),
        lambda course, seat: [number in course.engine.playing_cards for number in NUMBERS],
        before=[1] * len(NUMBERS),
    ),
    Feature("last_player", 1, lambda course, seat: [course.engine.last_player == seat], around=True),
    Feature("seats", len(_SCALES), _seat, around=True),
)
_NODE_FEATURE: Final = node_feature("ABCDE")
_SETS: Final = Feature("sets", VALUES, lambda course, seat: course.updated_recall(seat).sets)


def _describe_event(event: Event) -> str:
    match event:
        case GameStartEvent():
            return f"{len(event.player_ids)} seats hold {join_spaced(event.initial_card_counts)}"
        case CardsPlayedEvent(seat, number, n):
            return f"seat {seat} plays {n} as {number}"
        case DoubtResolvedEvent():
            truth = "a bluff" if event.correct else "honest"
            latest, taken_cards = join_spaced(event.latest_cards), join_spaced(event.board_cards)
            return f"seat {event.doubter_id} doubts {event.target_id}: {latest}, {truth}, takes {taken_cards}".rstrip()
        case DiscardEvent(seat, number):
            return f"seat {seat} discards the set of {number}"
        case PlayerWonEvent(seat, place):
            return f"seat {seat} wins place {place}"


def _as_in_harness(event: GameEvent) -> GameEvent:
    return replace(event, answer=bool(event.answer)) if isinstance(event, AnswerEvent) else event


class Diary:
    """The information state of a seat (see `DubitoCourse.information`), kept by its player.

    Events may arrive late, but before the next question. The seat's own play can be derived from its hand, because it
    has played at most once since its last question, and the cards that it picked up and discarded are known.
    """

    def __init__(self, seat: int) -> None:
        self._seat, self._texts = seat, list[str]()
        self._held = Counter[int]()  # at the last question, with later gains and losses except for the seat's play
        self._unknown: int | None = None  # index of the entry for the seat's play
        self._turn_lasts = False  # the seat's turn, whose events are incomplete
        self._sizes: list[int] = []  # sizes of the round's plays

    def observe(self, event: Event, hand: Iterable[int]) -> None:
        """Process an event. `hand` is used at the start of the game."""
        if isinstance(event, CardsPlayedEvent | DoubtResolvedEvent):
            self._end_turn()
        self._texts.append(_describe_event(self._sorted(event)))
        match event:
            case GameStartEvent():
                self._held = Counter(hand)
                self._texts.append(f"hand {join_spaced(sorted(self._held.elements()))}")
            case CardsPlayedEvent(seat, _, n):
                self._turn_lasts = seat == self._seat
                self._sizes.append(n)
            case DoubtResolvedEvent():
                self._sizes = []
                self._held.update(event.board_cards if event.loser_id == self._seat else ())
            case DiscardEvent(seat, number, n) if seat == self._seat:
                self._held[number] -= n

    def _sorted(self, event: Event) -> Event:
        """Sort the cards of a doubted play, like a course."""
        if not isinstance(event, DoubtResolvedEvent):
            return event
        *older, latest = (sorted(cards) for cards in split_shown_cards(event, self._sizes))
        left = latest if event.correct else [card for card in latest if card != JOKER]
        return replace(event, latest_cards=CardList(latest), board_cards=CardList([*chain(*older), *left]))

    def _end_turn(self) -> None:
        if self._turn_lasts:
            self._unknown, self._turn_lasts = len(self._texts), False
            self._texts.append("")

    def known(self, hand: Iterable[int]) -> str:
        """Return the information state at a question, given the hand."""
        self._end_turn()
        if self._unknown is not None:
            put_down = self._held - Counter(hand)
            self._texts[self._unknown] = f"with {join_spaced(sorted(put_down.elements()))}"
            self._held, self._unknown = Counter(hand), None
        return "; ".join(self._texts)

    def note_answer(self, node: str, answer: bool) -> None:
        self._texts.append(f"{node} {DubitoCourse.done[answer]}")


class DubitoCourse(Course):
    """A game of Dubito. Actions are 0 (no) and 1 (yes). Outcomes are a card, a number, or a count of cards."""

    game, long_name = GAME, "Dubito"
    kinds = drawn = range(VALUES)
    done: ClassVar[tuple[str, ...]] = ("no", "yes")
    recalls = DubitoRecall
    recalled: ClassVar[Sequence[Feature]] = (
        _SETS,
        Feature(
            "asked", 7, lambda course, seat: [*_NODE_FEATURE.value(course, seat), *course.updated_recall(seat).own]
        ),
    )
    rows = "turns"
    observed: ClassVar[Sequence[Feature]] = (_NODE_FEATURE, Feature("bluffs", 1, _bluffs), *_OBSERVED_FEATURES)

    engine: State

    def __init__(self, players: int, rules: Rules) -> None:
        check_players(players, rules)
        self.zero_sum = rules.duel
        self.most_rows = 2 * rules.max_turns  # each turn can earn a free turn
        self.longest = 8 * self.most_rows + len(rules.deck)
        super().__init__(players, rules)

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Copy faster than the default, because enumerating a tree copies each state."""
        twin = copy(self)
        twin.log, twin.history, twin.script = Log(self.log.events), self.history[:], self.script[:]
        twin.engine = pickle.loads(pickle.dumps(self.engine))  # noqa: S301, our own
        return twin

    def hand(self, seat: int) -> Sequence[int]:
        return sorted(self.engine.hands[seat].cards)

    def deal(self) -> Stage:
        if self.rules.duel:
            first = yield from _hand_of_a_duel(self.rules)
            other = [*(Counter(self.rules.deck) - Counter(first)).elements()]
            cards = [card for pair in zip_longest(first, other) for card in pair if card is not None]
        else:
            deal = Deal(self.players, self.rules)
            while deal.left.total():
                deal.give((yield Fork("deal", (), deal.outcomes)))
            cards = deal.cards
        hands = deal_hands(cast(Random, ChanceDraws(cards)), self.players, self.rules)
        self.finish_deal(State(self.rules, hands))

    def turn(self) -> Stage:
        given = list[int]()
        while isinstance(output := self._output(given), Fork):
            given.append((yield output))
        cards = tuple(sorted(output.cards or ()))  # their order within a play is irrelevant
        events = self.engine.apply(replace(output, cards=cards), EVERYTHING)
        self.log.add(sorted(events, key=lambda event: event.silent))  # own cards come last

    def _output(self, given: Sequence[int]) -> TurnOutput | Fork:
        """Return the turn's output, or the fork to decide next."""
        game = self.engine
        walker = _Walker(game.seat, game.hands[game.seat], given, self.rules.duel)
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

    def describe_event(self, event: GameEvent) -> str:
        if isinstance(event, OwnCardsEvent):
            return f"with {join_spaced(event.cards)}"
        return "" if event.silent else _describe_event(cast(Event, event))

    def steps(self, player: Player) -> list[int]:
        """Return the bot's answers to the questions. The bot's own draws are dropped, because chance draws here."""
        recorder = _AnswerRecorder()
        if isinstance(player, FiveNodes):
            player.listeners = (recorder,)
            player.play(self.engine.turn_data())
        if not recorder.answers:
            raise UsageError(
                f"{type(player).__name__} does not answer the nodes A-E, but plays cards of its choice: load "
                "dubito(moves=cards), or seat a bot that derives from bots.base.BotBase"
            )
        return recorder.answers

    def describe_answer(self, node: str, action: int) -> str:
        return f"{node} {self.done[action]}"

    def pending_outcomes(self) -> Sequence[str]:
        return [f"{self.node} after {join_spaced(self.script)}"] if self.script else []

    def make(self, move: TurnOutput) -> None:
        """Make a turn with this output. A play is made as a bluff, because a bluff can play any cards."""
        cards, turns = deque(self._sort_cards(move.cards or ())), self.engine.turns_played
        steps = {"A": 1, "B": 0, "C": int(move.doubt), "D": 1, "E": 0, "n": len(cards), "number": move.number}
        while self.engine.turns_played == turns:
            self.apply(cards.popleft() if self.node == "card" else steps[self.node] or 0)

    def world(self, seat: int, chance: Random) -> Self:
        """Sample a game with the same decisions of this seat and other cards in the other hands."""
        world = type(self)(self.players, self.rules)
        if self.engine is None:
            return world  # while nobody has seen anything yet
        other = sample_world(self.rules, self.seat_log(seat), chance)
        for card in self._deal_steps(other.hands):
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

    def _deal_steps(self, hands: Sequence[Sequence[int]]) -> list[int]:
        if self.rules.duel:
            return sorted(hands[0])
        return [card for cards in zip_longest(*hands) for card in cards if card is not None]

    def _sort_cards(self, cards: Sequence[int]) -> Sequence[int]:
        return sorted(cards) if self.rules.duel else cards

    def question(self) -> Position:
        """Return the position of the seat to move, for prompts."""
        return Position(GAME.rules(**self.rules.stored_form()), self.node, self.seat_log(self.player))

    def ask_player(self, player: Player) -> object:
        return getattr(player, NODES[self.node])(self.engine.view())

    def seat_log(self, seat: int) -> SeatLog:
        """Return what this seat has seen, including its last cards if it has won."""
        seen = self.log.of(seat)
        own = [event for event in self.log.events if event.only == seat]
        events = [*seen, *own[sum(event.only == seat for event in seen) :]]
        return SeatLog(seat, [_as_in_harness(event) for event in events if not isinstance(event, KindsEvent)])

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


def _declared(course: "CardsCourse", seat: int) -> list[int]:
    script = _script(course, seat)
    number = [action - DECLARE for action in script if action > DOUBT] or [0]
    return [*number, *(action + 1 for action in script if action < DONE)]


class CardsCourse(DubitoCourse):
    """A game of Dubito with cards as actions.

    Actions 0 to 13 add a card, 14 ends the play, 15 doubts, and 16 to 28 declare a number. Cards are in ascending
    order, and an opening starts with its number. Turns have no chance decisions.
    """

    done = (*(f"card {card}" for card in range(VALUES)), "done", "doubt", *(f"declare {n}" for n in NUMBERS))
    recalled = (_SETS, Feature("asked", 7, _declared))
    observed = (
        node_feature(("declare", "play", "more")),
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

    steps, describe_answer = Course.steps, Course.describe_answer

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
