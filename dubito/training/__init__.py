"""Games of the harness in OpenSpiel's world (docs/training.md).

Importing this package registers those that come with it: `pyspiel.load_game("dubito(players=4)")`, `"dubito_bs"` and
`"dubito_defuse"`. `load_game("kuhn")` registers and loads any, one of your own, too.
"""

from pathlib import Path
from typing import Any

try:
    import pyspiel
except ModuleNotFoundError as error:
    raise ModuleNotFoundError("OpenSpiel is not installed: pip install 'dubito[openspiel]'", name="pyspiel") from error

from dubito.game.find import find_game, game_names
from dubito.training.spiel import SeatedBot, registered

__all__ = ["SeatedBot", "load_game", "register"]


def register(name: str) -> str:
    """Tell pyspiel of the game that the harness knows by this name here; returns what it is called there.

    A name that only pyspiel knows is its own. Raises UsageError where there is no such game, or no module `training`
    of it that can be used.
    """
    if name in pyspiel.registered_names() and name not in game_names(Path.cwd()):
        return name
    return registered(find_game(name, Path.cwd()))


def load_game(name: str) -> Any:
    """A game of the harness as pyspiel has games: `load_game("kuhn")`, with parameters as pyspiel takes them."""
    game, bracket, parameters = name.partition("(")
    return pyspiel.load_game(f"{register(game)}{bracket}{parameters}")


for _name in ("dubito", "bs", "defuse"):
    register(_name)
