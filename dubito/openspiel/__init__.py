"""Our games in OpenSpiel's world: importing this package registers them with pyspiel (docs/training.md).

`pyspiel.load_game("dubito(players=4)")`, `"dubito_bs"` and `"dubito_defuse"`.
"""

from collections.abc import Mapping
from typing import Any

import pyspiel

from dubito.games.bs.spec import BSRules
from dubito.games.dubito.rules import MAX_PLAYERS, MIN_PLAYERS, Rules
from dubito.openspiel.bs_course import BSCourse
from dubito.openspiel.defuse_course import STEPS_MOST, DefuseCourse
from dubito.openspiel.dubito_course import DubitoCourse
from dubito.openspiel.spiel import Kind, register

_UTILITY = pyspiel.GameType.Utility
_DUBITO = Rules()


def _dubito_rules(given: Mapping[str, Any]) -> Rules:
    return Rules(given["jokers"], given["win_rule"], given["max_turns"])


DubitoGame = register(
    Kind(
        "dubito",
        "Dubito",
        (MIN_PLAYERS, MAX_PLAYERS),
        {
            "players": MIN_PLAYERS,
            "jokers": _DUBITO.jokers,
            "win_rule": _DUBITO.win_rule,
            "max_turns": _DUBITO.max_turns,
        },
        _UTILITY.GENERAL_SUM,
        (0.0, 1.0),
        lambda given: DubitoCourse(given["players"], _dubito_rules(given)),
        lambda given: DubitoCourse.longest(_dubito_rules(given)),
    )
)

BSGame = register(
    Kind(
        "dubito_bs",
        "BS, king of the hill",
        (4, 4),
        {"max_rounds": BSRules().max_rounds},
        _UTILITY.GENERAL_SUM,
        (0.0, 1.0),
        lambda given: BSCourse(given["max_rounds"]),
        lambda given: BSCourse.longest(given["max_rounds"]),
    )
)

DefuseGame = register(
    Kind(
        "dubito_defuse",
        "Draw and defuse",
        (2, 2),
        {},
        _UTILITY.ZERO_SUM,
        (-1.0, 1.0),
        lambda given: DefuseCourse(),
        lambda given: STEPS_MOST,
    )
)
