"""Small runs of BS with built-in fake models."""

from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from dubito.experiment.config import parse_config
from dubito.experiment.experiment import Experiment
from dubito.experiment.model_players import check_models
from dubito.experiment.resolve import resolve
from dubito.experiment.resolved import ResolvedRun
from dubito.experiment.run import RunResult, play
from dubito.game.find import Registry, find_bots
from tests.experiment.kit import REPO, means
from tests.llm.kit import NoWait, contender

FIELD: Final = ["CalculatingLiar", "ConMan", "Player1", "Player3"]


def registry() -> Registry:
    return find_bots(REPO, "bs")


def short(*contenders: dict[str, Any], games: int = 2, rounds: int = 2, **config: Any) -> dict[str, Any]:
    """Return the config of a few games with at most this many rounds."""
    return {
        "game": "bs",
        "games": games,
        "bots": FIELD,
        "rules": {"max_rounds": rounds},
        "contenders": list(contenders),
        **config,
    }


def both(**more: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    one = contender("careful", "house-careful", prompt="reasoned", **more)
    return one, contender("chance", api="chat", **more)


def experiment(config: dict[str, Any]) -> Experiment:
    return resolve(parse_config(config, "test.yaml"), registry()).experiment


def ran(of: Experiment, folder: Path, **calls: Any) -> RunResult:
    how = replace(means(folder, **calls), model_progress=NoWait())
    return play(check_models(ResolvedRun.load(of, registry()), how.calls), folder, how)
