"""The result in words agrees with the intervals."""

import re
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import pytest

from dubito.experiment.stored import open_recorded_run
from dubito.game import Measure
from dubito.report.overview import headline
from dubito.report.verdicts import describe_verdict
from dubito.stats.ranking import ranking
from dubito.stats.rates import Rate
from dubito.stats.relation import ComparedPair, Relation
from tests.cli.kit import Shell
from tests.llm.kit import Server, player_at, respond, run_games, small
from tests.report.kit import SCRIPT, data, hand_written

SCORE = Measure("score", "Score", "Score", (2, 1, 0), scale=2)

FALLBACK = "(a bot's answer replaced an unusable one)"


def read_headline(run: Path) -> list[str]:
    with open_recorded_run(run) as source:
        return headline(source)


def verdict(
    difference: Rate, worst: float | None = None, best: float | None = None, share: float = 0.0
) -> ComparedPair:
    low, high = (difference.value or 0.0 if end is None else end for end in (worst, best))
    return ComparedPair(difference, difference.low > 0, low, high, (0.0, share))


def relate(*rates: tuple[float, float, float]) -> Relation:
    """Return players A, B, ... ranked by their rates and intervals."""
    pairs = combinations(range(len(rates)), 2)
    differences = {
        (one, other): Rate(rates[one][0] - rates[other][0], rates[one][1] - rates[other][2], 1) for one, other in pairs
    }
    compared = {
        pair: ComparedPair(rate, rate.low > 0, rate.value or 0, rate.value or 0) for pair, rate in differences.items()
    }
    return Relation("ABCDEF"[: len(rates)], compared, SCORE)


@pytest.mark.parametrize(
    ("rates", "ranks"),
    [
        ([(0.9, 0.8, 1), (0.5, 0.4, 0.6), (0.1, 0, 0.2)], [1, 2, 3]),
        ([(0.5, 0.4, 0.6), (0.45, 0.3, 0.55), (0.1, 0, 0.2)], [1, 1, 3]),
        ([(0.5, 0.45, 0.6), (0.4, 0.3, 0.5), (0.3, 0.2, 0.44)], [1, 1, 2]),
        ([(0.5, 0.2, 0.9), (0.4, 0.1, 0.8)], [1, 1]),
        ([(0.5, 0.2, 0.9)], [1]),
    ],
)
def test_rank_counts_the_better_players(rates: list[tuple[float, float, float]], ranks: list[int]) -> None:
    assert relate(*rates).ranks == ranks


@pytest.mark.parametrize(
    ("rates", "sentence"),
    [
        (
            [(0.9, 0.8, 1), (0.5, 0.4, 0.6), (0.1, 0, 0.2)],
            "A is significantly better than B by 40.0 points of Score [20.0, 100.0] (95 % confidence interval), and "
            "better than C by at least as much.",
        ),
        (
            [(0.9, 0.8, 1), (0.6, 0.55, 0.7), (0.5, 0.4, 0.52), (0.1, 0, 0.2)],
            "A is significantly better than B by 30.0 points of Score [10.0, 100.0] (95 % confidence interval), and "
            "better than everyone else by at least as much.",
        ),
        (
            [(0.9, 0.8, 1), (0.6, 0.55, 0.7), (0.5, 0.1, 0.9)],
            "A is significantly better than B by 30.0 points of Score [10.0, 100.0] (95 % confidence interval); "
            "no significant difference between A and C.",
        ),
        (
            [(0.9, 0.8, 1), (0.5, 0.4, 0.6), (0.5, 0.4, 0.6)],
            "A is significantly better than B by 40.0 points of Score [20.0, 100.0] (95 % confidence interval), and "
            "better than C by at least as much; no significant difference between B and C.",
        ),
        (
            [(0.9, 0.8, 1), (0.85, 0.75, 0.95), (0.5, 0.4, 0.6), (0.1, 0, 0.2)],
            "A and B are significantly better than C by at least 35.0 points of Score [15.0, 100.0] (95 % confidence "
            "interval), and better than D by at least as much; no significant difference between A and B.",
        ),
        ([(0.5, 0.1, 0.9)] * 5, "No significant difference among A, B, C, D and E."),
        ([(0.5, 0.1, 0.9)] * 6, "No significant difference among A, B, C, D and 2 others."),
    ],
)
def test_other_significantly_different_players_are_named(
    rates: list[tuple[float, float, float]], sentence: str
) -> None:
    assert describe_verdict(relate(*rates)) == sentence


