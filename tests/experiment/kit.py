"""Helpers for experiment tests: the registry, a config as an experiment, a finished run."""

import threading
from functools import cache
from pathlib import Path
from typing import Any

import dubito
from dubito.experiment.call_options import CallOptions
from dubito.experiment.config import parse_config
from dubito.experiment.experiment import Experiment
from dubito.experiment.model_players import check_models
from dubito.experiment.play import ChunkPlayer
from dubito.experiment.resolve import resolve
from dubito.experiment.resolved import ResolvedRun
from dubito.experiment.run import Progress, RunOptions, RunResult, play
from dubito.game.find import DUBITO, Registry, find_bots
from dubito.games.dubito.engine import RESULTS
from dubito.stats.tally import Outcome, unpack_outcome

REPO = Path(dubito.__file__).resolve().parent.parent


@cache
def registry(game: str = DUBITO) -> Registry:
    return find_bots(REPO, game)


def experiment(**config: Any) -> Experiment:
    return resolve(parse_config(config, "test.yaml"), registry(config.get("game", DUBITO))).experiment


def resolved(of: Experiment, bots: Registry | None = None) -> ResolvedRun:
    return ResolvedRun.load(of, bots or registry(of.game))


def outcomes(of: Experiment) -> list[Outcome]:
    return [
        unpack_outcome(row, RESULTS) for row in ChunkPlayer(resolved(of)).play(range(of.deals), lambda: False).outcomes
    ]


def means(
    folder: Path, *, workers: int = 1, progress: Progress = lambda games: None, game: str = DUBITO, **calls: Any
) -> RunOptions:
    """Return the options of a test's run: its cache is next to its folder; no cap and no preflight unless requested."""
    options: dict[str, Any] = {"in_flight": 8, "cache": folder.parent / "cache", "offline": False, "preflight": False}
    options["patience"] = 1e9  # seconds; sleeps of all threads add up in tests
    how = CallOptions(**options | calls)
    return RunOptions(workers, how, threading.Event(), progress)


def play_all(of: Experiment, folder: Path, workers: int = 1, **calls: Any) -> RunResult:
    how = means(folder, workers=workers, **calls)
    return play(check_models(resolved(of), how.calls), folder, how)
