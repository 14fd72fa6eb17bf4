"""How much of a request a provider can read from its cache: what the player's request before began with as well.

OpenAI's cache takes any common beginning. Anthropic's takes whole blocks up to a mark: the system text and the
chapters of the history. What is measured is the latter, so that it holds at both: the common beginning is no less.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any, Final

from dubito.errors import one_line
from dubito.llm.prompts import Prompt, RenderedPrompt
from dubito.llm.tape import common
from dubito.workshop.parts import part
from dubito.workshop.recordings import RecordedPosition

FIRST: Final = 5  # decision of a player from which on it is asked for
_LEAST: Final = 0.85
_MOST_BELOW: Final = 0.05  # of the requests: with many quick players the news can outweigh what was sent before


@dataclass(frozen=True, slots=True)
class RenderedRequest:
    """One request of a game, beside the player's request before."""

    position: Any  # the game's own kind of `Position`
    game: str  # which it is of, in words, if the game has any
    decision: int  # of this player in this game, from 1
    rendered: RenderedPrompt
    before: RenderedPrompt | None  # None: it is the player's first

    @property
    def bytes(self) -> int:
        """Its size: the system and the user text."""
        return len(_bytes(self.rendered))

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
        """Whether the system text is that of the request before."""
        return self.before is None or self.rendered.system == self.before.system

    @property
    def keeps_beginning(self) -> bool:
        """Whether it shares enough, where that is asked for."""
        return self.decision < FIRST or self.shared >= _LEAST

    @property
    def where(self) -> str:
        """Which request it is, and from which line on it is another than the one before."""
        said = f"node {self.position.node}, decision {self.decision} of seat {self.position.seat}"
        return f"{' '.join(filter(None, (said, self.game)))}, {self._parts()}"

    def _parts(self) -> str:
        if self.before is None:
            return "the first"
        name, new, old = "user", _user(self.rendered), _user(self.before)
        if not self.keeps_system:
            name, new, old = "system", self.rendered.system, self.before.system
        head = new.encode()[: common(old.encode(), new.encode())].decode("utf-8", "ignore")
        number = head.count("\n")
        line = new.split("\n")[number]
        return f"from line {number + 1} of the {name} text on: {one_line(line) or '(an empty line)'}"


def requests(prompt: Prompt, games: Iterable[Iterable[RecordedPosition]]) -> list[RenderedRequest]:
    """All requests of these games, each beside the one before."""
    made, where = [], part(prompt.game, "where", lambda position: "")
    for game in games:
        last: dict[int, RenderedPrompt] = {}
        decisions: dict[int, int] = {}
        for one in game:
            seat = one.position.seat
            decisions[seat] = decisions.get(seat, 0) + 1
            rendered = prompt.render(one.position)
            made.append(RenderedRequest(one.position, where(one.position), decisions[seat], rendered, last.get(seat)))
            last[seat] = rendered
    return made


def system_fault(made: Sequence[RenderedRequest]) -> str | None:
    """What is wrong if the system text does not stay the same within a game."""
    changed = [one for one in made if not one.keeps_system]
    if not changed:
        return None
    return (
        f"the system text changes within a game, at {len(changed):,} of {len(made):,} requests: a provider reads "
        f"nothing behind the change from its cache; the first: {changed[0].where}"
    )


def beginning_fault(made: Sequence[RenderedRequest]) -> str | None:
    """What is wrong if requests share too little with the ones before."""
    late = [one for one in made if one.decision >= FIRST]
    few = [one for one in late if not one.keeps_beginning]
    if len(few) <= _MOST_BELOW * len(late):
        return None
    worst = min(few, key=lambda one: one.shared)
    return (
        f"{len(few):,} of {len(late):,} requests from a player's decision {FIRST} on share less than {_LEAST:.0%} "
        f"with its request before, and at most {_MOST_BELOW:.0%} of them should: providers charge less for the "
        f"system text and what history.jinja tells; the least, {worst.shared:.0%}: {worst.where}"
    )


def _user(rendered: RenderedPrompt) -> str:
    return "".join(rendered.history) + rendered.user


def _bytes(rendered: RenderedPrompt) -> bytes:
    return (rendered.system + _user(rendered)).encode()
