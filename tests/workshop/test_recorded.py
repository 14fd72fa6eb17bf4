"""Position files with their hidden truth can be read back, and contradictions are rejected."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dubito.errors import UsageError
from dubito.game.position_file import dump_position
from dubito.games.dubito.facts import example_position
from dubito.games.dubito.game import GAME
from dubito.workshop.recordings import RecordedPosition, digest_of_folder, parse_position, read_folder, write_files
from tests.workshop.kit import positions

Damage = Callable[[dict[str, Any]], object]


def test_a_position_without_hidden_truth_is_read_too() -> None:
    position = example_position("C")
    assert parse_position(dump_position(GAME, position), GAME) == RecordedPosition(GAME, position)


DAMAGES: list[tuple[Damage, str]] = [
    (lambda hidden: hidden.pop("source"), "hidden.source: Field required"),
    (lambda hidden: hidden.update(winner=1), "hidden.winner: Unexpected keyword argument"),
    (
        lambda hidden: hidden["source"].update(seat=hidden["source"]["seat"] + 1),
        "hidden.source: the position belongs to",
    ),
    (lambda hidden: hidden["source"].update(deal=-1), "hidden.source.deal: Input should be greater"),
]


@pytest.mark.parametrize(("damage", "words"), DAMAGES)
def test_hidden_truth_that_cannot_be_is_refused(damage: Damage, words: str) -> None:
    one = next(one for one in positions() if one.position.node == "C")
    file = json.loads(one.text)
    damage(file["hidden"])
    with pytest.raises(UsageError, match="this is not a position: hidden") as caught:
        parse_position(json.dumps(file), GAME)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_folder_is_read_by_name_and_a_bad_file_is_named(tmp_path: Path) -> None:
    one, two = positions()[:2]
    write_files({tmp_path / "deep" / "b.json": one.text, tmp_path / "deep" / "a.json": two.text})
    (tmp_path / "deep" / "notes.txt").write_text("nothing")
    found = read_folder(tmp_path / "deep", GAME)
    assert list(found.items()) == [("a.json", two), ("b.json", one)]
    assert digest_of_folder(found) != digest_of_folder({"a.json": one, "b.json": two}), (
        "a trial numbers positions by file name"
    )
    (tmp_path / "deep" / "c.json").write_text("{}")
    with pytest.raises(UsageError, match=r"deep/c\.json: this is not a position"):
        read_folder(tmp_path / "deep", GAME)


def test_folders_that_hold_no_positions_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="has no positions; `dubito prompts record` creates some"):
        read_folder(tmp_path, GAME)
    with pytest.raises(UsageError, match=r"cannot read .*nowhere: No such file or directory"):
        read_folder(tmp_path / "nowhere", GAME)
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match=r"cannot write .*a\.json: File exists"):
        write_files({tmp_path / "file" / "a.json": ""})
