"""What prompts are told of Dubito, and how its positions are kept (`dubito.game.Facts`).

`notebook` collects a seat's events; `memory` turns them into what it can derive (`witness`: the cards that are
certain); `knowledge` makes the facts for prompts; `positions` reads and writes files.
"""

from dubito.games.dubito.knowledge import Position as Position
from dubito.games.dubito.knowledge import facts as facts
from dubito.games.dubito.knowledge import rate as rate
from dubito.games.dubito.knowledge import steady_facts as steady_facts
from dubito.games.dubito.memory import OwnPlay as OwnPlay
from dubito.games.dubito.notebook import Notebook as Notebook
from dubito.games.dubito.positions import example_position as example_position
from dubito.games.dubito.positions import from_json as from_json
from dubito.games.dubito.positions import to_json as to_json
