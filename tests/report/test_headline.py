"""The answer of a run in words: true to its intervals, whatever the run."""

from dataclasses import replace
from itertools import combinations
from pathlib import Path

from dubito.experiment.stored import opened_run
from dubito.game import Measure
from dubito.report.overview import comparison_in_words, headline
from dubito.stats.ranking import Order, ranking
from dubito.stats.rates import Rate
from tests.cli.conftest import shell
from tests.cli.kit import Shell
from tests.conftest import cases
from tests.llm.kit import Server, asker, ran, says, small
from tests.report.kit import SCRIPT, data, hand_written

__all__ = ["shell"]
SCORE = Measure("score", "Score", "Score", (2, 1, 0), scale=2)

FALLBACK = "(a bot's answer in the place of one that cannot be used)"


def said(run: Path) -> list[str]:
    with opened_run(run) as source:
        return headline(source)


def order(*rates: tuple[float, float, float]) -> Order:
    """Players A, B, ... by what their rates are, with their intervals."""
    pairs = combinations(range(len(rates)), 2)
    apart = {
        (one, other): Rate(rates[one][0] - rates[other][0], rates[one][1] - rates[other][2], 1) for one, other in pairs
    }
    return Order("ABCDEF"[: len(rates)], apart, SCORE, told={pair for pair, rate in apart.items() if rate.low > 0})


@cases(
    ("rates", "ranks"),
    [
        ([(0.9, 0.8, 1), (0.5, 0.4, 0.6), (0.1, 0, 0.2)], [1, 2, 3]),
        ([(0.5, 0.4, 0.6), (0.45, 0.3, 0.55), (0.1, 0, 0.2)], [1, 1, 3]),
        ([(0.5, 0.45, 0.6), (0.4, 0.3, 0.5), (0.3, 0.2, 0.44)], [1, 1, 2]),
        ([(0.5, 0.2, 0.9), (0.4, 0.1, 0.8)], [1, 1]),
        ([(0.5, 0.2, 0.9)], [1]),
    ],
)
def test_a_rank_counts_who_is_told_apart_as_better(rates: list[tuple[float, float, float]], ranks: list[int]) -> None:
    assert order(*rates).ranks == ranks


@cases(
    ("rates", "sentence"),
    [
        (
            [(0.9, 0.8, 1), (0.5, 0.4, 0.6), (0.1, 0, 0.2)],
            "A beats B by 40.0 points of Score [20.0, 100.0] (95 % interval), and C by at least as much.",
        ),
        (
            [(0.9, 0.8, 1), (0.6, 0.55, 0.7), (0.5, 0.4, 0.52), (0.1, 0, 0.2)],
            "A beats B by 30.0 points of Score [10.0, 100.0] (95 % interval), and everybody else by at least as much.",
        ),
        (
            [(0.9, 0.8, 1), (0.6, 0.55, 0.7), (0.5, 0.1, 0.9)],
            "A beats B by 30.0 points of Score [10.0, 100.0] (95 % interval); A and C are not told apart.",
        ),
        (
            [(0.6, 0.1, 0.9), (0.5, 0.45, 0.6), (0.2, 0.1, 0.3)],
            "B beats C by 30.0 points of Score [15.0, 100.0] (95 % interval); A and B are not told apart.",
        ),
        (
            [(0.9, 0.8, 1), (0.5, 0.4, 0.6), (0.5, 0.4, 0.6)],
            "A beats B by 40.0 points of Score [20.0, 100.0] (95 % interval), and C by at least as much; "
            "B and C are not told apart.",
        ),
        (
            [(0.9, 0.8, 1), (0.85, 0.75, 0.95), (0.5, 0.4, 0.6), (0.1, 0, 0.2)],
            "A and B beat C by at least 35.0 points of Score [15.0, 100.0] (95 % interval), and D by at least as much; "
            "A and B are not told apart.",
        ),
        (
            [(0.9, 0.8, 1), (0.9, 0.8, 1), (0.5, 0.4, 0.6)],
            "A and B beat C by 40.0 points of Score [20.0, 100.0] (95 % interval); A and B are not told apart.",
        ),
        ([(0.5, 0.1, 0.9)] * 5, "A, B, C, D and E are not told apart."),
        ([(0.5, 0.1, 0.9)] * 6, "A, B, C, D and 2 others are not told apart."),
    ],
)
def test_others_are_named_as_far_as_they_are_told_apart(rates: list[tuple[float, float, float]], sentence: str) -> None:
    assert comparison_in_words(order(*rates)) == sentence


