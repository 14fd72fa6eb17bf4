"""A person at the terminal: what they read and type."""

import io
import os
import signal
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any, cast

import pytest
from rich.console import Console

from dubito.cli.terminal import TerminalVoice
from dubito.errors import UsageError
from dubito.game.find import find_bots
from dubito.games.dubito.cards import TurnOutput
from dubito.games.dubito.engine import Result
from dubito.games.dubito.game import GAME
from dubito.games.dubito.words import read_move
from dubito.show.person import Sitting, seat_person, set_up
from dubito.web.tables import frame_in_words
from tests.cli.kit import REPO, Shell
from tests.conftest import in_gate
from tests.engine.golden import RECORDS
from tests.play.conftest import Play
from tests.web.kit import a_move, guests_of

SEATED = ("--seed", "4", "--seat", "1")
HAND = "Your hand: 2 2 2 3 5 5 7 7 8 9 10 queen king joker"
# One of these inputs is legal.
WHATEVER = "ace\n2\n3\n4\n5\n6\n7\n8\n9\n10\njack\nqueen\nking\ndoubt\njoker as 7\njoker\n" * 1000
BAD = "from dubito.player import PlayerAI\nclass Bad(PlayerAI):\n    def play(self, p): return list(self.cards)\n"


def test_person_sees_hand_board_and_card_counts(play: Play) -> None:
    result = play(*SEATED, typed="2 2\n")
    assert result.code == 0
    lines = result.out.splitlines()
    assert lines[0] == "Players, in playing order: ClaudeBot, you, AdaptyBoi, StefaBot."
    assert lines[4] == "The cards are dealt: ClaudeBot holds 14, you hold 14, AdaptyBoi holds 13, StefaBot holds 13."
    assert lines[5] == "   1. ClaudeBot plays 3 cards as aces."
    assert lines[7:10] == [
        "Cards held: ClaudeBot 11, you 14, AdaptyBoi 13, StefaBot 13.",
        HAND,
        "Your turn. On the board: 3 of 3 by ClaudeBot, as aces.",
    ]
    assert lines[10] == ">    2. You play 2 cards as aces."
    assert lines[-1] == "You left before the game was over."
    assert result.err == ""


def test_only_the_persons_hand_is_shown(play: Play) -> None:
    result = play(*SEATED, typed="2 2\n")
    assert next(line for line in result.out.splitlines() if line.startswith("Your hand: ")) == HAND
    lines = [line for line in result.out.splitlines() if line[:4].strip().isdecimal() and " who shows " not in line]
    assert lines
    assert all("plays" in line or "doubts" in line or "discards" in line for line in lines)


@pytest.mark.parametrize(
    ("typed", "sentence"),
    [
        ("2 2 2 3", "4 cards were played; play 1 to 3."),
        ("ace", "The hand holds no ace."),
        ("2 as 7", "The number of this round is 1; declare it or None."),
        ("14", "'14' is not a card: type ace, 2 to 10, jack, queen, king, joker, or `doubt`."),
        ("\x1b[31m", "'\\x1b[31m' is not a card: type ace, 2 to 10, jack, queen, king, joker, or `doubt`."),
        ("x" * 5000, f"'{'x' * 19}…' is not a card: type ace, 2 to 10, jack, queen, king, joker, or `doubt`."),
    ],
)
def test_illegal_input_is_explained_and_asked_again(play: Play, typed: str, sentence: str) -> None:
    result = play(*SEATED, typed=f"{typed}\n\n")
    assert result.out.splitlines()[10:] == [
        f"> {sentence}",
        "> > ",
        "You left before the game was over.",
    ]
    assert (result.code, result.err) == (0, "")


def test_undecodable_input_is_asked_again(play: Play) -> None:
    result = play(*SEATED, typed=b"\xff\xfe\n2\n")
    assert "is not a card" in result.out.splitlines()[10]
    assert result.out.splitlines()[11] == ">    2. You play 1 card as aces."


