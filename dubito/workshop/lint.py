"""Advice on a prompt: what it leaves unsaid, what it costs, what keeps a provider from reading it from its cache.

Sizes and beginnings are measured on the sample games; a token is reckoned as four bytes. A fact counts as told at a
node if another value of it would make another text. Where one fact says what another does, either will do: the question
names the number, the history holds what rates are reckoned from.

How much of a request a provider can read from its cache: what the player's request before began with as well.

OpenAI's cache takes any common beginning. Anthropic's takes whole blocks up to a mark: the system text and the
chapters of the history. What is measured is the latter, so that it holds at both: the common beginning is no less.

How two prompts differ at a position, part by part.
"""

import difflib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from statistics import mean
from typing import Any, Final

from jinja2 import Environment, meta, nodes

from dubito.errors import UsageError, one_line
from dubito.game import Position
from dubito.llm.prompts import Prompt, RenderedPrompt
from dubito.llm.recording import common_length
from dubito.llm.templates import DESCRIPTION
from dubito.workshop.recordings import RecordedPosition, workshop_part

FIRST_DECISION: Final = 5  # decision of a player from which on it is asked for
_MIN_SHARED: Final = {"node": 0.80, "turn": 0.75}  # by what a request asks: since the turn before more has happened
_MAX_BELOW: Final = 0.05  # of the requests: with many quick players the news can outweigh what was sent before


@dataclass(frozen=True, slots=True)
class RenderedRequest:
    """One request of a game, beside the player's request before."""

    position: Any  # the game's own kind of `Position`
    game: str  # which it is of, in words, if the game has any
    decision: int  # of this player in this game, from 1
    rendered: RenderedPrompt
    before: RenderedPrompt | None  # None: it is the player's first
    least: float  # of what it should share with the one before

    @property
    def bytes(self) -> int:
        return len((self.rendered.system + _user(self.rendered)).encode())

    @property
    def shared(self) -> float:
        """The share of its bytes in blocks up to the last mark of the request before."""
        if self.before is None or not self.keeps_system:
            return 0.0
        same = takewhile(lambda pair: pair[0] == pair[1], zip(self.before.history, self.rendered.history, strict=False))
        told = [new for _, new in same]
        if len(told) < len(self.before.history):  # its last mark is not met again
            told = []
        return len((self.rendered.system + "".join(told)).encode()) / max(1, self.bytes)

    @property
    def keeps_system(self) -> bool:
        return self.before is None or self.rendered.system == self.before.system

    @property
    def keeps_beginning(self) -> bool:
        return self.decision < FIRST_DECISION or self.shared >= self.least

    @property
    def where(self) -> str:
        said = f"node {self.position.node}, decision {self.decision} of seat {self.position.seat}"
        return f"{' '.join(filter(None, (said, self.game)))}, {self._parts()}"

    def _parts(self) -> str:
        if self.before is None:
            return "the first"
        name, new, old = "user", _user(self.rendered), _user(self.before)
        if not self.keeps_system:
            name, new, old = "system", self.rendered.system, self.before.system
        head = new.encode()[: common_length(old.encode(), new.encode())].decode("utf-8", "ignore")
        number = head.count("\n")
        line = new.split("\n")[number]
        return f"from line {number + 1} of the {name} text on: {one_line(line) or '(an empty line)'}"


def first_questions(prompt: Prompt, game: Iterable[RecordedPosition]) -> list[RecordedPosition]:
    """Of the questions of a game: those that begin a request. Where it asks a whole turn, the others stand in it."""
    found: list[RecordedPosition] = []
    before: Sequence[Position] = ()
    for one in game:
        if one.position not in before[1:]:
            found.append(one)
            before = prompt.questions(one.position)
    return found


def render_requests(prompt: Prompt, games: Iterable[Iterable[RecordedPosition]]) -> list[RenderedRequest]:
    """All requests of these games, each beside the one before."""
    made, where = [], workshop_part(prompt.game, "where", lambda position: "")
    for game in games:
        last: dict[int, RenderedPrompt] = {}
        decisions: dict[int, int] = {}
        for one in first_questions(prompt, game):
            seat = one.position.seat
            decisions[seat] = decisions.get(seat, 0) + 1
            rendered = prompt.render(one.position)
            told = (where(one.position), decisions[seat], rendered, last.get(seat))
            made.append(RenderedRequest(one.position, *told, _MIN_SHARED[prompt.description.ask]))
            last[seat] = rendered
    return made


def find_system_fault(made: Sequence[RenderedRequest]) -> str | None:
    """What is wrong if the system text does not stay the same within a game."""
    changed = [one for one in made if not one.keeps_system]
    if not changed:
        return None
    return (
        f"the system text changes within a game, at {len(changed):,} of {len(made):,} requests: a provider reads "
        f"nothing behind the change from its cache; the first: {changed[0].where}"
    )


def find_beginning_fault(made: Sequence[RenderedRequest]) -> str | None:
    """What is wrong if requests share too little with the ones before."""
    late = [one for one in made if one.decision >= FIRST_DECISION]
    few = [one for one in late if not one.keeps_beginning]
    if len(few) <= _MAX_BELOW * len(late):
        return None
    worst = min(few, key=lambda one: one.shared)
    return (
        f"{len(few):,} of {len(late):,} requests from a player's decision {FIRST_DECISION} on share less than "
        f"{worst.least:.0%} with the request before, and at most {_MAX_BELOW:.0%} of them should: providers charge less"
        f" for the system text and what history.jinja adds; the least, {worst.shared:.0%}: {worst.where}"
    )


