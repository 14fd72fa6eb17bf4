"""Make a shared game smaller: drop the models' texts, the record, and then turns far from the opening view."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import Any, Final

from dubito.report.render import embed_json
from dubito.report.sender import SharedGame
from dubito.report.tables import GamePage
from dubito.show.story import Texts, panel_states


def _with_attempts(story: Mapping[str, Any], **changed: Any) -> Mapping[str, Any]:
    """Return the data with every attempt changed in this way, and without texts that are no longer used."""
    pieces, shared, kept = Texts(), Texts(), Texts()
    pieces.pieces, shared.pieces = story["pieces"], story["shared"]
    rest = Texts()

    def copy_text(runs: list[int] | None, old: Texts, new: Texts) -> list[int] | None:
        return None if runs is None else new.add(old.read(runs))

    if not story["decisions"]:
        return story
    decisions = []
    for decision in story["decisions"]:
        attempts = []
        for attempt in decision["attempts"]:
            one = {**attempt, **changed}
            said = [[role, copy_text(runs, pieces, kept)] for role, runs in one["said"]]
            texts = {key: copy_text(one[key], pieces, kept) for key in ("reply", "raw")}
            system = [copy_text(runs, shared, rest) for runs in one["system"]]
            attempts.append(
                one | texts | {"said": said, "system": system, "rest": copy_text(one["rest"], shared, rest)}
            )
        decisions.append({**decision, "attempts": attempts})
    return {**story, "decisions": decisions, "pieces": kept.pieces, "shared": rest.pieces}


def _without_odds(story: Mapping[str, Any]) -> Mapping[str, Any]:
    return {key: value for key, value in story.items() if key != "odds"}


def _without_decisions(story: Mapping[str, Any]) -> Mapping[str, Any]:
    return {**story, "decisions": [], "pieces": [], "shared": []}


Trim = Callable[[SharedGame], SharedGame]


def _trim_data(trim: Callable[[Mapping[str, Any]], Mapping[str, Any]]) -> Trim:
    return lambda shared: replace(shared, page=replace(shared.page, story=trim(shared.page.story)))


TRIMS: Final[tuple[tuple[str, Trim], ...]] = (  # applied in order, each with a description of what it leaves out
    ("the raw bodies of replies", _trim_data(partial(_with_attempts, raw=None))),
    ("the prompts", _trim_data(partial(_with_attempts, raw=None, system=[], said=[]))),
    ("the winning chances", _trim_data(_without_odds)),
    ("the models' texts", _trim_data(_without_decisions)),
    ("the record", lambda shared: replace(shared, record="")),
)


def longest_page(page: GamePage, most_bytes: int) -> GamePage | None:
    """Return the page with as many turns as fit into this many bytes, or None if fewer than two turns fit."""
    low, high = 0, len(page.story["turns"])
    while low < high:
        middle = (low + high + 1) // 2
        story = with_turns(page, middle).story
        size = len(str(embed_json({key: story[key] for key in ("turns", "story")})).encode())
        low, high = (middle, high) if size <= most_bytes else (low, middle - 1)
    return with_turns(page, low) if low > 1 else None


def with_turns(page: GamePage, count: int) -> GamePage:
    """Return the page with this many turns, centred on the turn at which it opens."""
    story = page.story
    turns, opens = story["turns"], story["opens"]
    first = max(0, min(opens - count // 2 - 1, len(turns) - count))
    window = {"turns": turns[first : first + count], "story": story["story"][first : first + count]}
    panels = next(islice(panel_states(story), first, None))
    return replace(page, story={**story, **window, "panels": panels, "opens": opens - first, "first": first})
