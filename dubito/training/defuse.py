"""Draw and defuse as a path: the acts of a turn and the place of the bomb are the decisions.

Chance orders the pile at the deal and after a shuffle card, from its top down, card by card.
"""

from collections import Counter
from collections.abc import Sequence
from random import Random
from typing import Final, Self, cast

from dubito.errors import IllegalOutput
from dubito.game import GameEvent, Player
from dubito.games.defuse.engine import ACTS, ALL_CARDS, BOMB, DEALT, DEFUSE, HELD, IN_HAND, SHOWN, SPARE, State, deal
from dubito.games.defuse.events import (
    DrawEvent,
    EndEvent,
    HideEvent,
    LookEvent,
    PlaceEvent,
    PlayEvent,
    TakeEvent,
)
from dubito.games.defuse.game import RESULTS
from dubito.games.defuse.knowledge import Notebook
from dubito.games.defuse.worlds import another
from dubito.training.course import CHANCE, ChanceDraws, Course, Pieces, one_hot

CARDS: Final = (*HELD, BOMB)  # outcomes of chance
PILE: Final = sum(ALL_CARDS.values()) - 2 * (IN_HAND + 1)
PLACES: Final = len(ACTS)  # the action of place 0; with the bomb drawn, the pile has a card less
ACTS_MOST: Final = PILE + 2 * ALL_CARDS[DEFUSE] + sum(ALL_CARDS[card] for card in ("skip", "shuffle", "see"))
STEPS_MOST: Final = ACTS_MOST + 2 * IN_HAND + PILE * (1 + ALL_CARDS["shuffle"])  # of seats and of chance
COLUMNS: Final = 5 + SHOWN  # of an act in `recall`


