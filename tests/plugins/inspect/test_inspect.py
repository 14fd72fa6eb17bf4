"""A seat as an Inspect task whose model answers over HTTP."""

import gc
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dubito.errors import UsageError
from dubito.game.find import find_games
from dubito.house.core import house_policy
from dubito.house.faults import Faults
from dubito.house.server import House
from tests.cli.kit import Shell
from tests.games.kit import write_kuhn

pytest.importorskip("inspect_ai", reason="inspect_ai is not installed, so no seat was its task: '.[inspect]'")
pytestmark = pytest.mark.filterwarnings("ignore")  # warnings in the library


@pytest.fixture(autouse=True)
def without_unclosed_streams() -> Iterator[None]:
    """Garbage-collect streams that the library leaves open. Their warnings would fail a later test."""
    yield
    with warnings.catch_warnings(action="ignore"):
        gc.collect()


@pytest.fixture(autouse=True)
def kuhn(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    write_kuhn(Path.cwd())
    monkeypatch.setenv("HOUSE_API_KEY", "any")


def evaluate(faults: str = "", games: int = 4, **limits: Any) -> list[Any]:
    """Return the sample for each deal."""
    from inspect_ai import eval as evaluate_task

    policy = house_policy(find_games(Path.cwd()))
    task_args = {"game": "kuhn", "opponents": "Careful", "seed": 3, "games": games}
    with House(policy=policy, faults=Faults.parse(faults) if faults else None) as house:
        model = {"model": "openai-api/house/house-random", "model_base_url": house.base_url("chat")}
        (log,) = evaluate_task("dubito/seat", task_args=task_args, display="none", **model, **limits)
    assert log.status == "success", log.error
    assert [sample.id for sample in log.samples] == [*range(games)]
    return list(log.samples)


def values_of(sample: Any) -> dict[str, float]:
    return dict(sample.scores["score_game"].value)


def test_sample_is_a_deal_with_the_seats_score_and_each_question_is_one_call() -> None:
    samples = evaluate(games=8)
    scores = [values_of(sample)["score"] for sample in samples]
    assert scores == [values_of(sample)["score"] for sample in evaluate(games=8)]
    assert {*scores} <= {0, 0.25, 0.75, 1}
    assert len({*scores}) > 1
    for sample in samples:
        values, calls = values_of(sample), [event for event in sample.events if event.event == "model"]
        assert sample.messages[0].text.startswith("You play Kuhn poker.")
        assert [message.role for message in sample.messages] == ["system", *["user", "assistant"] * len(calls)]
        assert len(calls) == values["decisions"]
        assert all(call.config.response_schema.name == "answer" for call in calls)
        assert sample.scores["score_game"].metadata["outcomes"] == {"model": len(calls)}
        assert (values["by_fallback"], values["asked_again"], values["unfinished"]) == (0, 0, 0)


def test_unusable_replies_are_counted() -> None:
    for sample in evaluate("prose:1"):
        values = values_of(sample)
        assert values["by_fallback"] == values["decisions"] > 0


def test_unfinished_game_scores_zero() -> None:
    for sample in evaluate("prose:1", message_limit=2):
        values = values_of(sample)
        assert (values["score"], values["unfinished"]) == (0, 1)


def test_unknown_opponent_is_one_clear_error() -> None:
    from dubito.plugins.inspect.task import seat

    with pytest.raises(UsageError, match="Carefull"):
        seat(game="kuhn", opponents=["Carefull"])