def test_rules_are_shown_on_request(play: Play) -> None:
    result = play(*SEATED, "--win-rule", "contested", "--jokers", "0", typed="?\n")
    assert "- A player who plays their last card waits until the next player's turn ends. " in result.out
    assert " and no joker. All cards are dealt to the 4 players" in result.out
    assert result.out.count("Ctrl-D leaves the table") == 2
    assert play(*SEATED, typed="help\n").out.count("- A hard win scores 1") == 1


def test_quit_leaves_the_table(play: Play) -> None:
    result = play(*SEATED, typed="quit\n2\n")
    assert result.out.splitlines()[-1] == "You left before the game was over."
    assert "You play" not in result.out


def test_a_whole_game_is_played_saved_and_proved(play: Play) -> None:
    result = play(*SEATED, "--save", "game.json", typed=WHATEVER)
    assert result.code == 0, result
    assert any(line.strip() == "record: game.json" for line in result.out.splitlines())
    assert any(
        line.startswith("To play the same cards again: dubito play ClaudeBot AdaptyBoi StefaBot --seed 4")
        for line in result.out.splitlines()
    )
    record = RECORDS.load(Path("game.json").read_text())
    assert list(RECORDS.replay(record)) == record.story
    assert record.players == ["ClaudeBot", "Guest", "AdaptyBoi", "StefaBot"]
    assert (record.seed, record.deal, record.number) == (4, 0, None)
    assert sum(line.count("You play") for line in result.out.splitlines()) == sum(
        line.count("seat 1 plays") for line in record.story
    )


def _typed(sitting: Sitting) -> str:
    """Play a game and return what a reasonable player types."""
    lines = []
    while not sitting.state.over:
        given = None
        if sitting.is_asked:
            move = a_move(asdict(frame_in_words(sitting, 0, None, [])) | {"turn": sitting.state.turns_played})
            line = "doubt" if move.get("doubt") else " ".join(map(str, move["cards"]))
            lines.append(f"{line} as {move['number']}" if "number" in move else line)
            given = read_move(lines[-1], cast(Any, sitting.state).number)
        sitting.step(given)
    return "\n".join(lines)


def test_wins_are_celebrated_by_their_kind(play: Play, tmp_path: Path) -> None:
    seen = set()
    for seed in range(6):
        sitting = seat_person(guests_of(find_bots(tmp_path)), set_up(GAME, ["RandomBoi"] * 4, GAME.rules(), 0, seed), 0)
        out = play(*["RandomBoi"] * 4, "--seed", str(seed), "--seat", "0", typed=_typed(sitting)).out
        result = cast(Any, sitting.state).result(0)
        assert ("\n  *  You win! A hard win: " in out) == (result is Result.HARD_WIN)
        assert (" A soft win: " in out) == (result is Result.SOFT_WIN)
        assert ("\n  *  You lost. You were one of the last two " in out) == (result is Result.LOSS)
        seen.add(result)
    assert len(seen) == 3


def test_loser_of_a_duel_is_named(play: Play) -> None:
    small = ("--duel", "--ranks", "3", "--copies", "2", "--jokers", "0", "--seed", "1", "--seat", "0")
    out = play("ClaudeBot", *small, typed="1\n2\n3\n").out
    assert (
        "\n   4. The game is over; you lose.\n\n"
        "  *  You lost. Your opponent was the first to get rid of all cards.  *\n" in out
    )


def test_missing_seed_is_drawn_and_printed(play: Play) -> None:
    hands = {play("--seat", "0").out for _ in range(2)}
    assert len(hands) == 2


