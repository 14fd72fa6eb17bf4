"""The run folder: free, finished, or refused with what differs; never half made, never overwritten."""

from pathlib import Path
from typing import Any

import pytest

from dubito.errors import RunStopped, UsageError
from dubito.store.folder import create, existing, write_whole
from dubito.store.run_db import Chunk

MANIFEST: dict[str, Any] = {"games": 2, "identity": {"seed": 0, "bots": ["A"]}}


def a_run(folder: Path, games: int = 2) -> None:
    with create(folder, MANIFEST) as db:
        db.add_chunk(Chunk(0, games, 0, [b"\x01a"] * games), "sums")


def test_a_free_folder_is_none_and_a_finished_run_opens(tmp_path: Path) -> None:
    assert existing(tmp_path / "new", MANIFEST) is None
    assert existing(tmp_path, MANIFEST) is None, "an empty folder is free"
    a_run(tmp_path / "deep" / "run")
    db = existing(tmp_path / "deep" / "run", MANIFEST)
    assert db is not None
    with db:
        assert db.sums() == "sums"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"identity": {"seed": 1, "bots": ["A"]}}, "belongs to another run: seed is 0 there and 1 here"),
        ({"identity": {"seed": 0, "bots": ["B"]}}, r"bots is \['A'\] there and \['B'\] here"),
        ({"games": 3}, "holds this run with 2 games, not 3"),
    ],
)
def test_another_run_is_refused_with_the_difference(tmp_path: Path, change: dict[str, Any], words: str) -> None:
    a_run(tmp_path / "run")
    with pytest.raises(UsageError, match=words):
        existing(tmp_path / "run", MANIFEST | change)


def test_an_unfinished_run_is_refused(tmp_path: Path) -> None:
    a_run(tmp_path / "run", games=1)
    with pytest.raises(UsageError, match="holds an unfinished run, 1 of 2 games"):
        existing(tmp_path / "run", MANIFEST)


def test_what_is_no_run_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(UsageError, match="is no run folder"):
        existing(tmp_path, MANIFEST)
    with pytest.raises(UsageError, match="is no run folder"):
        existing(tmp_path / "notes.txt", MANIFEST)
    assert (tmp_path / "notes.txt").read_text() == "mine"


@pytest.mark.parametrize("text", ["{", "- a list", "\x00"])
def test_a_damaged_manifest_is_named(tmp_path: Path, text: str) -> None:
    a_run(tmp_path / "run")
    (tmp_path / "run" / "manifest.yaml").write_text(text)
    with pytest.raises(UsageError, match=r"manifest\.yaml is damaged"):
        existing(tmp_path / "run", MANIFEST)


def test_a_folder_that_cannot_be_made_is_refused_whole(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(UsageError, match=r"cannot write .*file"):
        create(tmp_path / "file" / "run", MANIFEST)
    a_run(tmp_path / "run")
    with pytest.raises(UsageError, match=r"cannot write .*run: File exists"):
        create(tmp_path / "run", MANIFEST)


def test_a_file_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    write_whole(tmp_path / "a.yaml", "old")
    (tmp_path / "a.yaml.part").mkdir()
    with pytest.raises(RunStopped, match=r"cannot write .*a\.yaml"):
        write_whole(tmp_path / "a.yaml", "new")
    assert (tmp_path / "a.yaml").read_text() == "old"
