"""How much of a request is the beginning of the player's request before: that part providers charge less for."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from dubito.errors import one_line
from dubito.facts import Position
from dubito.game_data import GameStartEvent
from dubito.llm.explain import common
from dubito.llm.prompts import Prompt, Rendered
from dubito.workshop.recorded import Recorded

FIRST: Final = 5  # decision of a player from which on it is asked for
_LEAST: Final = 0.75


@dataclass(frozen=True, slots=True)
class Request:
    """One request of a game, beside the player's request before."""

    position: Position
    decision: int  # of this player in this game, from 1
    rendered: Rendered
    before: Rendered | None  # None: it is the player's first

    @property
    def bytes(self) -> int:
        """Its size: the system and the user text."""
        return len(_bytes(self.rendered))

    @property
    def shared(self) -> float:
        """The share of its bytes with which the request before begins too."""
        if self.before is None:
            return 0.0
        return common(_bytes(self.before), _bytes(self.rendered)) / max(1, self.bytes)

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
        position, start = self.position, self.position.events[0]
        assert isinstance(start, GameStartEvent)
        game = f"decision {self.decision} of seat {position.seat} in a game of {len(start.player_ids)}"
        return f"node {position.node}, {game}, {position.rules.win_rule}, {self._parts()}"

    def _parts(self) -> str:
        if self.before is None:
            return "the first"
        name, new, old = "user", self.rendered.user, self.before.user
        if not self.keeps_system:
            name, new, old = "system", self.rendered.system, self.before.system
        head = new.encode()[: common(old.encode(), new.encode())].decode("utf-8", "ignore")
        number = head.count("\n")
        line = new.split("\n")[number]
        return f"from line {number + 1} of the {name} text on: {one_line(line) or '(an empty line)'}"


def requests(prompt: Prompt, games: Iterable[Iterable[Recorded]]) -> list[Request]:
    """All requests of these games, each beside the one before."""
    made = []
    for game in games:
        last: dict[int, Rendered] = {}
        decisions: dict[int, int] = {}
        for one in game:
            seat = one.position.seat
            decisions[seat] = decisions.get(seat, 0) + 1
            rendered = prompt.render(one.position)
            made.append(Request(one.position, decisions[seat], rendered, last.get(seat)))
            last[seat] = rendered
    return made


def system_fault(made: Sequence[Request]) -> str | None:
    """What is wrong if the system text does not stay the same within a game."""
    changed = [one for one in made if not one.keeps_system]
    if not changed:
        return None
    return (
        f"the system text changes within a game, at {len(changed):,} of {len(made):,} requests: a provider reads "
        f"nothing behind the change from its cache; the first: {changed[0].where}"
    )


def beginning_fault(made: Sequence[Request]) -> str | None:
    """What is wrong if requests share too little with the ones before."""
    few = [one for one in made if not one.keeps_beginning]
    if not few:
        return None
    worst = min(few, key=lambda one: one.shared)
    return (
        f"{len(few):,} of {len(made):,} requests share less than {_LEAST:.0%} with the player's request before, from "
        f"his decision {FIRST} on: providers charge less for that part; the least, {worst.shared:.0%}: {worst.where}"
    )


def _bytes(rendered: Rendered) -> bytes:
    return (rendered.system + rendered.user).encode()
