"""Helpers for resumed runs: a small run of models that a test interrupts and resumes."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from dubito.experiment.experiment import Experiment
from dubito.experiment.model_players import check_models
from dubito.experiment.progress import ModelProgress
from dubito.experiment.run import RunResult, play
from tests.experiment.kit import means, resolved
from tests.llm.kit import NoWait, contender, small


def models(games: int = 6, **config: Any) -> Experiment:
    both = (contender("one"), contender("two", "house-sharp", "AnthropicBot", prompt="reasoned"))
    return small(*both, games=games, turns=8, **config)


def go(
    of: Experiment, folder: Path, stop_after: int | None = None, watch: ModelProgress | None = None, **calls: Any
) -> RunResult:
    """Continue the run, and stop once this many questions were answered in this call."""
    how = means(folder, game=of.game, **calls)
    watch = watch or NoWait()
    how = replace(how, model_progress=watch)
    if stop_after is not None:
        count = watch.count_outcome

        def counted(outcome: str) -> None:
            count(outcome)
            if sum(watch.outcomes.values()) >= stop_after:
                how.stop.set()

        watch.count_outcome = counted  # type: ignore[method-assign]
    return play(check_models(resolved(of), how.calls), folder, how)


def read_results(folder: Path) -> bytes:
    return (folder / "all_games.yaml").read_bytes()