class DefuseCourse(Course):
    """A game of draw and defuse: 0 to 4 are the acts as `ACTS` has them, 5 and more the places of the bomb."""

    results = RESULTS
    n_actions = PLACES + PILE
    n_outcomes = len(CARDS)

    engine: State

    def __init__(self) -> None:
        super().__init__(2)
        self._draws = ChanceDraws()
        self._dealt = 0  # cards of the hands, before the pile
        self._order: list[str] = []  # what is shuffled, as far as it is; its end is the top
        self._begin([card for card, n in DEALT.items() for _ in range(n)])

    def _begin(self, cards: list[str]) -> None:
        """Let chance order these cards, from the end."""
        self._order, self._open = cards, len(cards)
        self._ask_card()

    def _ask_card(self) -> None:
        self._ask_chance([CARDS.index(card) for card in self._order[: self._open]])

    def _chance(self, outcome: int) -> None:
        """The card that comes next is swapped with what lies there, as the engine will."""
        order, last = self._order, self._open - 1
        place = order.index(CARDS[outcome])
        self._draws.decide(place, last + 1)
        order[place], order[last] = order[last], order[place]
        self._open = last
        if self.engine is None and self._dealt < 2 * IN_HAND:
            self._dealt += 1
            if self._dealt < 2 * IN_HAND:
                self._ask_card()
                return
            self._leave()
            self._begin([*order[:last], *[DEFUSE] * SPARE, BOMB])
        elif len(set(order[:last])) > 1:
            self._ask_card()
        else:
            self._leave()
            self._shuffled()

    def _leave(self) -> None:
        """The order of the rest does not matter: it stays."""
        for last in range(self._open - 1, 0, -1):
            self._draws.decide(last, last + 1)

    def _shuffled(self) -> None:
        if self.engine is None:
            self.engine = deal(cast(Random, self._draws))
            self._tell([self.engine.start])
            for seat, hand in enumerate(self.engine.hands):
                cards = tuple(card for card in HELD for _ in range(hand[card]))
                self.note(f"hand {' '.join(cards)}", ("hand", cards), seat)
        else:
            self._tell(self.engine.apply("shuffle"))
        assert not self._draws.places, "the engine has drawn less than chance has decided"
        pile = tuple(reversed(self.engine.pile))
        self.note(f"top {' '.join(pile)}", ("pile", pile), CHANCE)
        self._order, self._open = [], 0
        self._go_on()

    def _decide(self, action: int) -> None:
        game = self.engine
        if action < PLACES and ACTS[action] == "shuffle" and len(set(game.pile)) > 1:
            self._begin(list(game.pile))
            return
        if action < PLACES and ACTS[action] == "shuffle":
            self._open = len(game.pile)
            self._leave()
        self._tell(game.apply(action - PLACES if action >= PLACES else ACTS[action]))
        self._go_on()

    def _go_on(self) -> None:
        game = self.engine
        if game.over:
            self._end()
        elif game.node == "place":
            self._ask(game.seat, range(PLACES, PLACES + len(game.pile) + 1))
        else:
            self._ask(game.seat, [place for place, act in enumerate(ACTS) if game.why_illegal(act) is None])

    def in_words(self, event: GameEvent) -> str:
        """What was done, and to the one seat that sees them the cards."""
        match event:
            case PlayEvent(seat, card):
                return f"seat {seat} plays {card}"
            case LookEvent(cards):
                return f"sees {' '.join(cards)}"
            case DrawEvent(seat, end, bomb):
                return f"seat {seat} draws {'the bomb' if bomb else 'a card'} from the {end}"
            case TakeEvent(card):
                return f"takes {card}"
            case PlaceEvent(seat):
                return f"seat {seat} puts the bomb back"
            case HideEvent(place):
                return f"at place {place}"
            case EndEvent(loser):
                return f"seat {loser} has lost"
        return "the game begins"

    def steps(self, player: Player) -> list[int]:
        """The act, or the place."""
        output = player.play(self.engine.view())
        if why := self.engine.why_illegal(output):
            raise IllegalOutput(why)
        return [PLACES + output if isinstance(output, int) else ACTS.index(output)]

    def words(self, player: int, action: int) -> str:
        """An act, or `place 3`; of chance `deal see`, or `pile see` from the top down."""
        if player == CHANCE:
            return f"{'deal' if self._dealt < 2 * IN_HAND else 'pile'} {CARDS[action]}"
        return ACTS[action] if action < PLACES else f"place {action - PLACES}"

    def undone(self) -> Sequence[str]:
        """The cards that chance has ordered so far."""
        return [" ".join(["top", *reversed(self._order[self._open :])])] if self._order else []

    def returns(self) -> list[float]:
        """1 for the winner, -1 for the other."""
        if self.engine is None or self.engine.winner is None:
            return [0.0, 0.0]
        return [1.0 if seat == self.engine.winner else -1.0 for seat in (0, 1)]

    def recall(self, seat: int) -> Pieces:
        """The first hand by card, and a row an act; see `_row`."""
        hand, rows = [0] * len(HELD), list[list[int]]()
        for entry in self.seen(seat):
            match entry.what:
                case ("hand", cards):
                    hand = [cards.count(card) for card in HELD]
                case ("did", _):
                    pass
                case event:
                    _add(rows, event)
        return {"hand": hand, "acts": rows}

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Of the pieces of `recall`."""
        return {"hand": (len(HELD),), "acts": (ACTS_MOST, COLUMNS)}

    def observation(self, seat: int) -> Pieces:
        """The own hand, what is asked and shown, sizes, and what was played."""
        game = self.engine
        mine = game is not None and self.player == seat
        seen = [CARDS.index(card) for card in game.seen] if game and mine else []
        counts = Counter(game.discard if game else ())
        return {
            "asked": one_hot(("turn", "place").index(game.node) if mine else -1, 2),
            "hand": [game.hands[seat][card] for card in HELD] if game else [0] * len(HELD),
            "sizes": [sum(game.hands[1 - seat].values()) / PILE, len(game.pile) / PILE] if game else [0, 0],
            "played": [counts[card] for card in HELD],
            "shown": [
                n for place in range(SHOWN) for n in one_hot(seen[place] if place < len(seen) else -1, len(CARDS))
            ],
        }

    def world(self, seat: int, chance: Random) -> Self:
        """The same decisions of this seat, and other cards where it never looked."""
        book, dealt, course = Notebook(seat, None), (), type(self)()
        for entry in self.seen(seat):
            if not isinstance(entry.what, tuple):
                book.observe(entry.what, ())
            elif entry.what[0] == "hand":
                dealt = entry.what[1]
        if not dealt:
            return course  # the deal is not over, and nobody has seen anything
        acts = book.position("turn", None, ()).acts
        world = another(seat, dealt, acts, chance)
        first, second = [card for card in dealt if card != DEFUSE], world.hand
        course._order_as([*first, *second] if seat == 0 else [*second, *first])
        course._order_as(world.orders[-1])
        own = iter([action for player, action in self.history if player == seat])
        for place, act in enumerate(acts):
            if act.seat == seat:
                course.apply(next(own))
            else:
                course.apply(PLACES + world.places[place] if act.act == "place" else ACTS.index(act.act))
            course._order_as(world.orders.get(place, ()))
        for action in own:  # a shuffle that is not over
            course.apply(action)
        assert course.information(seat) == self.information(seat), "the seat can tell this world from its own"
        return course

    def _order_as(self, cards: Sequence[str]) -> None:
        """Let chance decide so, as far as it is asked."""
        for card in cards:
            if self.player == CHANCE:
                self.apply(CARDS.index(card))


def _add(rows: list[list[int]], event: GameEvent) -> None:
    """An act is a row: the seat + 1, the act + 1 (a place is 6), the card drawn + 1, where it was put + 1, whether the
    bomb was drawn, and the cards shown + 1."""
    match event:
        case PlayEvent(seat, card) if card in ("skip", "shuffle", "see"):
            rows.append([seat + 1, ACTS.index(card) + 1, 0, 0, 0, 0, 0, 0])
        case DrawEvent(seat, end, bomb):
            rows.append([seat + 1, ACTS.index("draw" if end == "top" else "bottom") + 1, 0, 0, int(bomb), 0, 0, 0])
        case PlaceEvent(seat):
            rows.append([seat + 1, len(ACTS) + 1, 0, 0, 0, 0, 0, 0])
        case LookEvent(cards):
            rows[-1][5 : 5 + len(cards)] = [CARDS.index(card) + 1 for card in cards]
        case TakeEvent(card):
            rows[-1][2] = CARDS.index(card) + 1
        case HideEvent(place):
            rows[-1][3] = place + 1