def test_everybody_else_is_all_others() -> None:
    """By paired differences C is told apart from B and not from A, who is ahead of B."""
    apart, not_apart = Rate(0.2, 0.1, 0.3), Rate(0.4, -0.1, 0.9)
    pairs = dict.fromkeys(combinations(range(4), 2), apart)
    some = Order("ABCD", pairs | {(0, 2): not_apart}, SCORE, told={*pairs} - {(0, 2)})
    assert comparison_in_words(some) == "A beats B by 20.0 points of Score [10.0, 30.0] (95 % interval)."


def test_how_many_games_would_tell_two_apart_is_said() -> None:
    tied = replace(order((0.5, 0.2, 0.9), (0.4, 0.1, 0.8)), more_games=1200)
    assert (
        comparison_in_words(tied)
        == "A and B are not told apart. About 1,200 more games would probably tell the first two apart."
    )


def test_returns_are_said_on_their_own_scale() -> None:
    returns = replace(order((3, 2, 4), (-3, -4, -2)), measure=replace(SCORE, name="Return", span=(-13, 13)))
    assert comparison_in_words(returns) == "A beats B by 6.000 Return [4.000, 1.000] (95 % interval)."


def test_who_is_told_apart_beats_by_the_points(tmp_path: Path) -> None:
    hand_written(tmp_path / "run", games=100, bots=["StefaBot", {"bot": "RandomBoi", "name": SCRIPT}])
    with opened_run(tmp_path / "run") as source:
        first, last = (row.rates["score"] for row in ranking(source.tally, source.names, source.game.results))
        (words,) = said(tmp_path / "run")
    assert first.value is not None
    assert last.value is not None
    ends = [100 * (first.value - last.value), 100 * (first.low - last.high), 100 * (first.high - last.low)]
    value, low, high = (f"{end:.1f}" for end in ends)
    assert words == f"StefaBot beats {SCRIPT} by {value} points of Score [{low}, {high}] (95 % interval)."


def test_twins_are_not_told_apart(tmp_path: Path) -> None:
    hand_written(tmp_path / "run", games=40, seed=1, bots=["StefaBot", {"bot": "StefaBot", "name": "twin"}])
    (words,) = said(tmp_path / "run")
    assert words in ("StefaBot and twin are not told apart.", "twin and StefaBot are not told apart.")


def test_few_games_compare_nobody(tmp_path: Path) -> None:
    hand_written(tmp_path / "run", games=9)
    assert said(tmp_path / "run") == ["Too few games to compare anyone: 9 deals, at least 10 are needed."]


def test_one_bot_is_compared_with_nobody(tmp_path: Path) -> None:
    hand_written(tmp_path / "run", games=20, bots=["StefaBot"])
    assert said(tmp_path / "run") == ["Only StefaBot played: there is nobody to compare."]


def test_a_model_that_never_answered_is_said_to(tmp_path: Path) -> None:
    with Server(lambda heard: says(heard.protocol, "no answer")) as server:
        ran(small(asker(server, name="mute", reasks=0), games=6), tmp_path / "run")
    _, *models = said(tmp_path / "run")
    assert models[1:] == [
        f"All answers of mute (model) were fallbacks {FALLBACK}: this run says nothing about the model."
    ]
    assert "no fallback" not in models[0]


def test_tokens_cost_and_fallbacks_are_those_of_the_run(models_run: Path, stating_run: Path) -> None:
    share = next(row["fallback"] for row in data(models_run / "report", "models") if row["fallback"])
    _, use, fallbacks = said(models_run)
    assert use.endswith(" tokens, at a cost that is not known.")
    assert fallbacks == f"Fallbacks {FALLBACK} gave {100 * share:.1f} % of the answers of fails {SCRIPT} (model)."
    assert said(stating_run)[-1].endswith(f" k tokens, $0.00, no fallback {FALLBACK}.")


def test_a_game_for_two_and_returns_have_their_own_units(shell: Shell) -> None:
    words = ("run", "--bots", "Medium,Scared", "--game", "defuse", "--games", "400", "--output", "r", "--quiet")
    assert shell(*words).code == 0
    (sentence,) = said(Path("r"))
    assert sentence.startswith("Medium beats Scared by ")
    assert " points of Wins [" in sentence
