"""What a prompt tells: which facts its templates use at all, and which its text depends on at a node.

A fact counts as told at a node if another value of it would make another text. Where one fact says what another
does, either will do: the question names the number, the history holds what rates are reckoned from.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from jinja2 import Environment, meta

from dubito.errors import UsageError
from dubito.games.dubito.facts import Position, facts
from dubito.llm.prompts import DESCRIPTION, Prompt

# Facts that are not missed where another one says the same.
_INSTEAD: Final[Mapping[str, tuple[str, ...]]] = {
    "rules": ("rule_text",),
    "win_rule": ("rule_text",),
    "node_name": ("node", "question"),
    "node": ("question",),
    "answers": ("question",),
    "can_doubt": ("node", "question"),
    "own_plays": ("history",),
    "own_moves": ("history",),
    "seats_in_game": ("players",),
    "places": ("history",),
    "numbers_in_play": ("sets_gone",),
    "sets_gone": ("numbers_in_play", "history"),
    "prev_honest_share": ("prev_bluff_rate",),
    "next_honest_share": ("next_bluff_rate",),
    "table_honest_share": ("table_bluff_rate",),
    "own_cards": ("hand",),
}

_ALWAYS: Final = [("rule_text",), ("objective",), ("seat",), ("question",), ("if_true",), ("if_false",), ("hand",)]
_AFTER: Final = [  # who may doubt what is put down
    ("next_cards", "players.cards"),
    ("next_doubt_rate", "players.doubt_rate", "players.doubts", "history"),
]
# What matters at each node: one of each group has to be told, `players.x` being a field of each player's.
_IMPORTANT: Final[Mapping[str, list[tuple[str, ...]]]] = {
    "A": [*_ALWAYS, *_AFTER],
    "B": [*_ALWAYS, *_AFTER],
    "C": [
        *_ALWAYS,
        ("number", "question"),
        ("last_play", "question"),
        ("last_player", "question"),
        ("board_cards", "if_true"),
        ("held_of_number", "hand"),
        ("number_elsewhere", "sure_bluff", "players.surely_holds", "players.known_cards", "history"),
        ("prev_cards", "prev_about_to_win", "players.cards"),
        ("prev_bluff_rate", "prev_honest_share", "players.bluff_rate", "players.honest_plays", "history"),
    ],
    "D": [
        *_ALWAYS,
        ("number", "question"),
        ("held_of_number", "question", "hand"),
        ("board_cards", "history"),
        *_AFTER,
    ],
    "E": [*_ALWAYS, ("number", "question"), ("board_cards", "history"), *_AFTER],
}


def unused(prompt: Prompt, keys: Iterable[str]) -> list[str]:
    """Those of the facts that no template names, unless one that says the same is named."""
    environment = Environment(autoescape=False)  # noqa: S701, it only parses
    named: set[str] = set()
    for name, source in prompt.sources.items():
        if name != DESCRIPTION:
            named |= meta.find_undeclared_variables(environment.parse(source))
    return [key for key in keys if key not in named and not named.intersection(_INSTEAD.get(key, ()))]


def missing(prompt: Prompt, node: str, positions: Iterable[Position]) -> list[str]:
    """The important facts that the prompt does not tell at this node, in any of these positions."""
    some = [facts(position) for position in positions if position.node == node]
    return [group[0] for group in _IMPORTANT[node] if not any(_tells(prompt, some, fact) for fact in group)]


def _tells(prompt: Prompt, positions: Iterable[Mapping[str, Any]], fact: str) -> bool:
    return any(_depends(prompt, values, fact) for values in positions)


def _depends(prompt: Prompt, values: Mapping[str, Any], fact: str) -> bool:
    name, _, inner = fact.partition(".")
    if inner:
        changed: Any = [player | {inner: another(player[inner])} for player in values[name]]
    else:
        changed = another(values[name])
    try:
        return prompt.fill({**values, name: changed}) != prompt.fill(values)
    except UsageError:  # it does look at it
        return True


def another(value: Any) -> Any:
    """A value of the same kind that is written in another way."""
    match value:
        case None:
            return 0.25
        case bool():
            return not value
        case int():
            return value + 1
        case float():
            return 0.25 if value > 0.5 else 0.75
        case str():
            return f"{value} (another)"
        case dict():
            return {key: another(inner) for key, inner in value.items()} or {"another": 1}
        case _:
            return [another(inner) for inner in value] or ["another"]
