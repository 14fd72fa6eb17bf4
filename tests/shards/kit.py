"""Helpers for shards: short chunks, and functions that play and merge an experiment's shards."""

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from sqlite3 import connect
from typing import Any

from dubito.experiment.experiment import Experiment
from dubito.experiment.shards import cut_shard, merge, read_shards
from tests.llm.kit import run_games


def play_shards(of: Experiment, folder: Path, count: int, **calls: Any) -> list[Path]:
    """Play every shard of an experiment, the last first, and return their folders in that order."""
    folders = [folder / f"{number}-of-{count}" for number in range(count, 0, -1)]
    for number, one in zip(range(count, 0, -1), folders, strict=True):
        calls["cache"] = folder / f"cache-{number}"  # separate caches, as on separate machines
        assert run_games(cut_shard(of, number, count), one, **calls).failure is None
    return folders


def merged(folders: Sequence[Path], folder: Path) -> Path:
    merge(read_shards(folders), folder)
    return folder


def everything_in(folder: Path, *, but: Sequence[str] = ()) -> list[str]:
    with closing(connect(folder / "run.db")) as connection:
        lines = [*connection.iterdump()]
    return [line for line in lines if not line.startswith(tuple(f'INSERT INTO "{table}"' for table in but))]


def read_result_files(folder: Path) -> list[bytes]:
    return [(folder / name).read_bytes() for name in ("all_games.yaml", "manifest.yaml")]
