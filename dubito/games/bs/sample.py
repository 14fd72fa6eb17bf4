"""Some games to try a prompt on, by players who answer by chance; and second worlds that a seat cannot tell apart.

A second world is the same game with two cards in each other's place, in hands and plays. If the seat saw neither, and
no accusation ended otherwise, it cannot know in which of the two it is.
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any, Final

from dubito.errors import IllegalOutput
from dubito.game import GameEvent
from dubito.games.bs.cards import DECK, NUMBERS, Card
from dubito.games.bs.notebook import Notebook, Position
from dubito.games.bs.rules_config import BSRules
from dubito.games.bs.state import Game
from dubito.games.bs.table import SEATS, Table

_HONEST: Final = 0.85  # who holds the number plays it, mostly
_ACCUSES: Final = 0.1
_TRIES: Final = 8  # to find a second world

Output = bool | Sequence[Card]


@dataclass(frozen=True, slots=True)
class Asked:
    """A question of a game, and what was answered."""

    position: Position
    output: Output


@dataclass(frozen=True, slots=True)
class World:
    """A game so far, as its deal and its moves."""

    deal: int
    hands: tuple[tuple[Card, ...], ...]
    moves: tuple[Output, ...] = ()
    rules: BSRules = field(default_factory=BSRules)

    def other(self, chance: Random) -> "World":
        """The world in which two cards have changed places."""
        one, two = chance.sample(DECK, 2)
        places = {one: two, two: one}
        hands = tuple(tuple(places.get(card, card) for card in hand) for hand in self.hands)
        moves = tuple(
            move if isinstance(move, bool) else [places.get(card, card) for card in move] for move in self.moves
        )
        return replace(self, hands=hands, moves=moves)

    def seen_by(self, seat: int) -> tuple[Position, list[Any]]:
        """The question to this seat after all moves, and all that it saw on the way.

        Raises IllegalOutput if a move cannot be made in this world.
        """
        game = Game(self.hands, self.rules.max_rounds, Random(self.deal))
        book, saw = Notebook(seat, self.rules), list[Any]()

        def tell(events: Sequence[GameEvent]) -> None:
            for event in events:
                book.observe(event, game.hands[seat].cards)
                saw.append((event, list(game.hands[seat].cards)))

        tell([game.start])
        for move in self.moves:
            if game.seat == seat:
                book.answered(game.view().node, move)
                saw.append(move)
            tell(game.apply(move))
        return book.position(game.view().node, game.view(), game.hands[seat].cards), saw


def sample_game(deal: int) -> Iterator[tuple[World, Asked]]:
    """The questions of a game by chance, each with the game so far."""
    chance, deck, rules = Random(deal), list(DECK), BSRules()
    chance.shuffle(deck)
    hands = [tuple(deck[first : first + NUMBERS]) for first in range(0, len(deck), NUMBERS)]
    game = Game(hands, rules.max_rounds, Random(deal))
    books = [Notebook(seat, rules) for seat in SEATS]
    world = World(deal, tuple(hands), rules=rules)

    def tell(events: Sequence[GameEvent]) -> None:
        for event in events:
            for seat, book in enumerate(books):
                book.observe(event, game.hands[seat].cards)

    tell([game.start])
    while not game.over:
        seat, view = game.seat, game.view()
        output = by_chance(view, game.hands[seat].cards, chance)
        yield world, Asked(books[seat].position(view.node, view, game.hands[seat].cards), output)
        books[seat].answered(view.node, output)
        world = replace(world, moves=(*world.moves, output))
        tell(game.apply(output))


def by_chance(view: Table, cards: Sequence[Card], chance: Random) -> Output:
    """A legal answer of whoever sees this and holds these cards."""
    if view.node == "bs":
        return chance.random() < _ACCUSES
    held = [card for card in cards if card.number == view.number]
    if held and chance.random() < _HONEST:
        return held
    return chance.sample(cards, min(len(cards), chance.randint(1, 2)))


def pairs(deal: int) -> Iterator[tuple[Position, Position]]:
    """The positions of a sample game for which another world is found, each beside its own in that world."""
    chance = Random(deal)
    for world, asked in sample_game(deal):
        seat = asked.position.seat
        _, saw = world.seen_by(seat)
        for _ in range(_TRIES):
            with suppress(IllegalOutput):
                there, seen = world.other(chance).seen_by(seat)
                if seen == saw:
                    yield asked.position, there
                    break
