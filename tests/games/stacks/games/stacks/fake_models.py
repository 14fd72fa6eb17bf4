"""The built-in model server's answers at Stacks."""

import re
from random import Random
from typing import Any


def lowest(text: str, chance: Random) -> dict[str, Any]:
    held = re.findall(r"\d", text.split("You hold", 1)[1])
    return {"answer": [int(held[0])]}


MODELS = {"house-lowest": lowest}
