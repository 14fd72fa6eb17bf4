"""A run finds its bots, settings and prompts once."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from dubito.experiment.model_players import check_models
from dubito.experiment.resolved import ResolvedRun
from dubito.experiment.run import find_finished_run, play
from dubito.game.find import Registry
from dubito.llm import prompts, settings
from tests.experiment.kit import means, resolved
from tests.llm.kit import contender, small


def _count_calls(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, calls: Counter[str]) -> None:
    original = getattr(owner, name)

    def counted(*arguments: Any) -> Any:
        calls[name] += 1
        return original(*arguments)

    monkeypatch.setattr(owner, name, counted)


def test_each_bot_and_prompt_is_found_once_in_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    of, calls = small(contender("asker")), Counter[str]()
    for owner, name in ((Registry, "find"), (settings, "build_settings"), (prompts, "load_prompt")):
        _count_calls(monkeypatch, owner, name, calls)
    how = means(tmp_path / "run")
    run = check_models(resolved(of), how.calls)
    assert find_finished_run(run, tmp_path / "run") is None
    assert play(run, tmp_path / "run", how).failure is None
    assert calls == {"find": 4, "build_settings": 1, "load_prompt": 1}  # three players and a fallback


def test_checked_run_has_digests_of_prompt_and_fallback(tmp_path: Path) -> None:
    run = check_models(resolved(small(contender("asker"))), means(tmp_path).calls)
    (spec,) = run.experiment.contenders
    model = run.model("asker")
    assert (spec.prompt, spec.fallback) == (model.prompt.digest, model.fallback.digest)
    assert spec == run.players[-1].spec
    assert spec.settings == model.settings.model_dump()
    assert ResolvedRun.load(run.experiment, run.registry).model("asker").settings == model.settings
