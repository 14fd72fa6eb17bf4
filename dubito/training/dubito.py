"""Dubito as a path: the questions of the walk A-E are the decisions; what the walk draws is chance.

The walk itself is `FiveNodes`, the one that bots go: it is begun anew after every answer, with those given so far,
until it asks for one that is not there.

How likely each card is to be dealt next at Dubito, where a deal in which somebody holds a set is thrown away (R2).

The deals that are kept are equally likely. So a card is as likely as the share of them that begin with the cards
dealt so far and this one. They are counted by inclusion and exclusion over who could still come to hold which set.

Dubito as a path whose decisions are the cards themselves: whatever the rules allow, a seat can do.
"""

from collections import Counter, deque
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache, lru_cache
from itertools import product
from math import comb, factorial, perm, prod
from operator import attrgetter
from random import Random
from typing import Any, Final, Self, cast

from dubito.errors import IllegalOutput, UsageError
from dubito.game import Player
from dubito.game.streams import SeatStreams
from dubito.games.dubito.bot import NODES, FiveNodes, Listener
from dubito.games.dubito.cards import COPIES, JOKER, MOST, NUMBERS, Hand, HandView, TurnData, TurnOutput
from dubito.games.dubito.engine import RESULTS, Rules, State, check_players, deal_hands, why_illegal
from dubito.games.dubito.events import (
    CardsPlayedEvent,
    DiscardEvent,
    DoubtResolvedEvent,
    Event,
    GameStartEvent,
    PlayerWonEvent,
)
from dubito.games.dubito.worlds import DealBounds
from dubito.training.course import CHANCE, ChanceDraws, Course, Pieces, one_hot

SHARED: Final = -1  # of a number: two seats hold some of it, so nobody will hold the set

_SETS: Final = 64  # more than there are cards

Terms = dict[int, int]  # signed ways, by `_SETS` times the sets of numbers not dealt yet, plus the cards of all sets
Seat = tuple[int, tuple[int, ...]]  # cards it still gets; how many sets it lacks 1, 2 and 3 cards of


class Deal:
    """A deal card by card round the table, from the first seat."""

    def __init__(self, players: int, jokers: int) -> None:
        size = len(NUMBERS) * COPIES + jokers
        self.cards: list[int] = []  # dealt so far, in order
        self.left = Counter(dict.fromkeys(NUMBERS, COPIES) | {JOKER: jokers})
        self._holders: dict[int, int] = {}  # of a number that was dealt: the only seat that has some, or SHARED
        self._slots = [len(range(seat, size, players)) for seat in range(players)]  # cards that each still gets

    @property
    def seat(self) -> int:
        """Who gets the next card."""
        return len(self.cards) % len(self._slots)

    def give(self, card: int) -> None:
        """Deal this card next."""
        seat = self.seat
        self._holders[card] = seat if self._holders.get(card, seat) == seat and card != JOKER else SHARED
        self._slots[seat] -= 1
        self.left[card] -= 1
        self.cards.append(card)

    def outcomes(self) -> list[tuple[int, float]]:
        """Each card that may come next, with its probability, ascending."""
        kept: dict[tuple[bool, int | None, int], int] = {}  # cards of which as much is known are alike
        ways = {}
        for card, n in sorted(self.left.items()):
            alike = (card == JOKER, self._holders.get(card), n)
            if n and alike not in kept:
                kept[alike] = self._kept_with(card)
            ways[card] = n and n * kept[alike]
        total = sum(ways.values())
        return [(card, n / total) for card, n in ways.items() if n]

    def _kept_with(self, card: int) -> int:
        """In how many orders the rest may be dealt after this card."""
        seat, holders = self.seat, self._holders
        given = seat if holders.get(card, seat) == seat and card != JOKER else SHARED
        if given == seat and self.left[card] == 1:
            return 0  # its set
        lacking = [[0, 0, 0] for _ in self._slots]
        for number, holder in {**holders, card: given}.items():
            if holder != SHARED:
                lacking[holder][self.left[number] - 1 - (number == card)] += 1
        undealt = len(NUMBERS) - len({*holders, card} - {JOKER})
        seats = [(n - (place == seat), tuple(lacking[place])) for place, n in enumerate(self._slots)]
        return _kept(undealt, tuple(sorted(seats)))


