"""Mistakes in a game's code lead to one message with the place, and no player is blamed."""

import re
from itertools import cycle, product
from pathlib import Path

import pytest

from dubito.game import table
from tests.cli.kit import Shell
from tests.conftest import in_gate
from tests.games.kit import exchange, write_kuhn, write_stacks

GAME = Path("games/kuhn/game.py")

FACTS = {  # flaws of `Game`, found when it is loaded: text in the guide, replacement, message
    "long summary": ("two seats, one bet", "two\\nseats", "summary must be one line that describes the game"),
    "fewer than fewest": ("seats = (2, 2)", "seats = (3, 2)", "seats is (3, 2), but must be the minimum and maximum"),
    "lineup": ('"ordered_pairs"', '"pairs"', "lineup is 'pairs', but must be one of uniform, distinct, ordered_pairs"),
    "a rule without default": (
        "    def deal(self",
        """    def rules(self, **settings: Any) -> Any:
        from pydantic import create_model

        return create_model("KuhnRules", chips=(int, ...))(**settings)

    def deal(self""",
        "rules() raises ValidationError: 1 validation error",
    ),
    "no rules": (
        "    def deal(self",
        "    rules = dict\n\n    def deal(self",
        "rules() returns {}, but must return a pydantic model",
    ),
    "no base": (
        "base = KuhnBot",
        "base = KuhnView",
        "base is <class 'games.kuhn.game.KuhnView'>, but must be a subclass",
    ),
    "no nodes": ('(Node("act", "act", Choice(ACTS)),)', "()", "nodes must contain at least one Node"),
    "a node's method": ('Node("act", "act"', 'Node("act", "move"', "node act: KuhnBot has no method move()"),
    "a node's answer": (
        "Choice(ACTS)",
        "ACTS",
        "node act: its answer is ('pass', 'bet'), which is not an Answer",
    ),
    "values": ("(4, 3, 1, 0)", "(4, 3, 1)", "results: measure chips has 3 values for 4 buckets"),
    "values above the scale": (
        "scale=4",
        "scale=3",
        "results: measure chips has a value that is not between 0 and its scale, 3",
    ),
    "a lie's node": (
        'meaning="',
        'lie_nodes=("bluff",), meaning="',
        "results: lie_nodes names 'bluff', which is ",
    ),
    "no turns": (
        'seat_counts=("bets",)',
        'seat_counts=("bets",), game_counts=()',
        "results: game_counts is empty, but must begin with the number of turns",
    ),
}


def mistaken(old: str, new: str) -> None:
    write_kuhn(Path.cwd())
    exchange(GAME, (old, new))


@pytest.mark.parametrize(("old", "new", "sentence"), FACTS.values(), ids=FACTS)
def test_flaw_of_a_game_is_reported_before_the_run_starts(shell: Shell, old: str, new: str, sentence: str) -> None:
    mistaken(old, new)
    result = shell("run", "--game", "kuhn", "--games", "4", "--output", "r")
    assert (result.code, result.out, result.err.count("\n")) == (2, "", 1)
    assert f"games/kuhn/game.py: {sentence}" in result.err
    assert not Path("r").exists()


CODE = {  # flaws in its code, which stop a run in order: place and message
    "apply": (
        "self.acts.append(output)",
        "self.acts.insert(output)",
        "deal 0, turn 1: apply raised TypeError: insert expected 2 arguments, got 1 (kuhn/game.py, line",
    ),
    "view": ("return KuhnView(self.acts)", "return KuhnView()", "turn 1: view raised TypeError: "),
    "over": (
        "tuple(self.acts) in ENDS",
        "self.acts in ENDS",
        "apply raised TypeError: unhashable",
    ),
    "deal": ("chance.sample(range(3), seats)", "chance.sample(range(1), seats)", "turn 0: deal raised ValueError: "),
    "ending": (
        "else int(",
        "else inte(",
        "ending raised NameError: name 'inte' is not defined (kuhn/",
    ),
    "no ending": ("return Ending(False, ", "return (False, ", "ending() returns (False, (2,), ["),
    "no turns": ("(len(self.acts),), marks", "(), marks", "ending() has 0 game_counts, but needs 1 (turns)"),
    "a negative mark": ("[2 + chips", "[chips - 4", "ending() has -"),
    "half a mark": ("[2 + chips", "[2.0 + chips", "ending() has 3.0, but marks and counts are whole numbers from 0"),
    "no such bucket": ("{4: 0, 3: 1,", "{4: 7, 3: 7,", "results: bucket is 7 for mark "),
}