def test_everyone_else_means_all_others() -> None:
    """By paired differences C differs significantly from B but not from A, who is ahead of B."""
    wins, does_not = verdict(Rate(0.2, 0.1, 0.3)), verdict(Rate(0.4, -0.1, 0.9))
    pairs = dict.fromkeys(combinations(range(4), 2), wins)
    some = Relation("ABCD", pairs | {(0, 2): does_not}, SCORE)
    assert describe_verdict(some) == (
        "A is significantly better than B by 20.0 points of Score [10.0, 30.0] (95 % confidence interval), and better "
        "than D by at least as much; A is not significantly better than C."
    )


def test_everyone_else_does_not_include_a_player_in_between() -> None:
    """A does not differ significantly from B, who has more points than the others."""
    wins, tie = verdict(Rate(0.4, 0.2, 0.6)), verdict(Rate(0.1, -0.1, 0.3))
    some = Relation("ABCDE", dict.fromkeys(combinations(range(5), 2), wins) | {(0, 1): tie, (1, 2): tie}, SCORE)
    assert describe_verdict(some) == (
        "A is significantly better than C by 40.0 points of Score [20.0, 60.0] (95 % confidence interval), and better "
        "than D and E by at least as much; no significant difference between A and B."
    )


def test_tie_reports_how_many_more_games_would_help() -> None:
    pair = ComparedPair(Rate(0.1, -0.3, 0.5), more_games=1200)
    tied = Relation("AB", {(0, 1): pair}, SCORE)
    assert (
        describe_verdict(tied) == "No significant difference between A and B. "
        "About 1,200 more games would probably settle first place."
    )


def test_returns_are_stated_on_their_scale() -> None:
    returns = replace(relate((3, 2, 4), (-3, -4, -2)), measure=replace(SCORE, name="Return", span=(-13, 13)))
    assert describe_verdict(returns) == (
        "A is significantly better than B by 6.000 Return [4.000, 1.000] (95 % confidence interval)."
    )


def test_headline_margin_matches_the_table(tmp_path: Path) -> None:
    hand_written(tmp_path / "run", games=100, bots=["StefaBot", {"bot": "RandomBoi", "name": SCRIPT}])
    with open_recorded_run(tmp_path / "run") as source:
        first, last = (row.rates["score"] for row in ranking(source.tally, source.names, source.game.results))
        (words,) = read_headline(tmp_path / "run")
    assert first.value is not None
    assert last.value is not None
    ends = [100 * (first.value - last.value), 100 * (first.low - last.high), 100 * (first.high - last.low)]
    value, low, high = (f"{end:.1f}" for end in ends)
    assert words == (
        f"StefaBot is significantly better than {SCRIPT} by {value} points of Score [{low}, {high}] (95 % confidence "
        "interval)."
    )


def test_too_few_games_have_no_comparison(tmp_path: Path) -> None:
    hand_written(tmp_path / "run", games=9)
    assert read_headline(tmp_path / "run") == ["Too few games for a comparison: 9 deals, but at least 10 are needed."]


def test_one_bot_has_no_comparison(tmp_path: Path) -> None:
    hand_written(tmp_path / "run", games=20, bots=["StefaBot"])
    assert read_headline(tmp_path / "run") == ["Only StefaBot played, so there is no comparison."]


def test_model_without_answers_is_reported(tmp_path: Path) -> None:
    with Server(lambda request: respond(request.protocol, "no answer")) as server:
        run_games(small(player_at(server, name="mute", reasks=0), games=6), tmp_path / "run")
    _, *models = read_headline(tmp_path / "run")
    assert models[1:] == [
        f"All answers by mute (model) were fallbacks {FALLBACK}, so this run does not measure the model."
    ]
    assert "usable" not in models[0]


def test_run_from_the_cache_does_not_claim_that_its_models_used_no_tokens(tmp_path: Path) -> None:
    with Server(lambda request: respond(request.protocol, '{"answer": true}')) as server:
        for folder in ("first", "again"):
            run_games(small(player_at(server, name="sure"), games=6), tmp_path / folder)
    _, use = read_headline(tmp_path / "again")
    assert re.match(r"All [1-9]\d* replies are from the cache, so this run called no model and cost nothing\.", use)


