"""Some games to try a prompt on, as the game's own `workshop` has them."""

from typing import Final

from dubito.game import Spec
from dubito.workshop.craft import craft_of, game_or_dubito
from dubito.workshop.recorded import Recorded
from dubito.workshop.recorder import Origin, watched

_PLAYED: Final[dict[str, tuple[tuple[Recorded, ...], ...]]] = {}  # by the game's name


def sample_games(game: Spec | None = None) -> tuple[tuple[Recorded, ...], ...]:
    """The positions of each game, in the order in which they were asked; of Dubito if no game is given."""
    name, craft = game_or_dubito(game).name, craft_of(game)
    if name not in _PLAYED:
        _PLAYED[name] = tuple(
            tuple(watched(table, Origin(None, craft.SEED, table.deal, table.number), game))
            for table in craft.sample_tables()
        )
    return _PLAYED[name]
