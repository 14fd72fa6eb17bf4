"""Advice on a prompt: missing facts, size, and how much of it a provider can read from its cache.

Sizes are measured on the sample games, with four bytes counted as a token. A prompt uses a fact at a node if a
different value would change the text. Facts with the same information are alternatives. For example, the question
contains the number, and the history contains everything from which rates are computed. A provider can cache the prefix
that a request shares with the player's previous request. OpenAI caches any common prefix. Anthropic caches whole blocks
up to a marker: the system text and the chapters of the history. Lint measures blocks, because the common prefix is at
least as long.

`prompt_differences` compares two prompts at a position.
"""

import difflib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from statistics import mean
from typing import Any, Final

from jinja2 import Environment, meta, nodes

from dubito.errors import UsageError, one_line
from dubito.game.log import Position
from dubito.llm.prompts import Prompt, RenderedPrompt
from dubito.llm.recording import common_length
from dubito.llm.templates import DESCRIPTION
from dubito.workshop.recordings import RecordedPosition

FIRST_DECISION: Final = 5  # the first of a player's decisions that is checked
# Lower for prompts that ask per turn, since more happens between requests.
_MIN_SHARED: Final = {"node": 0.80, "turn": 0.75}
# Accepted share of requests below it, since with many fast players, news can be most of a request.
_MAX_BELOW: Final = 0.05


@dataclass(frozen=True, slots=True)
class RenderedRequest:
    """A request in a game and the same player's previous request."""

    position: Position
    game: str  # description of the game
    decision: int  # number among this player's requests in this game, from 1
    rendered: RenderedPrompt
    before: RenderedPrompt | None  # None for the player's first request
    least: float  # the share that should match the previous request

    @property
    def bytes(self) -> int:
        return len((self.rendered.system + _user(self.rendered)).encode())

    @property
    def shared(self) -> float:
        """The share of the request's bytes in blocks up to the last marker of the previous request."""
        if self.before is None or not self.keeps_system:
            return 0.0
        same = takewhile(lambda pair: pair[0] == pair[1], zip(self.before.history, self.rendered.history, strict=False))
        blocks = [new for _, new in same]
        if len(blocks) < len(self.before.history):  # the request does not extend to the previous request's last marker
            blocks = []
        return len((self.rendered.system + "".join(blocks)).encode()) / max(1, self.bytes)

    @property
    def keeps_system(self) -> bool:
        return self.before is None or self.rendered.system == self.before.system

    @property
    def location(self) -> str:
        """The request's place, and the line from which it differs from the previous one."""
        decision = f"node {self.position.node}, decision {self.decision} of seat {self.position.seat}"
        place = " ".join(filter(None, (decision, self.game)))
        if self.before is None:
            return f"{place}, the first request"
        name, new, old = "user", _user(self.rendered), _user(self.before)
        if not self.keeps_system:
            name, new, old = "system", self.rendered.system, self.before.system
        head = new.encode()[: common_length(old.encode(), new.encode())].decode("utf-8", "ignore")
        number = head.count("\n")
        line = new.split("\n")[number]
        return f"{place}, from line {number + 1} of the {name} text on: {one_line(line) or '(an empty line)'}"


def first_questions(prompt: Prompt, game: Iterable[RecordedPosition]) -> list[RecordedPosition]:
    """Return the first position of each request, which may contain all questions of a turn."""
    firsts: list[RecordedPosition] = []
    before: Sequence[Position] = ()
    for one in game:
        if one.position not in before[1:]:
            firsts.append(one)
            before = prompt.questions(one.position)
    return firsts


def render_requests(prompt: Prompt, games: Iterable[Iterable[RecordedPosition]]) -> list[RenderedRequest]:
    """Render all requests of these games and pair each with the previous one."""
    rendered_requests, where = [], prompt.game.workshop.describe_setting
    for game in games:
        last: dict[int, RenderedPrompt] = {}
        decisions: dict[int, int] = {}
        for one in first_questions(prompt, game):
            seat = one.position.seat
            decisions[seat] = decisions.get(seat, 0) + 1
            rendered = prompt.render(one.position)
            request = (where(one.position), decisions[seat], rendered, last.get(seat))
            rendered_requests.append(RenderedRequest(one.position, *request, _MIN_SHARED[prompt.description.ask]))
            last[seat] = rendered
    return rendered_requests


def find_system_fault(rendered_requests: Sequence[RenderedRequest]) -> str | None:
    """Return a message if the system text changes within a game."""
    changed = [one for one in rendered_requests if not one.keeps_system]
    if not changed:
        return None
    return (
        f"the system text changes within a game, at {len(changed):,} of {len(rendered_requests):,} requests: a "
        f"provider reads nothing after the change from its cache; the first: {changed[0].location}"
    )