@pytest.mark.parametrize("leaves", in_gate(["Ctrl-C", "Ctrl-D"], 1))
def test_pipe_works_like_a_terminal(tmp_path: Path, leaves: str) -> None:
    command = [sys.executable, "-m", "dubito", "play", *SEATED]
    environment = os.environ | {"PYTHONPATH": str(REPO)}
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command, cwd=tmp_path, env=environment, text=True, stdin=pipe, stdout=pipe, stderr=pipe
    ) as game:
        assert game.stdout is not None
        assert game.stdin is not None
        while not (line := game.stdout.readline()).startswith("Your turn"):
            assert line
        game.stdin.write("2 2\n")
        game.stdin.flush()
        assert game.stdout.readline() == ">    2. You play 2 cards as aces.\n"
        assert next(line for line in game.stdout if line.startswith("Your turn"))
        if leaves == "Ctrl-C":
            game.send_signal(signal.SIGINT)
        out, err = game.communicate()
    if leaves == "Ctrl-C":
        assert (game.returncode, err.strip()) == (130, "dubito: stopped by Ctrl-C")
    else:
        assert (game.returncode, err) == (0, "")
        assert out.endswith("\nYou left before the game was over.\n")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("ClaudeBot",), "dubito: Dubito needs 3 to 8 players, not 2; two players need the `duel` variant\n"),
        (("ClaudeBot", "ClaudBot"), "dubito: unknown player 'ClaudBot'; did you mean 'ClaudeBot'?\n"),
        (("ClaudeBot", "OpenAIBot"), "dubito: OpenAIBot: model: is needed"),
        (("--config", "none.yaml"), "dubito: cannot read none.yaml: No such file or directory\n"),
        (("--seat", "4"), "dubito: seat: 4 is not between 0 and 3\n"),
        (("--seed", "-1"), "dubito: Invalid value for '--seed': "),
        (("--save", "no/such/game.json"), "dubito: cannot save no/such/game.json: the folder no/such does not exist\n"),
    ],
)
def test_mistakes_are_reported_in_one_sentence(play: Play, words: tuple[str, ...], sentence: str) -> None:
    result = play(*words)
    assert (result.code, result.out) == (2, "")
    assert result.err.startswith(sentence)
    assert result.err.count("\n") == 1


def test_failing_bot_is_replaced_and_named_at_the_end(play: Play, shell: Shell) -> None:
    shell.bot("bad.py", BAD)
    result = play("Bad", "StefaBot", "--seed", "1", "--seat", "1", typed=WHATEVER)
    assert result.code == 0
    assert "   1. Bad failed, so RandomBoi's rules played its turn." in result.out.splitlines()
    assert result.err.startswith("Bad (seat 0) failed in game 0, deal 0, turn 1: ")


@pytest.mark.parametrize(
    ("line", "number", "output"),
    [
        ("doubt", 7, TurnOutput(True)),
        ("7 7 joker", 7, TurnOutput(False, None, [7, 7, 0])),
        ("7 7 joker", 0, TurnOutput(False, 7, [7, 7, 0])),
        ("7, king  *", 0, TurnOutput(False, None, [7, 13, 0])),
        ("a j q k", 3, TurnOutput(False, None, [1, 11, 12, 13])),
        ("Ace Jack as QUEENS", 0, TurnOutput(False, 12, [1, 11])),
        ("2 as sixes", 0, TurnOutput(False, 6, [2])),
    ],
)
def test_typed_moves_are_read(line: str, number: int, output: TurnOutput) -> None:
    assert read_move(line, number) == output


@pytest.mark.parametrize("line", ["seven", "7 as", "7 as 14", "7 as 7 7", "as", "-1", "7;8", "d d"])
def test_unreadable_files_are_refused(line: str) -> None:
    with pytest.raises(UsageError, match="is not a card: type"):
        read_move(line, 0)


@pytest.mark.parametrize(
    ("colours", "shown"),
    [
        (False, "Your hand: ace 10 queen joker"),
        (
            True,
            "\x1b[1mYour hand:\x1b[0m \x1b[1;31;47m A \x1b[0m \x1b[1;30;47m 10 \x1b[0m \x1b[1;30;47m Q \x1b[0m "
            "\x1b[1;35;47m ★ \x1b[0m",
        ),
    ],
)
def test_hand_is_drawn_as_cards_in_colour(colours: bool, shown: str) -> None:
    out = io.StringIO()
    console = Console(file=out, force_terminal=True, width=80, no_color=not colours, color_system="standard")
    TerminalVoice(["ClaudeBot"], "bluff", console)("Your hand: ace 10 queen joker")
    assert out.getvalue().rstrip() == shown
