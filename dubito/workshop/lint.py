"""Advice on a prompt: what it leaves unsaid, what it costs, what keeps a provider from reading it from its cache.

Sizes and beginnings are measured on the sample games; a token is reckoned as four bytes. A fact counts as told at a
node if another value of it would make another text. Where one fact says what another does, either will do: the question
names the number, the history holds what rates are reckoned from.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import mean
from typing import Any, Final

from jinja2 import Environment, meta

from dubito.errors import UsageError
from dubito.game import Position
from dubito.llm.prompts import Prompt
from dubito.llm.templates import DESCRIPTION
from dubito.workshop.parts import part
from dubito.workshop.prefix import FIRST, RenderedRequest, beginning_fault, requests, system_fault
from dubito.workshop.recordings import RecordedPosition

_BYTES_A_TOKEN: Final = 4
_TRIED: Final = 3  # positions of a node that show what it tells


@dataclass(frozen=True, slots=True)
class Size:
    """How long the requests of one node are, on average."""

    node: str
    requests: int
    bytes: float
    shared: float | None  # of a request from the fifth decision on, with the one before; None: there was none

    @property
    def tokens(self) -> float:
        """About how many tokens they are."""
        return self.bytes / _BYTES_A_TOKEN


@dataclass(frozen=True, slots=True)
class Advice:
    """What lint has to say."""

    sizes: list[Size]
    findings: list[str]


def lint(prompt: Prompt, games: Sequence[Sequence[RecordedPosition]]) -> Advice:
    """What there is to say of a prompt; raises UsageError where a template fails on one of the games' positions."""
    made = requests(prompt, games)
    faults = filter(None, [system_fault(made), beginning_fault(made)])
    findings = [*_unused(prompt), *_missing(prompt, games), *faults]
    by_node = {node.name: [one for one in made if one.position.node == node.name] for node in prompt.game.nodes}
    return Advice([_size(node, those) for node, those in by_node.items() if those], findings)


def _size(node: str, made: Sequence[RenderedRequest]) -> Size:
    late = [one.shared for one in made if one.decision >= FIRST]
    return Size(node, len(made), mean(one.bytes for one in made), mean(late) if late else None)


def _unused(prompt: Prompt) -> list[str]:
    names = unused(prompt, prompt.variables)
    return [f"facts that no template uses: {', '.join(names)}"] if names else []


def _missing(prompt: Prompt, games: Sequence[Sequence[RecordedPosition]]) -> list[str]:
    nodes: dict[str, list[str]] = {}
    for node in [node.name for node in prompt.game.nodes]:
        asked = [[one.position for one in game if one.position.node == node][-1:] for game in games]
        for fact in missing(prompt, node, [position for last in asked for position in last][:_TRIED]):
            nodes.setdefault(fact, []).append(node)
    return [f"not told at {', '.join(where)}: {fact}" for fact, where in nodes.items()]


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
    return [
        group[0]
        for group in important.get(node, ())
        if not any(_depends(prompt, values, fact) for fact in group for values in some)
    ]


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