@lru_cache(maxsize=2**15)
def _kept(undealt: int, seats: tuple[Seat, ...]) -> int:
    """The orders of the rest of the deck in which nobody comes to hold a set; `undealt` numbers are all in there."""
    left = sum(slots for slots, _ in seats)
    terms: Terms = {0: 1}
    for seat in seats:
        joined: Terms = {}
        for key, ways in terms.items():
            for more, factor in _with_sets(undealt, *seat).items():
                joined[key + more] = joined.get(key + more, 0) + ways * factor
        terms = joined
    return sum(perm(undealt, key // _SETS) * factorial(left - key % _SETS) * ways for key, ways in terms.items())


@cache
def _with_sets(undealt: int, slots: int, lacking: tuple[int, ...]) -> Terms:
    """The ways to complete some sets of one seat, with a minus where their number is odd.

    Of those of undealt numbers, only by how many they are: `_kept` says which.
    """
    terms: Terms = Counter()
    for sets in range(min(undealt, slots // COPIES) + 1):
        for chosen in product(*(range(n + 1) for n in lacking)):
            cards = COPIES * sets + sum(lack * n for lack, n in enumerate(chosen, 1))
            if cards <= slots:
                ways = prod(map(comb, lacking, chosen)) * perm(slots, cards) // factorial(sets)
                terms[_SETS * sets + cards] += ways * (-1) ** (sets + sum(chosen))
    return terms


VALUES: Final = len(NUMBERS) + 1  # of cards, the joker 0 among them
NO_YES: Final = (0, 1)
COLUMNS: Final = 9  # of a turn in `recall`


class _Missing(Exception):
    """The walk cannot go on: it asks this node, or chance to draw one of these."""

    def __init__(self, node: str, pool: Sequence[int] = ()) -> None:
        self.node, self.pool = node, pool


class Script:
    """What was answered and drawn on a turn, in order."""

    def __init__(self, given: Sequence[int]) -> None:
        self._given = iter(given)

    def next(self, word: str, pool: Sequence[int] = ()) -> int:
        """The next one; raises _Missing after the last."""
        for value in self._given:
            return value
        raise _Missing(word, pool)


_NO_DRAWS: Final = SeatStreams(b"")  # a script draws in their place


class _ScriptedHand(HandView):
    """A hand from which chance picks as the script says."""

    __slots__ = ("_script",)

    def __init__(self, hand: Hand, script: Script) -> None:
        super().__init__(hand, _NO_DRAWS)
        self._script = script

    def pick_random(self, n: int) -> list[int]:
        """n random cards, at most what is held."""
        pool = list(self)
        if n >= len(pool):
            return pool
        picked = []
        for _ in range(n):
            picked.append(self._script.next("card", pool))
            pool.remove(picked[-1])
        return picked


class Walker(FiveNodes):
    """Goes through a turn by a script."""

    def __init__(self, seat: int, hand: Hand, script: Script) -> None:
        super().__init__(seat)
        self.cards = _ScriptedHand(hand, script)
        self._script = script

    def _draw(self, most: int) -> int:
        return self._script.next("n", range(1, most + 1))

    def _draw_number(self, p: TurnData) -> int:
        return self._script.next("number", p.playing_cards)


def _answers(node: str) -> Any:
    return lambda self, p: self._script.next(node) == 1


for _node, _method in NODES.items():
    setattr(Walker, _method, _answers(_node))


class DubitoCourse(Course):
    """A game of Dubito: 0 is no and 1 is yes; an outcome is a card, a number, or how many cards."""

    results = RESULTS
    n_actions = len(NO_YES)
    n_outcomes = VALUES

    engine: State

    def __init__(self, players: int, rules: Rules) -> None:
        check_players(players)
        super().__init__(players)
        self.rules = rules
        self.node = "deal"  # what is asked, or decided by chance
        self._deal: Deal | None = Deal(players, rules.jokers)  # None: it is over
        self._script: list[int] = []  # of this turn
        self._ask_card(self._deal)

    @classmethod
    def longest(cls, rules: Rules) -> int:
        """Steps of the longest game, of seats and of chance: the deal, and eight a turn; each may earn a free one."""
        return 16 * rules.max_turns + COPIES * len(NUMBERS) + rules.jokers

    def _ask_card(self, deal: Deal) -> None:
        self.player, self.actions, self.outcomes = CHANCE, (), deal.outcomes()

    def _chance(self, outcome: int) -> None:
        if self._deal is None:
            self._script.append(outcome)
            self._walk()
            return
        self._deal.give(outcome)
        if self._deal.left.total():
            self._ask_card(self._deal)
        else:
            self._begin(self._deal.cards)

    def _begin(self, deck: list[int]) -> None:
        hands = deal_hands(cast(Random, ChanceDraws(deck)), self.players, self.rules)
        self._deal = None
        self.engine = State(self.rules, hands)
        self._tell([self.engine.start])
        for seat, hand in enumerate(hands):
            cards = tuple(sorted(hand.cards))
            self.note(f"hand {' '.join(map(str, cards))}", ("hand", cards), seat)
        self._walk()

    def _decide(self, action: int) -> None:
        self._script.append(action)
        self._walk()

    def _walk(self) -> None:
        """Go through the turn as far as the script leads; at its end, make the move and begin the next turn."""
        game = self.engine
        while not game.over:
            seat, output = game.seat, self._output()
            if output is None:
                return
            self._script = []
            cards = tuple(sorted(output.cards or ()))  # their order within a play tells nothing
            self._tell(game.apply(replace(output, cards=cards)))
            if cards:
                self.note(f"with {' '.join(map(str, cards))}", ("cards", cards), seat)
        self.node = ""
        self._end()

    def _output(self) -> TurnOutput | None:
        """What the turn has come to; None if it goes on, and the next one is asked."""
        game = self.engine
        walker = Walker(game.seat, game.hands[game.seat], Script(self._script))
        try:
            return walker.play(game.turn_data())
        except _Missing as missing:
            self.node = missing.node
            if missing.pool:
                self._ask_chance(missing.pool)
            else:
                self._ask(game.seat, NO_YES)
            return None

    def in_words(self, event: Event) -> str:
        """What was done; after a doubt, the cards."""
        match event:
            case GameStartEvent():
                return f"{len(event.player_ids)} seats hold {' '.join(map(str, event.initial_card_counts))}"
            case CardsPlayedEvent(seat, number, n):
                return f"seat {seat} plays {n} as {number}"
            case DoubtResolvedEvent():
                truth = "a bluff" if event.correct else "honest"
                taken = " ".join(map(str, event.board_cards))
                latest = " ".join(map(str, event.latest_cards))
                return f"seat {event.doubter_id} doubts {event.target_id}: {latest}, {truth}, takes {taken}".rstrip()
            case DiscardEvent(seat, number):
                return f"seat {seat} discards the set of {number}"
            case PlayerWonEvent(seat, place):
                return f"seat {seat} wins place {place}"

    def steps(self, player: Player) -> list[int]:
        """The bot's answers on its walk; what it draws itself is dropped, for chance draws here."""
        heard = _Heard()
        if isinstance(player, FiveNodes):
            player.listeners = (heard,)
            player.play(self.engine.turn_data())
        if not heard.answers:
            raise UsageError(
                f"{type(player).__name__} does not answer the nodes A-E, but plays cards of its choice: load "
                "dubito(moves=cards), or seat a bot that derives from bots.base.BotBase"
            )
        return heard.answers

    def words(self, player: int, action: int) -> str:
        """As `C yes`, or `deal 7`."""
        return f"{self.node} {action}" if player == CHANCE else f"{self.node} {('no', 'yes')[action]}"

    def about(self, action: int) -> tuple[Any, ...]:
        """The node and the answer."""
        return ("answer", self.node, action)

    def undone(self) -> Sequence[str]:
        """The deal, or the draws of this turn; answers are in the log."""
        given = self._deal.cards if self._deal else self._script
        return [f"{self.node} after {' '.join(map(str, given))}"] if given else []

    def shared(self) -> Iterator[Any]:
        """The rules."""
        yield self.rules

    def recall(self, seat: int) -> Pieces:
        """The first hand by value, when each set left, what is asked, and a row a turn; see `_Recall`."""
        recall = _Recall()
        for entry in self.seen(seat):
            recall.add(entry.what)
        asked = one_hot("ABCDE".find(self.node) if self.player == seat else -1, 5)
        return {
            "hand": recall.hand,
            "sets": recall.sets,
            "asked": [*asked, *recall.own],
            "turns": recall.rows,
        }

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Of the pieces of `recall`."""
        return {"hand": (VALUES,), "sets": (VALUES,), "asked": (7,), "turns": (2 * self.rules.max_turns, COLUMNS)}

    def observation(self, seat: int) -> Pieces:
        """The own hand, what is asked, the board, and the counters of all seats from the own one on."""
        game = self.engine
        pieces: Pieces = {
            **self._asked(seat),
            "hand": game.hands[seat].counts if game else [0.0] * VALUES,
            "number": one_hot(game.number if game else 0, VALUES),
            "last_play": one_hot(game.n_cards_played if game else 0, MOST + 1),
            "board": [len(game.board) / 54, game.streak / 10, game.can_doubt] if game else [0.0] * 3,
            "in_play": [float(number in game.playing_cards) for number in NUMBERS] if game else [1.0] * len(NUMBERS),
        }
        last, seats = [0.0] * self.players, []
        for place in range(self.players):
            other = (seat + place) % self.players
            if game:
                seats += [n / of for n, of in zip(_counters(game.player_data(other)), _SCALES, strict=True)]
                last[place] = float(game.last_player == other)
        pieces["last_player"] = last
        pieces["seats"] = seats or [0.0] * self.players * len(_SCALES)
        return pieces

    def _asked(self, seat: int) -> Pieces:
        """The question, and whether the turn is a bluff."""
        game, node = self.engine, self.node if self.player == seat else "-"
        bluffs = self._script[-1:] == [1]
        if node == "E" and not game.hands[seat].counts[game.number]:
            bluffs = True  # it must
        return {"asked": one_hot("ABCDE".find(node), 5), "bluffs": [float(bluffs and node in "BE")]}

    def doubt(self) -> None:
        """Play a turn that doubts."""
        self.apply(1)

    def put_down(self, number: int, cards: Sequence[int]) -> None:
        """Play a turn so that it comes to these cards: as a bluff, which may put down any."""
        left, turns = deque(cards), self.engine.turns_played
        while self.engine.turns_played == turns:
            steps = {"A": 1, "B": 0, "C": 0, "D": 1, "E": 0, "n": len(cards), "number": number}
            self.apply(left.popleft() if self.node == "card" else steps[self.node])

    def world(self, seat: int, chance: Random) -> Self:
        """The same decisions of this seat, and other cards in the other hands, dealt and put down."""
        seen = [entry.what for entry in self.seen(seat)]
        own = next((what[1] for what in seen if isinstance(what, tuple) and what[0] == "hand"), None)
        world = type(self)(self.players, self.rules)
        if own is None:
            return world  # the deal is not over, and nobody has seen anything
        events = [what for what in seen if not isinstance(what, tuple)]
        bounds = DealBounds(seat, own, events)
        hands = bounds.deal(self.rules.jokers, chance)
        for place in range(sum(map(len, hands))):
            world.apply(hands[place % len(hands)][place // len(hands)])
        _replay(world, seat, deque(_own_steps(self, seat)), events, bounds, chance)
        assert world.information(seat) == self.information(seat), "the seat can tell this world from its own"
        return world


def _own_steps(course: DubitoCourse, seat: int) -> Iterator[int]:
    """The seat's answers, and what chance drew on its turns."""
    mover = CHANCE
    for player, action in course.history:
        mover = mover if player == CHANCE else player
        if mover == seat:
            yield action


def _replay(
    world: DubitoCourse, seat: int, own: deque[int], events: Sequence[Event], bounds: DealBounds, chance: Random
) -> None:
    """Make the moves that the seat saw: its own step by step, those of others by what they came to."""
    for place, event in enumerate(events):
        match event:
            case CardsPlayedEvent(mover, number, n) if mover != seat:
                cards = bounds.shown.get(place) or chance.sample(world.engine.hands[mover].cards, n)
                world.put_down(number, cards)
            case DoubtResolvedEvent() if event.doubter_id != seat:
                world.doubt()
            case CardsPlayedEvent() | DoubtResolvedEvent():
                turns = world.engine.turns_played
                while world.engine.turns_played == turns:
                    world.apply(own.popleft())
    for step in own:  # of a turn that is not over
        world.apply(step)


_SCALES: Final = (18, 50, 50, 20, 10, 10)  # of the six counters of a seat
_counters: Final = attrgetter("n_cards", "turns", "not_first_turns", "doubts", "honest_times", "dishonest_times")


class _Heard(Listener):
    """Notes the answers of a walk."""

    def __init__(self) -> None:
        self.answers: list[int] = []

    def answered(self, node: str, answer: bool) -> None:
        """In the order in which they are asked."""
        self.answers.append(int(answer))


class _Recall:
    """What a seat has seen of a game, as numbers.

    A turn is a row: the seat + 1, 1 for a doubt, the number, how many cards, these cards + 1 where the seat knows
    them by now, and of own turns whether it bluffed and whether it played as many as possible: 1 for no, 2 for yes.
    """

    def __init__(self) -> None:
        self.hand = [0] * VALUES
        self.sets = [0] * VALUES  # the turn after which a set of the number left the game
        self.rows: list[list[int]] = []
        self.own = [0, 0]  # the answers of a turn that is not over
        self._round: list[list[int]] = []

    def add(self, what: Any) -> None:
        """One entry of the log."""
        match what:
            case ("hand", cards):
                for card in cards:
                    self.hand[card] += 1
            case ("answer", node, answer):
                if node != "C":
                    self.own[node in "BE"] = 1 + answer
            case ("cards", cards):
                self._show(self._round[-1], cards)
                self._round[-1][-2:], self.own = self.own, [0, 0]
            case CardsPlayedEvent(seat, number, n):
                self._round.append([seat + 1, 0, number, n, 0, 0, 0, 0, 0])
                self.rows.append(self._round[-1])
            case DoubtResolvedEvent():
                self.rows.append([what.doubter_id + 1, 1, what.declared_number, 0, 0, 0, 0, 0, 0])
                older = sum(row[3] for row in self._round[:-1])
                shown = [*what.board_cards[:older], *what.latest_cards]
                for row in self._round:
                    self._show(row, shown[: row[3]])
                    del shown[: row[3]]
                self._round = []
            case DiscardEvent(_, number):
                self.sets[number] = len(self.rows)

    def _show(self, row: list[int], cards: Sequence[int]) -> None:
        row[4 : 4 + len(cards)] = [card + 1 for card in cards]


DONE: Final = VALUES  # actions below are cards
DOUBT: Final = DONE + 1
DECLARE: Final = DOUBT  # with the number added
_NODES: Final = ("declare", "play", "more")


class CardsCourse(DubitoCourse):
    """A game of Dubito: 0 to 13 is one more card, ascending; 14 ends the play, 15 doubts, 16 to 28 declare a number.

    An opening declares first. In a turn, nothing is left to chance.
    """

    n_actions = DECLARE + NUMBERS[-1] + 1

    def _output(self) -> TurnOutput | None:
        game, script = self.engine, self._script
        picks = [action for action in script if action < DONE]
        if DOUBT in script:
            return TurnOutput(True)
        if DONE in script or len(picks) == MOST:
            return TurnOutput(False, None if game.number else script[0] - DECLARE, picks)
        if not game.number and not script:
            self.node = "declare"
            self._ask(game.seat, [DECLARE + number for number in NUMBERS])
            return None
        self.node = "more" if picks else "play"
        held, least = Counter(game.hands[game.seat].cards), max(picks, default=0)
        held.subtract(picks)
        actions = [card for card in range(least, VALUES) if held[card] > 0]
        if picks:
            actions.append(DONE)
        elif game.can_doubt:
            actions.append(DOUBT)
        self._ask(game.seat, actions)
        return None

    def steps(self, player: Player) -> list[int]:
        """The doubt; or the number where it opens, and its cards."""
        game = self.engine
        output = player.play(game.turn_data())
        if why := why_illegal(output, game.hands[game.seat].counts, game.number, game.can_doubt):
            raise IllegalOutput(why)
        if output.doubt:
            return [DOUBT]
        number = [] if game.number else [DECLARE + output.number]
        return [*number, *sorted(output.cards), *([DONE] if len(output.cards) < MOST else [])]

    def words(self, player: int, action: int) -> str:
        """As `card 7`, `done`, `doubt`, `declare 7`, or `deal 7`."""
        if player == CHANCE or action < DONE:
            return f"{'deal' if player == CHANCE else 'card'} {action}"
        return {DONE: "done", DOUBT: "doubt"}.get(action, f"declare {action - DECLARE}")

    def about(self, action: int) -> tuple[Any, ...]:
        """The action."""
        return ("did", action)

    def recall(self, seat: int) -> Pieces:
        """As at the nodes; what is asked is the number that was declared on this turn, and the cards so far + 1."""
        script = self._script if self.player == seat else []
        number = [action - DECLARE for action in script if action > DOUBT] or [0]
        return super().recall(seat) | {"asked": [*number, *(action + 1 for action in script if action < DONE)]}

    def _asked(self, seat: int) -> Pieces:
        """The question, the number that was declared on this turn, and the cards so far."""
        mine = self.player == seat and self.engine is not None
        script = self._script if mine else []
        picks = Counter(script)
        return {
            "asked": one_hot(_NODES.index(self.node) if mine else -1, len(_NODES)),
            "declared": [float(picks[DECLARE + number]) for number in NUMBERS],
            "picks": [picks[card] for card in range(VALUES)],
        }

    def doubt(self) -> None:
        """Play a turn that doubts."""
        self.apply(DOUBT)

    def put_down(self, number: int, cards: Sequence[int]) -> None:
        """Play a turn that puts down these cards."""
        steps = [*sorted(cards), *([DONE] if len(cards) < MOST else [])]
        for action in steps if self.engine.number else [DECLARE + number, *steps]:
            self.apply(action)
