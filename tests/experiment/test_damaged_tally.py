"""Damaged sums are reported in one sentence, and nothing is changed."""

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.cli.kit import Shell

WORDS = ("run", "--bots", "StefaBot,RandomBoi", "--table-sizes", "3", "--games", "5", "--output", "r", "--quiet")


def as_json(change: Callable[[Any], object]) -> Callable[[str], str]:
    """Apply a change to the parsed text."""

    def changed(text: str) -> str:
        content = json.loads(text)
        change(content)
        return json.dumps(content)

    return changed


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: text[:-9],
        lambda text: "",
        lambda text: "[]",
        lambda text: "7",
        lambda text: "{}",
        lambda text: "[" * 100_000,
        as_json(lambda sums: sums.pop("seats")),
        as_json(lambda sums: sums.update(more=[])),
        as_json(lambda sums: sums.update(seats=7)),
        as_json(lambda sums: sums["sizes"][0].append([1])),
        as_json(lambda sums: sums["sizes"][0][-1].append(1)),
        as_json(lambda sums: sums["sizes"][0].__setitem__(-1, ["1", 2, 3])),
        as_json(lambda sums: sums["sizes"][0][-1].__setitem__(0, 4)),
    ],
)
def test_damage_is_reported_in_one_sentence(shell: Shell, damage: Callable[[str], str]) -> None:
    assert shell(*WORDS).code == 0
    with closing(sqlite3.connect("r/run.db")) as connection, connection:
        ((sums,),) = connection.execute("SELECT sums FROM tally WHERE chunks = 'all'")
        connection.execute("UPDATE tally SET sums = ?", (damage(sums),))
    before = Path("r/run.db").read_bytes()
    for words in (WORDS, ("report", "r")):
        ended = shell(*words)
        assert (ended.code, ended.err.count("\n")) == (2, 1), ended.err
        assert "r/run.db is damaged: its sums" in ended.err
    assert Path("r/run.db").read_bytes() == before
