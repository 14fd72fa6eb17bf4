"""A fake model for Outsider. It says how many letters the word has, and votes for the seat that said the least."""

import json
import re
from random import Random
from typing import Any

from dubito.game.words import parse_legal

_SAID = re.compile(r'^seat (\d) says (".*")$', re.MULTILINE)
_WORD = re.compile(r"^The word is (.*)\.$", re.MULTILINE)


def counts_letters(text: str, chance: Random) -> dict[str, Any]:
    if not (votes := parse_legal(text)):
        word = _WORD.search(text)
        return {"answer": f"It has {len(word[1])} letters." if word else "It is not a long one."}
    length = {f"seat {seat}": len(json.loads(said)) for seat, said in _SAID.findall(text)}
    return {"answer": min(votes, key=lambda seat: length.get(seat, 0))}


MODELS = {"house-letters": counts_letters}