def _user(rendered: RenderedPrompt) -> str:
    return "".join(rendered.history) + rendered.user


_BYTES_PER_TOKEN: Final = 4
_MAX_POSITIONS: Final = 3  # positions of a node that show what it tells
_QUESTION_FACTS: Final = (
    "question",
    "if_true",
    "if_false",
)  # which a prompt that asks several may put in its own words


@dataclass(frozen=True, slots=True)
class Size:
    """How long the requests of one node are, on average."""

    node: str
    requests: int
    bytes: float
    shared: float | None  # of a request from the fifth decision on, with the one before; None: there was none

    @property
    def tokens(self) -> float:
        return self.bytes / _BYTES_PER_TOKEN


@dataclass(frozen=True, slots=True)
class Advice:
    """What lint has to say."""

    sizes: list[Size]
    findings: list[str]


def lint(prompt: Prompt, games: Sequence[Sequence[RecordedPosition]]) -> Advice:
    """What there is to say of a prompt; raises UsageError where a template fails on one of the games' positions."""
    made = render_requests(prompt, games)
    faults = filter(None, [find_system_fault(made), find_beginning_fault(made)])
    findings = [*_describe_unused(prompt), *_describe_missing(prompt, games), *faults]
    by_node = {node.name: [one for one in made if one.position.node == node.name] for node in prompt.game.nodes}
    return Advice([_measure_size(node, those) for node, those in by_node.items() if those], findings)


def _measure_size(node: str, made: Sequence[RenderedRequest]) -> Size:
    late = [one.shared for one in made if one.decision >= FIRST_DECISION]
    return Size(node, len(made), mean(one.bytes for one in made), mean(late) if late else None)


def _describe_unused(prompt: Prompt) -> list[str]:
    names = unused_facts(prompt, prompt.variables)
    return [f"facts that no template uses: {', '.join(names)}"] if names else []


def _describe_missing(prompt: Prompt, games: Sequence[Sequence[RecordedPosition]]) -> list[str]:
    left_out: dict[str, list[str]] = {}
    for node in [node.name for node in prompt.game.nodes]:
        of_node = [
            [one.position for one in first_questions(prompt, game) if one.position.node == node][-1:] for game in games
        ]
        tried = [position for last in of_node for position in last][:_MAX_POSITIONS]
        for fact in facts_left_out(prompt, node, tried) if tried else ():
            left_out.setdefault(fact, []).append(node)
    return [f"not told at {', '.join(where)}: {fact}" for fact, where in left_out.items()]


def unused_facts(prompt: Prompt, keys: Iterable[str]) -> list[str]:
    """Those of the facts that no template names, unless one that says the same is named."""
    environment = Environment(autoescape=False)  # noqa: S701, it only parses
    named: set[str] = set()
    for name, source in prompt.sources.items():
        if name != DESCRIPTION:
            tree = environment.parse(source)
            named |= meta.find_undeclared_variables(tree)
            if prompt.asks_turn:  # one["question"]
                constants = (item.arg for item in tree.find_all(nodes.Getitem) if isinstance(item.arg, nodes.Const))
                named |= {constant.value for constant in constants if isinstance(constant.value, str)}
    instead: Mapping[str, Sequence[str]] = {"own_moves": ("history",), **workshop_part(prompt.game, "INSTEAD", {})}
    return [key for key in keys if key not in named and not named.intersection(instead.get(key, ()))]


def facts_left_out(prompt: Prompt, node: str, positions: Iterable[Position]) -> list[str]:
    """The important facts that the prompt does not tell at this node, in any of these positions.

    The game says which are important; if it does not, none is.
    """
    facts = prompt.game.facts.facts
    some = [[*map(facts, prompt.questions(position))] for position in positions if position.node == node]
    important: Mapping[str, Sequence[Sequence[str]]] = workshop_part(prompt.game, "IMPORTANT", {})
    return [
        group[0]
        for group in important.get(node, ())
        if not (prompt.asks_turn and group[0] in _QUESTION_FACTS)
        and not any(_depends_on(prompt, turn, fact) for fact in group for turn in some)
    ]


def _depends_on(prompt: Prompt, turn: Sequence[Mapping[str, Any]], fact: str) -> bool:
    name, _, inner = fact.partition(".")

    def changed(values: Mapping[str, Any]) -> dict[str, Any]:
        told = values[name]
        other = [player | {inner: other_value(player[inner])} for player in told] if inner else other_value(told)
        return {**values, name: other}

    others = [*map(changed, turn)]
    try:
        return prompt.fill(others[0], turn=others) != prompt.fill(turn[0], turn=turn)
    except UsageError:  # it does look at it
        return True


def other_value(value: Any) -> Any:
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
            return {key: other_value(inner) for key, inner in value.items()} or {"another": 1}
        case _:
            return [other_value(inner) for inner in value] or ["another"]


_PARTS: Final = ("answer fields", "system", "history", "user")


def prompt_differences(one: Prompt, other: Prompt, position: Position) -> Iterator[str]:
    for name, old, new in zip(_PARTS, _texts(one, position), _texts(other, position), strict=True):
        yield from unified_diff(old, new, f"{name} of {one.folder}", f"{name} of {other.folder}")


def _texts(prompt: Prompt, position: Position) -> tuple[str, str, str, str]:
    rendered = prompt.render(position)
    return ", ".join(prompt.fields), rendered.system, "".join(rendered.history), rendered.user


def unified_diff(old: str, new: str, old_name: str, new_name: str) -> Iterator[str]:
    return difflib.unified_diff(old.split("\n"), new.split("\n"), old_name, new_name, lineterm="")
