"""Helpers for tests of local models: the fake server's log."""

import json
from pathlib import Path
from typing import NamedTuple

from tests.llm.kit import rows


class Call(NamedTuple):
    """A call that the fake server received. `game` is -1 in the preflight, and `known` counts characters."""

    game: int
    slot: int
    size: int
    known: int


def calls_of(run: Path, model: Path) -> list[Call]:
    """Return the calls of a finished run, in the order in which the server answered them."""
    games = dict(rows(run, "SELECT draw, game FROM attempts WHERE game >= 0"))
    lines = map(json.loads, Path(f"{model}.calls").read_text().splitlines())
    return [Call(games.get(each["draw"], -1), each["slot"], each["size"], each["known"]) for each in lines]