def test_overview_has_the_runs_tokens_cost_and_fallbacks(models_run: Path, stating_run: Path) -> None:
    share = next(row["fallback"] for row in data(models_run / "report", "models") if row["fallback"])
    _, use, fallbacks = read_headline(models_run)
    assert use.endswith(" tokens, cost unknown.")
    assert fallbacks == f"Fallbacks {FALLBACK}: {100 * share:.1f} % of the answers by fails {SCRIPT} (model)."
    assert read_headline(stating_run)[-1].endswith(" k tokens, $0.00. Every model answer was usable (no fallbacks).")


def test_duels_and_returns_have_their_own_units(shell: Shell) -> None:
    words = ("run", "--bots", "Medium,Scared", "--game", "defuse", "--games", "400", "--output", "r", "--quiet")
    assert shell(*words).code == 0
    (sentence,) = read_headline(Path("r"))
    assert sentence.startswith("Medium is significantly better than Scared by ")
    assert " points of Wins [" in sentence


@pytest.mark.parametrize(
    ("difference", "limits", "share", "words", "ranks"),
    [
        (
            Rate(0.221, 0.128, 0.314),
            (-0.03, 0.482),
            0.257,
            "A leads B by 22.1 points of Score [12.8, 31.4] (95 % confidence interval), but 25.7 % "
            "of the games of B had fallbacks: counting those games as losses or hard wins gives -3.0 to 48.2, so "
            "there is no winner.",
            [1, 1],
        ),
        (
            Rate(0.221, 0.128, 0.314),
            (0.05, 0.482),
            0.257,
            "A is significantly better than B by 22.1 points of Score [12.8, 31.4] (95 % confidence interval). "
            "25.7 % of the games of B had fallbacks: counting those games as losses or hard wins, the "
            "difference is 5.0 to 48.2 points of Score.",
            [1, 2],
        ),
        (
            Rate(0.221, 0.128, 0.314),
            (-0.03, 0.482),
            0.02,
            "A is significantly better than B by 22.1 points of Score [12.8, 31.4] (95 % confidence interval).",
            [1, 2],
        ),
        (
            Rate(0.021, -0.028, 0.07),
            (-0.03, 0.482),
            0.02001,
            "No significant difference between A and B. 2.001 % of the games of B had fallbacks: counting "
            "those games as losses or hard wins, the difference is -3.0 to 48.2 points of Score.",
            [1, 1],
        ),
    ],
)
def test_above_two_percent_of_fallbacks_the_verdict_gives_worst_and_best_case(
    difference: Rate, limits: tuple[float, float], share: float, words: str, ranks: list[int]
) -> None:
    found = Relation("AB", {(0, 1): verdict(difference, *limits, share)}, SCORE, limits="losses or hard wins")
    assert describe_verdict(found) == words
    assert found.ranks == ranks


def test_one_open_lead_does_not_change_other_ranks() -> None:
    """A and B beat C. A leads B, but fallbacks leave that pair open."""
    wins, is_open = verdict(Rate(0.4, 0.3, 0.5)), verdict(Rate(0.2, 0.1, 0.3), -0.1, 0.5, 0.3)
    some = Relation("ABC", {(0, 1): is_open, (0, 2): wins, (1, 2): wins}, SCORE, limits="losses or hard wins")
    assert some.ranks == [1, 1, 3]
    assert describe_verdict(some) == (
        "A and B are significantly better than C by 40.0 points of Score [30.0, 50.0] (95 % confidence interval); A "
        "leads B by 20.0 points of Score [10.0, 30.0] (95 % confidence interval), but 30.0 % of the games "
        "of B had fallbacks: counting those games as losses or hard wins gives -10.0 to 50.0, so there is no winner."
    )


def test_all_players_are_named_if_every_lead_is_open() -> None:
    is_open = verdict(Rate(0.2, 0.1, 0.3), -0.1, 0.5, 0.3)
    words = describe_verdict(Relation("ABCD", dict.fromkeys(combinations(range(4), 2), is_open), SCORE))
    assert words.count("so there is no winner") == 2
    assert "; no winner among A, B, C and D. " in words
    assert words.endswith("Fallbacks could explain 4 more leads.")
