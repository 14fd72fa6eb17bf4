"""What prompts are told of Dubito, and how its positions are kept (`dubito.game.Facts`).

`notebook` collects a seat's events; `memory` turns them into what it can derive (`witness`: the cards that are
certain); `knowledge` makes the facts for prompts; `positions` reads and writes files.
"""

from dubito.games.dubito.knowledge import Position, facts, rate, steady_facts
from dubito.games.dubito.memory import OwnPlay
from dubito.games.dubito.notebook import Notebook
from dubito.games.dubito.positions import example_position, from_json, to_json

__all__ = [
    "Notebook",
    "OwnPlay",
    "Position",
    "example_position",
    "facts",
    "from_json",
    "rate",
    "steady_facts",
    "to_json",
]
