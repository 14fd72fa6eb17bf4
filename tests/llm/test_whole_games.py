"""A cap is spent on complete games: a new deal starts only if the rest covers it and the games in progress."""

from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from dubito.experiment.experiment import Experiment
from dubito.experiment.run import RunResult
from dubito.house.server import House
from dubito.llm.budget import Budget, BudgetGuard
from dubito.llm.forecast import ASSUMED_QUESTIONS, Forecast, PastGames
from dubito.llm.prices import Price, Tariff
from dubito.llm.request import Usage
from dubito.store.spend import Caps, Spend
from tests.cli.kit import Shell
from tests.conftest import in_gate
from tests.llm.kit import Script, ask, contender, reply, rows, run_cli, run_games, small

TARIFF = Tariff(Price(1, 1, 1, 1), max_output=1000)
PAST = PastGames({0: 10, 1: 20}, replies=20, spent=Spend(25, 4000, 200))  # 15 questions per game, 1.25 calls per reply

MANY = PastGames(dict.fromkeys(range(12), 15), replies=180, spent=Spend(180, 9000, 900))


def budget(past: PastGames | None = None, **caps: int) -> Budget:
    return Budget(Caps(**caps), lambda why: nullcontext(), forecast=Forecast(past or PastGames()))


def answer_questions(of: Budget, game: int, usage: Usage | None, times: int = 1) -> None:
    """Ask and answer questions of a game. With None, they cost nothing."""
    for number in range(times):
        if usage is not None:
            BudgetGuard(of, TARIFF, Script(reply(usage=usage))).send(ask(number, game=game), 1)
        of.count_question(game)


def test_deal_starts_only_if_deals_in_progress_are_affordable() -> None:
    """A game is expected to take 15 questions of 1.25 calls each."""
    of = budget(PAST, calls=60)
    assert [of.admit([game]) is None for game in (2, 3, 4, 5)] == [True, True, True, False]
    of.end_game(2)
    assert of.admit([5]) is None, "the next game can use what this game did not need"


def test_cost_of_a_deal_includes_all_its_games() -> None:
    of = budget(PAST, calls=40)
    assert of.admit([2, 3, 4]) is not None
    assert of.admit([2, 3]) is None


def test_spent_part_of_a_game_is_not_reserved_again() -> None:
    """Of 15 expected questions ten were asked, so at most half a game remains."""
    of = budget(MANY, calls=24)
    assert of.admit([12]) is None
    assert of.admit([13]) is not None
    answer_questions(of, 12, None, times=10)
    assert of.admit([13]) is None


def test_forecast_is_not_biased_by_short_games_ending_first() -> None:
    of = budget(calls=1000, tokens=10**6)
    assert of.admit(range(10)) is None
    for game in range(10):
        answer_questions(of, game, Usage(1, 0, 0, 1, 0), times=5)
    of.end_game(0)
    needed = [of.admit([game]) is None for game in range(10, 30)]
    assert needed.count(True) == (1000 - 50 - 9 * 45) // 50


def test_restarted_game_needs_its_full_cost() -> None:
    of = budget(MANY, calls=24)
    assert of.admit([12]) is None
    answer_questions(of, 12, None, times=10)
    with of.playing(12, 12):
        assert of.admit([13]) is not None


def test_before_the_first_end_only_affordable_deals_start() -> None:
    of = budget(calls=3 * ASSUMED_QUESTIONS - 1)
    assert of.admit([0]) is None
    assert of.admit([1]) is not None, "without calls there is no estimate"
    answer_questions(of, 0, Usage(1, 0, 0, 1, 0))
    assert of.admit([1]) is None
    assert of.admit([2]) is not None


def test_free_replies_count_for_length_but_not_for_cost() -> None:
    of = budget(calls=1000, tokens=100_000)
    for game in range(3):
        assert of.admit([game]) is None
        assert of.admit([game + 10]) is not None, "without paid calls, one game starts at a time"
        answer_questions(of, game, None, times=20)
        of.end_game(game)
    assert of.admit([3]) is None
    answer_questions(of, 3, Usage(1500, 0, 0, 500, 0))
    admitted = [of.admit([game]) is None for game in (4, 5, 6)]
    assert admitted == [True, False, False], "19 more questions and then 20, with 2,000 tokens each"


def test_recorded_games_start_with_any_budget() -> None:
    of = budget(PAST, calls=0)
    assert of.admit([0, 1]) is None
    assert of.admit([1, 2]) is not None


def test_all_deals_start_without_a_cap() -> None:
    of = budget(PAST)
    assert {of.admit([game]) for game in range(100)} == {None}


def test_budget_message_states_the_cost_of_another_game() -> None:
    reason = budget(PAST, calls=18).admit([2])
    assert (
        reason == "the budget is used up: 0 of 18 calls spent, and the next deal needs up to 19; raise `budget.calls`"
    )


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> RunResult:
    return run_games(two(), tmp_path_factory.mktemp("whole") / "run")


GAMES = 10
BOTS = ["StefaBot", "UsualBot"]


def two() -> Experiment:
    return small(contender("one"), contender("two", "house-sharp"), games=GAMES, turns=10)


MODEL, DEAR = contender("one"), contender("two", "house-sharp", "AnthropicBot")
MIXES: dict[str, dict[str, Any]] = {
    "a model and a bot": {"contenders": [MODEL, "ClaudeBot"]},
    "a model and three bots": {"contenders": ["ClaudeBot", MODEL, "MrDoubt", "RandomBoi"]},
    "two models and a bot": {"contenders": [MODEL, DEAR, "ClaudeBot"]},
    "a model in the field": {"bots": ["StefaBot", "UsualBot", MODEL]},
    "a model in the field, bots as contenders": {"bots": ["StefaBot", MODEL], "contenders": ["ClaudeBot", "MrDoubt"]},
    "a model in both": {"bots": ["StefaBot", MODEL], "contenders": [MODEL, "MrDoubt"]},
}


@pytest.mark.parametrize("in_flight", in_gate([64, 1], 1))
@pytest.mark.parametrize("cap", in_gate([100, 400, 1500], 1))
@pytest.mark.parametrize("mix", in_gate(MIXES, 1))
def test_cap_is_mostly_spent_on_counted_games(tmp_path: Path, mix: str, cap: int, in_flight: int) -> None:
    contenders = MIXES[mix].get("contenders", [])
    of = small(*contenders, games=max(1, len(contenders)) * cap // 4, turns=14, bots=MIXES[mix].get("bots", BOTS))
    run = run_games(of, tmp_path / "run", caps=Caps(calls=cap), in_flight=in_flight)
    assert "raise `budget.calls`" in str(run.failure)
    asked = dict(rows(run.folder, "SELECT game, count(*) FROM attempts WHERE game >= 0 GROUP BY game"))
    uncounted = [game for game in asked if game >= run.tally.games]
    assert len({game // of.games_per_deal for game in uncounted}) <= 2, "only the last open deals are not counted"
    assert sum(count for game, count in asked.items() if game < run.tally.games) > 0.6 * cap


def test_cap_below_the_cost_of_one_game_is_reported(shell: Shell) -> None:
    with House() as house:
        ended = run_cli(shell, contender("one", base_url=house.openai_base_url), games=4, flags=["--budget", "calls=3"])
        assert len(house.calls) == 3
    assert ended.code == 3
    assert "3 of 3 calls spent, and the next call needs up to 1; raise `budget.calls`: it was too small" in ended.err
    assert "; 0 games finished, 0 of them counted, 2 replies saved" in ended.err
