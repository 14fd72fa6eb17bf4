"""Draw and defuse as a path down its game tree.

The decisions are the actions of a turn and the place of the bomb. Chance orders the pile at the deal and after a
shuffle card, card by card from the top.
"""

from collections.abc import Sequence
from random import Random
from typing import Any, Final, Self, cast

from dubito.game.events import AnswerEvent
from dubito.games.defuse.engine import (
    ACTS,
    ALL_CARDS,
    BOMB,
    CARD_COUNTS,
    DEFUSE,
    HAND_CARDS,
    HAND_SIZE,
    SEE_DEPTH,
    SPARE_DEFUSES,
    State,
    deal,
)
from dubito.games.defuse.events import DrawEvent, PlaceEvent, PlayEvent
from dubito.games.defuse.game import GAME
from dubito.plugins.openspiel.course import CHANCE, ChanceDraws, Course, Fork, Stage, draw, draw_for_index
from dubito.plugins.openspiel.courses.defuse_worlds import sample_world
from dubito.plugins.openspiel.features import Feature, count_by_kind, hand_feature, node_feature, one_hot

CARDS: Final = (*HAND_CARDS, BOMB)  # outcomes of chance
PILE: Final = sum(ALL_CARDS.values()) - 2 * (HAND_SIZE + 1)
PLACES: Final = len(ACTS)  # the action for place 0; the pile is one card smaller without the bomb
MAX_ACTS: Final = PILE + 2 * ALL_CARDS[DEFUSE] + sum(ALL_CARDS[card] for card in ("skip", "shuffle", "see"))


class DefuseCourse(Course):
    """A game of draw and defuse. Actions 0 to 4 are in `ACTS`. Actions from 5 are places of the bomb."""

    game, short_name, long_name, zero_sum = GAME, "dubito_defuse", "Draw and defuse", True
    kinds, drawn = HAND_CARDS, CARDS
    done = (*ACTS, *(f"place {place}" for place in range(PILE)))
    terms = ("top", "bottom")
    observed = (
        node_feature(("turn", "place")),
        hand_feature(HAND_CARDS),
        Feature("sizes", 2, lambda course, seat: [n / PILE for n in course.sizes(seat)]),
        Feature("played", len(HAND_CARDS), lambda course, seat: count_by_kind(course.engine.discard, HAND_CARDS)),
        Feature("shown", SEE_DEPTH * len(CARDS), lambda course, seat: course.shown_cards(seat)),
    )
    longest = MAX_ACTS + 2 * HAND_SIZE + PILE * (1 + ALL_CARDS["shuffle"])
    most_rows = 3 + 4 * MAX_ACTS

    engine: State

    def sizes(self, seat: int) -> tuple[int, int]:
        return sum(self.engine.hands[1 - seat].values()), len(self.engine.pile)

    def shown_cards(self, seat: int) -> list[float]:
        cards = [CARDS.index(card) for card in self.engine.seen] if self.player == seat else []
        return [number for card in [*cards, -1, -1, -1][:SEE_DEPTH] for number in one_hot(card, len(CARDS))]

    def hand(self, seat: int) -> Sequence[str]:
        return [card for card, n in self.engine.hands[seat].items() for _ in range(n)]

    def deal(self) -> Stage:
        cards, draws = [card for card, n in CARD_COUNTS.items() for _ in range(n)], list[float]()
        yield from self._order("deal", cards, draws, 2 * HAND_SIZE)
        pile = [*cards[: -2 * HAND_SIZE], *[DEFUSE] * SPARE_DEFUSES, BOMB]
        yield from self._order("pile", pile, draws)
        self.draws = ChanceDraws(draws=draws)
        self.finish_deal(deal(cast(Random, self.draws)))

    def _order(self, node: str, cards: list[str], draws: list[float], most: int = PILE) -> Stage:
        """Yield the draws that order these cards from the end, matching the engine's swaps.

        Stop after `most` cards, or when all remaining cards are equal.
        """
        for n in range(len(cards), 1, -1):
            place = n - 1
            if len(cards) - n < most and len({*cards[:n]}) > 1:
                place = cards.index(CARDS[(yield draw(node, [CARDS.index(card) for card in cards[:n]]))])
            cards[place], cards[n - 1] = cards[n - 1], cards[place]
            draws.append(draw_for_index(place, n))

    def turn(self) -> Stage:
        """Yield an action or a place and, after a shuffle card, the order of the pile."""
        game, draws = self.engine, list[float]()
        outputs = {self.actions_of(output)[0]: output for output in game.legal()}
        output = outputs[(yield Fork(game.node, [*outputs]))]
        if output == "shuffle":
            yield from self._order("pile", list(game.pile), draws)
        self.move(output, draws)

    def actions_of(self, output: Any) -> list[int]:
        return [PLACES + output if isinstance(output, int) else ACTS.index(output)]

    def world(self, seat: int, chance: Random) -> Self:
        """Sample a game with the same decisions of this seat and other unseen cards."""
        course = type(self)(self.players, self.rules)
        if self.engine is None:
            return course  # before anyone has seen anything
        log = self.log.of(seat)
        world = sample_world(log, chance)
        for place, event in enumerate(log):
            match event:
                case AnswerEvent(_, answer):
                    course.apply(self.done.index(answer))
                case PlayEvent(by, card) if by != seat and card != DEFUSE:
                    course.apply(ACTS.index(card))
                case DrawEvent(by, "top") if by != seat:
                    course.apply(ACTS.index("draw"))
                case PlaceEvent(by) if by != seat:
                    course.apply(PLACES + world.places[place])
            for card in world.orders.get(place, ()):
                if course.player == CHANCE:
                    course.apply(CARDS.index(card))
        assert course.information(seat) == self.information(seat), "the seat can distinguish this world from its own"
        return course
