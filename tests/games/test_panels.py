"""Panels of Dubito: what everyone knows of the table, and the truth."""

from dataclasses import replace
from typing import Any

from dubito.game.events import EVERYTHING
from dubito.game.reader import Reader
from dubito.game.words import Marks, Panel, Play
from dubito.games.dubito.game import GAME
from tests.engine.helpers import output, position


def story(hands: str, *moves: str, **rules: Any) -> list[tuple[list[Panel], Marks]]:
    """Return the panels and marks after each move."""
    game, found = position(hands, **rules), []
    teller: Any = GAME.words.teller(game, Reader())
    for move in map(output, moves):
        seat = game.seat
        teller.describe_move(seat, move, game.apply(move, EVERYTHING))
        found.append((teller.panels(), teller.marks))
    return found


def test_plays_are_on_the_board_until_the_next_play_after_a_doubt() -> None:
    shown = story("A25/346/789", "A as A", "3", "doubt", "7 as 7")
    ace, bluff = Play(0, "1 card as aces", ["ace"], []), Play(1, "1 card as aces", ["3"], ["3"])
    boards = [panels[-1] for panels, _ in shown]
    assert [board.title for board in boards] == ["The board", "The board", "The doubted cards", "The board"]
    assert boards[1].plays == (ace, bluff)
    assert boards[2].plays == (ace, replace(bluff, shown=True))
    assert boards[3].plays == (Play(2, "1 card as 7s", ["7"], []),)
    assert [board.backs for board in boards] == [1, 2, 0, 1]


def test_marks_name_bluffs_doubts_and_mistakes() -> None:
    marks = [mark for _, mark in story("A25/346/789", "A as A", "3", "doubt", "7 as 7", "2", "4", "doubt")]
    assert marks[1:5] == [
        Marks(("bluff",)),
        Marks(("doubt",), catches=True),
        Marks(note="a free turn"),
        Marks(("bluff",)),
    ]
    assert marks[5] == Marks(("bluff",), let_pass="let a bluff pass")  # noqa: S106
    honest = story("A25/346/789", "A as A", "doubt")[-1][1]
    assert honest == Marks(("doubt",), "doubted an honest play")


def test_seats_show_their_number_of_cards_and_their_place() -> None:
    ((before, *_), (after, *_)) = (panels for panels, _ in story("A/23/45/67", "A as A", "2"))
    assert (after.public, after.badge, after.backs) == ("no cards", "place 1", 0)
    assert before == after, "a place is known at the end of the turn"


def test_only_shown_cards_are_known_to_everyone() -> None:
    hidden = Panel("Pile", "", plays=[Play(0, "1 card", ["ace"], ["ace"])])
    assert hidden.known() == ["Pile", "", 0, "", [0, "1 card", 1]]
    shown = Panel("Pile", "", plays=[Play(0, "1 card", ["ace"], ["ace"], shown=True)])
    assert shown.known() == ["Pile", "", 0, "", [0, "1 card", "ace", True]]
    assert Panel("Hand", "1 card", "ace", 0, ["ace"]).known() == ["Hand", "1 card", 0, ""]