ON_ERROR = ["stop", "fallback"]


@pytest.mark.parametrize(("then", "where"), in_gate(product(ON_ERROR, CODE), zip(cycle(ON_ERROR), CODE)))
def test_code_that_fails_stops_the_run_and_blames_the_game(shell: Shell, then: str, where: str) -> None:
    old, new, sentence = CODE[where]
    mistaken(old, new)
    result = shell("run", "--game", "kuhn", "--games", "8", "--on-bot-error", then, "--output", "r")
    assert result.code == 3
    (line,) = [line for line in result.err.splitlines() if line.startswith("dubito: ")]
    assert line.startswith("dubito: the code of the game kuhn failed in game ")
    assert sentence in line
    assert not re.search("Coin|Careful", line)


def test_invalid_ending_of_a_later_game_is_blamed_on_the_game(shell: Shell) -> None:
    mistaken("[2 + chips", "[(2 if len(self.acts) < 3 else -4) + chips")
    result = shell("run", "--game", "kuhn", "--games", "40", "--output", "r")
    assert result.code == 3
    assert "the code of the game kuhn failed in game " in result.err
    assert "but marks and counts are whole numbers from 0" in result.err


def test_errors_in_questions_are_blamed_on_the_game(shell: Shell) -> None:
    mistaken("self.acts.append(output)", "self.acts.insert(output)")
    result = shell("run", "--game", "kuhn", "--games", "4", "--contenders", "house:house-random@plain", "--output", "r")
    assert result.code == 3
    assert "the code of the game kuhn failed in game 0, deal 0, turn 1: apply raised TypeError: " in result.err


def test_watched_game_reports_its_errors(shell: Shell) -> None:
    mistaken("self.acts.append(output)", "self.acts.insert(output)")
    result = shell("watch", "--game", "kuhn", "Coin", "Careful")
    assert result.code == 3
    assert result.err.startswith(
        "dubito: the code of the game kuhn failed in game 0, deal 0, turn 1: apply raised TypeError"
    )


def test_a_game_without_an_end_stops_the_run(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table, "MAX_MOVES", 1000)
    mistaken("tuple(self.acts) in ENDS", "False")
    result = shell("run", "--game", "kuhn", "--games", "4", "--output", "r")
    assert result.code == 3
    assert (
        "failed in game 0, deal 0, turn 1001: it has not ended after 1,000 moves; limit the number of moves"
        in result.err
    )


@pytest.mark.parametrize(
    "words",
    [
        ("run", "--game", "stacks", "--games", "4", "--contenders", "house:house-random@plain"),
        ("prompts", "show", "plain", "--game", "stacks"),
    ],
)
def test_example_that_is_no_position_is_reported_in_one_sentence(shell: Shell, words: tuple[str, ...]) -> None:
    write_stacks(Path.cwd())
    facts = Path("games/stacks/facts.py")
    text = facts.read_text().replace("    return Position(Rules(), ", "    return (")
    facts.write_text(text)
    result = shell(*words)
    assert (result.code, result.err.count("\n")) == (2, 1)
    assert "facts.py of stacks: example_position returns ('lay', SeatLog(1, [DealEvent(" in result.err
    assert "which is not a Position of dubito.game.log" in result.err


def test_a_fallback_that_fails_is_named(shell: Shell) -> None:
    write_kuhn(Path.cwd())
    for bot in Path("bots/manual/kuhn").iterdir():
        bot.write_text(bot.read_text().replace('"bet"', '"raise"'))
    result = shell("run", "--game", "kuhn", "--games", "40", "--on-bot-error", "fallback", "--output", "r")
    assert result.code == 3
    assert ": its fallback also failed: a move here is pass or bet, and not 'raise'" in result.err


def test_errors_in_words_are_blamed_on_the_game(shell: Shell) -> None:
    write_kuhn(Path.cwd())
    words = Path("games/kuhn/words.py")
    words.write_text(words.read_text().replace("'passes'", "'passes' + 1"))
    result = shell("watch", "--game", "kuhn", "Coin", "Careful")
    assert (result.code, result.err.count("\n")) == (3, 1)
    assert "sentence raised TypeError: " in result.err
    assert "(kuhn/words.py, line " in result.err
