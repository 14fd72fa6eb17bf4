"""Advice on a prompt: what it leaves unsaid, what it costs, what keeps a provider from reading it from its cache.

Sizes and beginnings are measured on the sample games; a token is reckoned as four bytes.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import mean
from typing import Final

from dubito.llm.prompts import Prompt
from dubito.workshop.coverage import missing, unused
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
