"""The most interesting moments of a report's games, each with a sentence and a link."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Final

from dubito.errors import one_line
from dubito.game import STATED
from dubito.report.tables import Column, ResultTable
from dubito.show.story import count_cards, played_cards

_LONGEST_LIE: Final = "longest run of lies"
_MOST_PICKED_UP: Final = "most cards picked up"
_OPENING_KINDS: Final = (_LONGEST_LIE, _MOST_PICKED_UP)


@dataclass
class Highlights:
    """The biggest highlight of each kind so far. The first one wins ties."""

    lies: str  # the game's word for lies; empty if it has none
    strength: Mapping[str, float]  # value by which players are ranked
    _found: dict[str, tuple[float, str, str]] = field(default_factory=dict)  # by kind: size, text, link

    def scan_game(
        self, game: int, story: Mapping[str, Any], names: Sequence[str], decisions: Iterable[Mapping[str, Any]]
    ) -> None:
        """Search a game for highlights.

        `story` is the viewer's data, and `names` lists the players by seat.
        """
        if self.lies:
            for number, (before, after) in enumerate(pairwise(count_cards(story)), 1):
                for name, had, has in zip(names, before, after, strict=True):
                    text = f"{name} picked up {has - had} cards"
                    self._note(_MOST_PICKED_UP, has - had, text, f"games/{game}.html#turn-{number}")
            row, caught = [0] * len(names), caught_lies(story)
            for number, turn in enumerate(story["turns"], 1):
                seat = turn["seat"]
                if story["lie"] not in turn["marks"]:
                    row[seat] = 0 if played_cards(story, turn) else row[seat]
                    continue
                row[seat] = 0 if number in caught else row[seat] + 1
                text = f"{names[seat]} got away with {row[seat]} {self.lies} in a row"
                self._note(_LONGEST_LIE, row[seat], text, f"games/{game}.html#turn-{number}")
        for one in decisions:
            if one[STATED] is not None and one["answer"] is True and one["truth"] is False:
                answer = f"{names[one['seat']]} answered yes to “{one['question']}”"
                text = f"{answer} with {100 * one[STATED]:.0f} % confidence, but was wrong"
                self._note("most confident mistake", one[STATED], text, f"games/{game}.html#{one['link']}")
        won = {names[seat] for seat in story["winners"]}
        if len(won) == 1 and len({*names}) > 1:
            (name,) = won
            best = max(self.strength.get(other, 0.0) for other in names if other != name)
            ahead = best - self.strength.get(name, 0.0)
            self._note("greatest upset", ahead, f"{name} won against stronger players", f"games/{game}.html")

    def _note(self, kind: str, size: float, text: str, link: str) -> None:
        if size > self._found.get(kind, (0.0,))[0]:
            self._found[kind] = size, text, link

    def table(self) -> ResultTable | None:
        """Return the highlights as a table, or None without highlights."""
        if not self._found:
            return None
        links = [link for _, _, link in self._found.values()]
        columns = [
            Column("highlight", "highlight", "text", [*self._found], links),
            Column(
                "what happened", "what happened", "text", [one_line(text, 200) for _, text, _ in self._found.values()]
            ),
        ]
        return ResultTable("highlights", "Highlights", columns)


def opening(story: Mapping[str, Any]) -> tuple[int, str]:
    """Return the turn at which to open a game, and what happens there.

    This is the first caught lie, or else the biggest highlight, or else the deal.
    """
    lie = story["lie"]
    for caught_at in caught_lies(story).values():
        return caught_at, f"first caught {lie}"
    seen = Highlights(lie, {})
    seen.scan_game(0, story, story["names"], [])
    links = {kind: link for kind, (_, _, link) in seen._found.items() if "#turn-" in link}
    at = next((kind for kind in _OPENING_KINDS if kind in links), "")
    return int(links[at].rpartition("-")[2]) if at else 0, at


def caught_lies(story: Mapping[str, Any]) -> dict[int, int]:
    """Map the turn of each caught lie to the turn in which it is caught."""
    lied_at, caught = 0, {}
    for number, turn in enumerate(story["turns"], 1):
        lied_at = number if story["lie"] in turn["marks"] else lied_at
        if turn.get("caught"):
            caught[lied_at] = number
    return caught
