"""The house's policy for BS, by what the facts in the prompt say and nothing else.

It reads the lines that `prompts/bs/shared/facts.jinja` writes between its two markers, and raises LookupError or
ValueError where these are missing, or are not what the partial writes.
"""

from collections.abc import Mapping
from random import Random
from typing import Any, Final

from dubito.game import HousePolicy
from dubito.game.words import facts_in


def _house_careful(text: str, chance: Random) -> dict[str, Any]:
    values = facts_in(text)
    return {"answer": cards(values) if values["node"] == "cards" else accuses(values)}


MODELS: Final[Mapping[str, HousePolicy]] = {"house-careful": _house_careful}


def cards(values: Mapping[str, str]) -> list[int]:
    """All it holds of the number asked, else the one card that it will be asked for last."""
    held = {int(number): int(n) for n, number in (part.split("x ") for part in values["hand"].split(", "))}
    number = int(values["number"])
    if number in held:
        return [number] * held[number]
    later = [int(other) for other in values["own_numbers"].split()]
    return [max(held, key=later.index)]


def accuses(values: Mapping[str, str]) -> bool:
    return "yes" in (values["sure_lie"], values["mover_wins"])
