"""Our games in OpenSpiel's world: importing this package registers them with pyspiel (docs/training.md).

`pyspiel.load_game("dubito(players=4)")`, `"dubito_bs"` and `"dubito_defuse"`.
"""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, Final

try:
    import pyspiel  # noqa: F401, for the sentence below
except ModuleNotFoundError as error:
    raise ModuleNotFoundError("OpenSpiel is not installed: pip install 'dubito[openspiel]'", name="pyspiel") from error

from dubito.errors import UsageError
from dubito.games.bs.game import GAME as BS
from dubito.games.bs.witness import BSRules
from dubito.games.defuse.game import GAME as DEFUSE
from dubito.games.dubito.engine import MIN_PLAYERS, Rules
from dubito.games.dubito.game import GAME as DUBITO
from dubito.training.bs import BSCourse
from dubito.training.defuse import DefuseCourse
from dubito.training.dubito import CardsCourse, DubitoCourse
from dubito.training.spiel import GameKind, HarnessGame, SeatedBot, registered

__all__ = ["BSGame", "DefuseGame", "DubitoGame", "SeatedBot"]

_MOVES: Final[Mapping[str, type[DubitoCourse]]] = {"nodes": DubitoCourse, "cards": CardsCourse}


def _dubito(given: Mapping[str, Any]) -> DubitoCourse:
    if given["moves"] not in _MOVES:
        raise UsageError(f"moves: {given['moves']!r} is neither {' nor '.join(map(repr, _MOVES))}")
    rules = Rules(given["jokers"], given["win_rule"], given["max_turns"])
    return _MOVES[given["moves"]](given["players"], rules)


@registered
class DubitoGame(HarnessGame):
    """Dubito for 3 to 8."""

    kind = GameKind("dubito", "Dubito", DUBITO, {"players": MIN_PLAYERS, **asdict(Rules()), "moves": "nodes"}, _dubito)


@registered
class BSGame(HarnessGame):
    """BS for four."""

    kind = GameKind(
        "dubito_bs", "BS, king of the hill", BS, BSRules().model_dump(), lambda given: BSCourse(given["max_rounds"])
    )


@registered
class DefuseGame(HarnessGame):
    """Draw and defuse for two, of whom one wins what the other loses."""

    kind = GameKind("dubito_defuse", "Draw and defuse", DEFUSE, {}, lambda given: DefuseCourse(), zero_sum=True)
