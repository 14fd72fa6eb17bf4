"""Two worlds that one seat cannot tell apart: the same game with other cards where it never looked.

One change is made: what somebody put down was another card of theirs, or two others were dealt each other's card.
Then the moves are made again. If one is refused, or the seat sees anything else than before, it is no such world.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from random import Random
from typing import Final

from dubito.errors import IllegalOutput
from dubito.games.dubito.core_game import Game
from dubito.games.dubito.game_data import COPIES, JOKER, NUMBERS, TurnOutput
from dubito.games.dubito.hand import Hand
from dubito.games.dubito.knowledge import Position
from dubito.games.dubito.notebook import Notebook
from dubito.games.dubito.questions import Questions
from dubito.games.dubito.rules import Rules
from dubito.games.dubito.sample import sample_table

_TRIES: Final = 8  # to find a second world


@dataclass(frozen=True, slots=True)
class World:
    """A game so far, as its deal and its moves."""

    rules: Rules
    hands: tuple[tuple[int, ...], ...]  # as dealt
    moves: tuple[TurnOutput, ...] = ()

    def seen(self, position: Position) -> Position | None:
        """The position as it is in this world; None if its seat would have seen anything else on the way."""
        if any(Counter(hand)[number] == COPIES for hand in self.hands for number in NUMBERS):
            return None
        game = Game(self.rules, [Hand(list(hand)) for hand in self.hands])
        book, hand = Notebook(position.seat, self.rules), game.hands[position.seat].cards
        book.observe(game.start, hand)
        for move in self.moves:
            if game.seat == position.seat:
                book.turn_begins(hand)
            try:
                events = game.apply(move)
            except IllegalOutput:
                return None
            for event in events:
                book.observe(event, hand, move.cards)
        seen = book.position(position.node, game.turn_data(), hand)
        here = replace(position, turn=seen.turn)
        return here if seen == replace(here, answers={}) else None

    def changed(self, seat: int, chance: Random) -> "World":
        """A world in which one card or two are others, which may be possible or not."""
        last = next((n for n, move in enumerate(reversed(self.moves)) if move.doubt), len(self.moves))
        if last and chance.random() < 0.5:
            return self._played_otherwise(len(self.moves) - 1 - chance.randrange(last), chance)
        one, other = chance.sample([n for n in range(len(self.hands)) if n != seat], 2)
        hands = [list(hand) for hand in self.hands]
        here = chance.randrange(len(hands[one]))
        there = chance.choice([n for n, card in enumerate(hands[other]) if card != hands[one][here]])
        hands[one][here], hands[other][there] = hands[other][there], hands[one][here]
        return replace(self, hands=tuple(map(tuple, hands)))

    def _played_otherwise(self, number: int, chance: Random) -> "World":
        move = self.moves[number]
        cards = list(move.cards or ())
        place = chance.randrange(len(cards))
        cards[place] = chance.choice([card for card in (JOKER, *NUMBERS) if card != cards[place]])
        changed = TurnOutput(False, move.number, cards)
        return replace(self, moves=(*self.moves[:number], changed, *self.moves[number + 1 :]))


def world_pairs() -> Iterator[tuple[Position, Position]]:
    """Positions of a few games, each beside its own in another world."""
    for rules, size in ((Rules(), 3), (Rules(win_rule="contested"), 5)):
        yield from pairs(rules, size, deal=size)


def pairs(rules: Rules, size: int, deal: int) -> Iterator[tuple[Position, Position]]:
    """The positions of a sample game for which another world is found, each beside its own in that world."""
    table, chance = sample_table(rules, size, deal), Random(deal)
    asked: list[Position] = []
    questions = Questions(table, rules, lambda seat, position: asked.append(position))
    world = World(rules, tuple(tuple(hand.cards) for hand in table.game.hands))
    while not table.game.over:
        asked.clear()
        move = questions.step()
        for position in asked:
            tries = (world.changed(position.seat, chance).seen(position) for _ in range(_TRIES))
            other = next((found for found in tries if found is not None), None)
            if other is not None:
                yield position, other
        world = replace(world, moves=(*world.moves, move))
