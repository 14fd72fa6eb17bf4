"""How the house's models answer: `house-random` at random, the others as the `stand_in` modules of their games say.

They read nothing but what they were sent: the text, and the schema of the answer. No position, no game, no memory
reaches them.
"""

from collections.abc import Iterable, Mapping, Sequence
from random import Random
from typing import Any, Final

from dubito.game import HousePolicy, Spec
from dubito.game.find import DUBITO
from dubito.house.core import Policy
from dubito.house.structured import Opinion

RANDOM: Final = "house-random"
_LEGAL: Final = "legal:"  # the last line of a text that begins so lists what is legal: `legal: draw | skip`
_Schema = Mapping[str, Any]


def house_policy(games: Sequence[Spec]) -> Policy:
    """The house's models for these games, Dubito's first."""
    policies: dict[str, HousePolicy | None] = {RANDOM: None}
    for game in sorted(games, key=lambda game: game.name != DUBITO):
        policies |= _policies(game)

    def answer(model: str, text: str, chance: Random, schema: _Schema | None) -> Opinion:
        return opinion(policies[model], text, chance, schema)

    return Policy(tuple(policies), answer)


def models(game: Spec) -> tuple[str, ...]:
    """The names of the house's models for a game, the best one last."""
    return (RANDOM, *_policies(game))


def _policies(game: Spec) -> Mapping[str, HousePolicy]:
    module = game.module("stand_in", before="house")
    return {} if module is None else module.MODELS


def opinion(policy: HousePolicy | None, text: str, chance: Random, schema: _Schema | None = None) -> Opinion:
    """What a model says to the prompt; without a policy, or with one that cannot read the text, it draws lots."""
    drawn = by_lot(schema, text, chance)
    if policy is None:
        return drawn
    try:
        said = policy(text, chance)
        return Opinion(said["answer"], understood=True, p_bluff=said.get("p_bluff"))
    except (LookupError, ValueError, ArithmeticError):
        return Opinion(drawn.answer, understood=False)


def by_lot(schema: _Schema | None, text: str, chance: Random) -> Opinion:
    """An answer that fits the schema, of what the text says is legal: where it lists cards, one or more of them.

    Without a list it is any that fits, and it says that it did not understand; yes or no needs none.
    """
    kind = (schema or {}).get("properties", {}).get("answer", {})
    legal = _legal(text)
    match kind.get("type"):
        case "string":
            known = kind.get("enum", legal)
            return _one_of([option for option in legal if option in known], known or [""], chance)
        case "integer":
            return _one_of(_numbers(legal), [0], chance)
        case "object" if kind.get("properties"):
            return _shares(legal, kind["properties"])
        case "array" if "enum" in kind.get("items", {}):
            known = kind["items"]["enum"]
            return _some_of([card for card in _numbers(legal) if card in known], known, chance)
        case _:
            return Opinion(chance.random() < 0.5, understood=True)


def _one_of(legal: Sequence[Any], possible: Sequence[Any], chance: Random) -> Opinion:
    return Opinion(chance.choice(legal or possible), understood=bool(legal))


def _shares(legal: Sequence[str], known: Iterable[str]) -> Opinion:
    """The same probability for all that is legal, as the answers are drawn."""
    share = 1 / len(legal) if legal else 0.0
    return Opinion({name: share if name in legal else 0.0 for name in known}, understood=bool(legal))


def _some_of(held: Sequence[int], possible: Sequence[int], chance: Random) -> Opinion:
    if not held:
        return Opinion([chance.choice(possible)], understood=False)
    return Opinion(chance.sample(held, chance.randint(1, len(held))), understood=True)


def _legal(text: str) -> list[str]:
    lines = [line.strip() for line in text.splitlines()]
    line = next((line for line in reversed(lines) if line.startswith(_LEGAL)), _LEGAL)
    return [part.strip() for part in line.removeprefix(_LEGAL).split("|") if part.strip()]


def _numbers(words: Sequence[str]) -> list[int]:
    return [int(word) for word in words if word.removeprefix("-").isdecimal()]
