"""What people read about OpenSpiel's games: cards as cards, results in the game's unit, opponents by strength."""

from pathlib import Path

import pytest

from dubito.game.find import find_game
from dubito.game.reader import table_reader
from dubito.plugins.openspiel.state import Entry, SeenEvent

pytest.importorskip("pyspiel")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("seat 0 lays the meld 2c2d2h.", "Seat 0 lays the meld 2♣ 2♦ 2♥."),
        ("seat 1 discards Ts.", "Seat 1 discards 10♠."),
        ("seat 0 draws from the stock.", "Seat 0 draws from the stock."),
    ],
)
def test_cards_of_gin_have_suits(text: str, shown: str) -> None:
    words = find_game("openspiel:gin_rummy", Path.cwd()).words
    assert words.sentence(SeenEvent((Entry(0, text),)), table_reader(["one", "two"])) == shown


@pytest.mark.parametrize(
    ("game", "levels", "default"),
    [
        ("kuhn_poker", [("easy", ["UniformRandom"]), ("hard", ["Solved"])], "Solved"),
        ("gin_rummy", [("easy", ["UniformRandom"]), ("medium", ["SimpleGin"])], "SimpleGin"),
        ("goofspiel", [], "UniformRandom"),
    ],
)
def test_levels_have_an_opponent_that_is_worth_playing(
    game: str, levels: list[tuple[str, list[str]]], default: str
) -> None:
    names = ["FirstLegal", "UniformRandom", *{"kuhn_poker": ["Solved"], "gin_rummy": ["SimpleGin"]}.get(game, [])]
    words = find_game(f"openspiel:{game}", Path.cwd()).words
    assert words.strengths(names) == levels
    assert words.default_bots(names) == [default]
