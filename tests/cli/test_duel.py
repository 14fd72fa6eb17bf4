"""Variants of Dubito in runs: described correctly and replayed."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from dubito.cli.opponents import open_opponents
from dubito.games.dubito.engine import Rules
from dubito.games.dubito.game import GAME
from dubito.games.dubito.words import rule_paragraphs
from tests.cli.kit import Shell

SMALL = ("--duel", "--ranks", "3", "--copies", "3", "--jokers", "0", "--win-rule", "contested", "--max-turns", "20")
RUN = ("run", "--bots", "StefaBot,ClaudeBot", "--games", "12", "--quiet", "--output", "r", *SMALL)


def test_run_states_the_variant_and_can_be_replayed(shell: Shell) -> None:
    result = shell(*RUN, "--contenders", "house:house-sharp@plain,UsualBot")
    assert result.code == 0, result.err
    kept = yaml.safe_load(Path("r/manifest.yaml").read_text())["identity"]
    assert kept["table_sizes"] == [2]
    usual = {"jokers": 0, "win_rule": "contested", "max_turns": 20}
    assert kept["rules"] == usual | {"ranks": 3, "copies": 3, "duel": True}
    assert "identical: 12 games" in shell("replay", "r").out


def test_solved_bot_can_be_an_opponent(shell: Shell) -> None:
    small = ("--duel", "--ranks", "2", "--copies", "2", "--jokers", "0", "--win-rule", "contested", "--max-turns", "2")
    run = ("run", "--bots", "Solved", "--contenders", "StefaBot,MrNoDoubt", "--games", "60", "--quiet")
    result = shell(*run, "--workers", "1", "--output", "r", *small)
    assert result.code == 0, result.err
    assert "Solved: cfr+, 1,000 iterations: nash_conv 0.0" in result.out
    assert "identical: 60 games" in shell("replay", "r").out
    result = shell(*run, "--output", "q")
    needed = "Solved plays duels alone: set `duel`, and `ranks`, `copies` and `max_turns` small enough"
    assert (result.code, result.err) == (2, f"dubito: {needed}\n")
    large = shell(*run, "--output", "q", *small, "--ranks", "13", "--max-turns", "200")
    assert large.err.startswith(f"dubito: {needed} (dubito has more than 2,000 information states")


def test_duel_bot_is_not_offered_at_larger_tables(shell: Shell) -> None:
    with open_opponents(None, None, Path("games"), 1, lambda: False, {}, "dubito") as opponents:
        offered = [choice.name for choice in opponents.choices()]
    assert "Sherlock" in offered
    assert "Solved" not in offered
    with open_opponents(None, ["Solved"], Path("games"), 1, lambda: False, {}, "dubito") as opponents:
        assert opponents.kinds(["Solved"]) == ["hand-written"]


def test_a_prompt_with_rules_of_its_own_is_refused(shell: Shell) -> None:
    result = shell(*RUN, "--contenders", "house:house-sharp@disguised,UsualBot")
    assert result.code == 2
    assert result.err.strip() == (
        "dubito: prompt disguised describes the default rules of dubito, but this game uses others: choose "
        "a prompt that uses the fact rule_text, such as plain"
    )


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        (("--duel", "--table-sizes", "3"), "dubito: --table-sizes: must be at most 2, not 3"),
        (("--table-sizes", "2"), "dubito: --table-sizes: must be at least 3, not 2"),
        (
            ("--ranks", "2", "--copies", "2", "--jokers", "0", "--table-sizes", "5"),
            "dubito: --table-sizes: must be at most 4, not 5",
        ),
        (("--copies", "1"), "dubito: --copies: must be at least 2, not 1"),
    ],
)
def test_invalid_rules_are_reported_in_one_sentence(shell: Shell, flags: tuple[str, ...], sentence: str) -> None:
    result = shell("run", "--bots", "StefaBot", "--games", "2", *flags)
    assert (result.code, result.err.strip()) == (2, sentence)


def test_description_of_a_variant_is_correct() -> None:
    rules = Rules(jokers=0, win_rule="contested", max_turns=8, ranks=2, copies=3, duel=True)
    rules_text = " ".join(rule_paragraphs(rules, 2))
    for words in (
        "three cards of each number from 1 to 2 (1 is the ace) and no joker",
        "the other loses",
        "After 8 turns",
    ):
        assert words in rules_text
    for wrong in ("four", "13", "7s", "both lose", "two players are left", "seat 2"):
        assert wrong not in rules_text


@pytest.mark.parametrize("usage", [{}, {"duel": True}, {"ranks": 5}, {"copies": 2, "ranks": 13}])
def test_only_changed_rules_are_stored(usage: dict[str, Any]) -> None:
    kept = GAME.rules(**usage).model_dump()
    differs = {key: value for key, value in usage.items() if (key, value) != ("ranks", 13)}
    assert kept == {"jokers": 2, "win_rule": "immediate", "max_turns": 1000, **differs}
    assert GAME.rules_of_run(kept) == Rules(**usage)
