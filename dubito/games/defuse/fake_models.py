"""The built-in model server's policy for draw and defuse, which uses only the facts in the prompt.

The policy reads the facts between the two markers of `prompts/defuse/shared/facts.jinja`, and raises LookupError or
ValueError if facts are missing or malformed.
"""

from collections.abc import Mapping
from random import Random
from typing import Any, Final

from dubito.game import HousePolicy
from dubito.game.words import parse_facts

_MAX_RISK: Final = 0.2  # highest acceptable chance of drawing the bomb without a defuse card


def _house_careful(text: str, chance: Random) -> dict[str, Any]:
    values = parse_facts(text)
    return {"answer": place(values) if values["node"] == "place" else act(values)}


MODELS: Final[Mapping[str, HousePolicy]] = {"house-careful": _house_careful}


def act(values: Mapping[str, str]) -> str:
    """Draw if it is safe enough, otherwise look at the pile and avoid a likely bomb."""
    held = _kinds_in_hand(values["hand"])
    top, bottom = _chance(values["bomb_on_top"]), _chance(values["bomb_at_bottom"])
    if top == 0 or (top < 1 and "defuse" in held) or top < _MAX_RISK:
        return "draw"
    if "see" in held and top < 1:
        return "see"
    if "bottom" in held and bottom < _MAX_RISK:
        return "bottom"
    return next((card for card in ("skip", "shuffle") if card in held), "draw")


def place(values: Mapping[str, str]) -> int:
    return 0 if _kinds_in_hand(values["hand"]) & {"defuse", "skip", "bottom"} else int(values["pile"])


def _kinds_in_hand(text: str) -> set[str]:
    return {part.split("x ")[1] for part in text.split(", ") if "x " in part}


def _chance(text: str) -> float:
    return 0.5 if text == "unknown" else float(text)
