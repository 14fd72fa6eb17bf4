"""What the tests of experiments share: the registry, a config as an experiment, a played run."""

from functools import cache
from pathlib import Path
from typing import Any

import dubito
from dubito.experiment.chunk import ChunkPlayer
from dubito.experiment.config import Experiment, check, resolve
from dubito.experiment.outcome import Outcome, unpack
from dubito.experiment.runner import Run, play
from dubito.experiment.workers import new_stop
from dubito.registry import Registry, find_bots

REPO = Path(dubito.__file__).resolve().parent.parent


@cache
def registry() -> Registry:
    """The bots that came with the project."""
    return find_bots(REPO)


def experiment(**config: Any) -> Experiment:
    """A checked experiment from config keys."""
    return resolve(check(config, "test.yaml"), registry())


def outcomes(of: Experiment) -> list[Outcome]:
    """The outcomes of an experiment of at most one chunk."""
    return [unpack(row) for row in ChunkPlayer(of, registry()).play(0, lambda: False).outcomes]


def played(of: Experiment, folder: Path, workers: int = 1) -> Run:
    """The run of an experiment, played into a folder."""
    return play(
        of,
        registry(),
        folder,
        workers=workers,
        working_directory=REPO,
        stop=new_stop(),
        progress=lambda games: None,
    )
