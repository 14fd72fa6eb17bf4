"""What a prompt tells: which facts its templates use at all, and which its text depends on at a node.

A fact counts as told at a node if another value of it would make another text. Where one fact says what another
does, either will do: the question names the number, the history holds what rates are reckoned from.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from jinja2 import Environment, meta

from dubito.errors import UsageError
from dubito.game import Position
from dubito.llm.prompts import Prompt
from dubito.llm.templates import DESCRIPTION
from dubito.workshop.parts import part


def unused(prompt: Prompt, keys: Iterable[str]) -> list[str]:
    """Those of the facts that no template names, unless one that says the same is named."""
    environment = Environment(autoescape=False)  # noqa: S701, it only parses
    named: set[str] = set()
    for name, source in prompt.sources.items():
        if name != DESCRIPTION:
            named |= meta.find_undeclared_variables(environment.parse(source))
    instead: Mapping[str, Sequence[str]] = {"own_moves": ("history",), **part(prompt.game, "INSTEAD", {})}
    return [key for key in keys if key not in named and not named.intersection(instead.get(key, ()))]


def missing(prompt: Prompt, node: str, positions: Iterable[Position]) -> list[str]:
    """The important facts that the prompt does not tell at this node, in any of these positions.

    The game says which are important; if it does not, none is.
    """
    some = [prompt.game.facts.facts(position) for position in positions if position.node == node]
    important: Mapping[str, Sequence[Sequence[str]]] = part(prompt.game, "IMPORTANT", {})
    return [group[0] for group in important.get(node, ()) if not any(_tells(prompt, some, fact) for fact in group)]


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
