"""The built-in model server's policy for BS, which uses only the facts in the prompt.

The policy reads the facts between the two markers of `prompts/bs/shared/facts.jinja`, and raises LookupError or
ValueError if facts are missing or malformed.
"""

from collections.abc import Mapping
from random import Random
from typing import Any, Final

from dubito.game import HousePolicy
from dubito.game.words import parse_facts


def _house_careful(text: str, chance: Random) -> dict[str, Any]:
    values = parse_facts(text)
    if values["node"] != "cards":  # accuse if this is surely a lie, or the play would win
        return {"answer": "yes" in (values["sure_lie"], values["mover_wins"])}
    # Play all cards of the number. Without any, play the card whose number will be asked for last.
    held = {int(number): int(n) for n, number in (part.split("x ") for part in values["hand"].split(", "))}
    number = int(values["number"])
    if number in held:
        return {"answer": [number] * held[number]}
    later = [int(other) for other in values["own_numbers"].split()]
    return {"answer": [max(held, key=later.index)]}


MODELS: Final[Mapping[str, HousePolicy]] = {"house-careful": _house_careful}