def find_beginning_fault(rendered_requests: Sequence[RenderedRequest]) -> str | None:
    """Return a message if requests have too little in common with previous ones."""
    late = [one for one in rendered_requests if one.decision >= FIRST_DECISION]
    few = [one for one in late if one.shared < one.least]
    if len(few) <= _MAX_BELOW * len(late):
        return None
    worst = min(few, key=lambda one: one.shared)
    return (
        f"too little of each prompt can be cached: {len(few):,} of {len(late):,} requests have less than "
        f"{worst.least:.0%} in common with the player's previous request (at most {_MAX_BELOW:.0%} should, from its "
        f"decision {FIRST_DECISION} on); move text that changes to the end; the lowest share is {worst.shared:.0%}: "
        f"{worst.location}"
    )


def _user(rendered: RenderedPrompt) -> str:
    return "".join(rendered.history) + rendered.user


_BYTES_PER_TOKEN: Final = 4
_MAX_POSITIONS: Final = 3  # tested per node
# Facts that a prompt with several questions can express in its own words.
_QUESTION_FACTS: Final = ("question", "if_true", "if_false")


@dataclass(frozen=True, slots=True)
class Size:
    """The average size of a node's requests."""

    node: str
    requests: int
    bytes: float
    shared: float | None  # share that matches the previous request, from the fifth decision on; may be None

    @property
    def tokens(self) -> float:
        return self.bytes / _BYTES_PER_TOKEN


@dataclass(frozen=True, slots=True)
class Advice:
    """The result of lint."""

    sizes: list[Size]
    findings: list[str]


def lint(prompt: Prompt, games: Sequence[Sequence[RecordedPosition]]) -> Advice:
    """Check a prompt. Raises UsageError if a template fails at a position of the games."""
    rendered_requests = render_requests(prompt, games)
    faults = filter(None, [find_system_fault(rendered_requests), find_beginning_fault(rendered_requests)])
    unused = unused_facts(prompt, prompt.variables)
    findings = [f"facts that no template uses: {', '.join(unused)}"] if unused else []
    sizes, left_out = list[Size](), dict[str, list[str]]()
    for node in [node.name for node in prompt.game.nodes]:
        last_positions = [
            [one.position for one in first_questions(prompt, game) if one.position.node == node][-1:] for game in games
        ]
        tested = [position for last in last_positions for position in last][:_MAX_POSITIONS]
        for fact in facts_left_out(prompt, node, tested) if tested else ():
            left_out.setdefault(fact, []).append(node)
        if group := [one for one in rendered_requests if one.position.node == node]:
            late = [one.shared for one in group if one.decision >= FIRST_DECISION]
            sizes.append(Size(node, len(group), mean(one.bytes for one in group), mean(late) if late else None))
    findings += [f"missing at {', '.join(where)}: {fact}" for fact, where in left_out.items()]
    return Advice(sizes, [*findings, *faults])


def unused_facts(prompt: Prompt, keys: Iterable[str]) -> list[str]:
    """Return unused facts, except those with an alternative that is used."""
    environment = Environment(autoescape=False)  # noqa: S701, it only parses
    used: set[str] = set()
    for name, source in prompt.sources.items():
        if name != DESCRIPTION:
            tree = environment.parse(source)
            used |= meta.find_undeclared_variables(tree)
            if prompt.asks_turn:  # one["question"]
                constants = (item.arg for item in tree.find_all(nodes.Getitem) if isinstance(item.arg, nodes.Const))
                used |= {constant.value for constant in constants if isinstance(constant.value, str)}
    alternatives = {"own_moves": ("history",), **prompt.game.workshop.INSTEAD}
    return [key for key in keys if key not in used and not used.intersection(alternatives.get(key, ()))]


def facts_left_out(prompt: Prompt, node: str, positions: Iterable[Position]) -> list[str]:
    """Return the important facts that the prompt does not use at a node in these positions.

    The game defines which facts are important.
    """
    facts = prompt.game.facts.facts
    turns = [[*map(facts, prompt.questions(position))] for position in positions if position.node == node]
    return [
        group[0]
        for group in prompt.game.workshop.IMPORTANT.get(node, ())
        if not (prompt.asks_turn and group[0] in _QUESTION_FACTS)
        and not any(_depends_on(prompt, turn, fact) for fact in group for turn in turns)
    ]


def _depends_on(prompt: Prompt, turn: Sequence[Mapping[str, Any]], fact: str) -> bool:
    name, _, inner = fact.partition(".")
    others = list[dict[str, object]]()
    for values in turn:
        value = values[name]
        other = [player | {inner: other_value(player[inner])} for player in value] if inner else other_value(value)
        others.append({**values, name: other})
    try:
        return prompt.fill(others[0], turn=others) != prompt.fill(turn[0], turn=turn)
    except UsageError:  # a failure shows that the template uses the fact
        return True


def other_value(value: Any) -> object:
    """Return a different value of the same type."""
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
    texts = list[tuple[str, str, str, str]]()
    for prompt in (one, other):
        rendered = prompt.render(position)
        texts.append((", ".join(prompt.fields), rendered.system, "".join(rendered.history), rendered.user))
    for name, old, new in zip(_PARTS, *texts, strict=True):
        yield from unified_diff(old, new, f"{name} of {one.folder}", f"{name} of {other.folder}")


def unified_diff(old: str, new: str, old_name: str, new_name: str) -> Iterator[str]:
    return difflib.unified_diff(old.split("\n"), new.split("\n"), old_name, new_name, lineterm="")
