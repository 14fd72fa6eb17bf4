"""Draw and defuse for the prompt workshop (see `dubito/workshop/recordings.py`)."""

from collections.abc import Iterator
from random import Random
from typing import Final

from dubito.games.defuse.engine import ACTS, HandView, deal
from dubito.games.defuse.knowledge import Notebook, Position
from dubito.games.defuse.worlds import sample_world

_GAMES: Final = 3


def world_pairs() -> Iterator[tuple[Position, Position]]:
    """Yield positions from random games, each with the same position in another world."""
    for number in range(_GAMES):
        chance = Random(number)
        state, books = deal(chance), [Notebook(seat, None) for seat in (0, 1)]
        events = [*state.start]
        while True:
            for seat, book in enumerate(books):
                for event in events:
                    if event.only in (None, seat):
                        book.observe(event, HandView(state.hands[seat]))
            if state.over:
                break
            position = books[state.seat].position(state.node, state.view(), HandView(state.hands[state.seat]))
            yield position, sample_world(position, chance).replay_position(position)
            legal = range(len(state.pile) + 1) if state.node == "place" else ACTS
            events = [*state.apply(chance.choice([output for output in legal if state.why_illegal(output) is None]))]
