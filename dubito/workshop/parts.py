"""What a game may bring for the workshop: names of its module `workshop`, each with what serves where it is missing.

- `Questions(table, rules, note)`, with `step()`: plays a game and tells `note(seat, position)` of each question. Needed
  by a game whose moves are not each one node's answer.
- `Hidden`, a dataclass, `hidden(state)`, `contradiction(position, hidden)`: the truth, kept beside a position.
- `right(position, hidden)`: the answer that the truth makes right, if any; `RIGHT` says in words which.
- `world_pairs()`: pairs of positions that differ only in what their seat cannot know.
- `sample_tables()`: tables to try prompts on, each with its rules; else the game's own bots play.
- `INSTEAD`, `IMPORTANT`: facts that make up for others, and facts that matter at a node.
- `check(position, answer)`: raises IllegalOutput for an answer that the rules refuse there; else all are taken.
- `where(position)`, `own_turn(position)`: which game it is of, in words; which of its seat's turns it is.
"""

from typing import Any

from dubito.game import Spec


def part(game: Spec, name: str, otherwise: Any) -> Any:
    """What the game has under this name."""
    return getattr(game.module("workshop"), name, otherwise)
