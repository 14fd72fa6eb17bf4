"""Find a game of BS that one seat cannot distinguish from the actual game, by swapping two cards.

If the seat saw neither card and every accusation ends as before, it cannot distinguish the two games. Checking this
requires a replay, because most plays are never seen and depend on the whole game.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any, Final

from dubito.errors import IllegalOutput
from dubito.game import GameEvent
from dubito.games.bs.cards import DECK, Card
from dubito.games.bs.engine import State
from dubito.games.bs.witness import BSRules, Notebook, Position

_MAX_TRIES: Final = 8  # swaps to try before giving up

Output = bool | Sequence[Card]


@dataclass(frozen=True, slots=True)
class World:
    """A game so far: its deal and its moves."""

    deal: int
    hands: tuple[tuple[Card, ...], ...]
    moves: tuple[Output, ...] = ()
    rules: BSRules = field(default_factory=BSRules)

    def view_of(self, seat: int) -> tuple[Position, list[Any]]:
        """Return the question to this seat after all moves, with everything that the seat has seen.

        Raises IllegalOutput for an impossible move.
        """
        state = State(self.hands, self.rules.max_rounds, Random(self.deal))
        book, saw = Notebook(seat, self.rules), list[Any]()

        def notify(events: Sequence[GameEvent]) -> None:
            for event in events:
                book.observe(event, state.hands[seat].cards)
                saw.append((event, list(state.hands[seat].cards)))

        notify([state.start])
        for move in self.moves:
            if state.seat == seat:
                book.note_answer(state.view().node, move)
                saw.append(move)
            notify(state.apply(move))
        return book.position(state.view().node, state.view(), state.hands[seat].cards), saw


def sample_world(world: World, seat: int, chance: Random) -> World | None:
    """Return a world in which this seat made the same observations, or None if none was found."""
    _, saw = world.view_of(seat)
    for _ in range(_MAX_TRIES):
        places = dict(zip(pair := chance.sample(DECK, 2), pair[::-1], strict=True))
        hands = tuple(tuple(places.get(card, card) for card in hand) for hand in world.hands)
        moves = tuple(
            move if isinstance(move, bool) else [places.get(card, card) for card in move] for move in world.moves
        )
        other = replace(world, hands=hands, moves=moves)
        with suppress(IllegalOutput):
            if other.view_of(seat)[1] == saw:
                return other
    return None
