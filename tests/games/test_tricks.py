"""The example of a game with tricks follows its rules, and models, people and reports can use it."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from dubito.errors import IllegalOutput
from dubito.game import RevealEvent, TakeEvent
from dubito.game.find import find_game
from dubito.game.reader import Reader
from dubito.game.streams import DealStreams
from dubito.game.words import Scene, Words
from tests.cli.kit import REPO, Shell
from tests.report.kit import Page

DECK = [f"{rank} of {suit}" for suit in ("clubs", "diamonds", "hearts", "spades") for rank in ("9", "10", "jack")]
DECK += [f"{rank} of {suit}" for suit in ("clubs", "diamonds", "hearts", "spades") for rank in ("queen", "king", "ace")]
RUN = ("run", "--game", "tricks", "--output", "r")


@pytest.fixture(autouse=True)
def tricks(shell: Shell) -> None:
    left = shutil.ignore_patterns("__pycache__")
    shutil.copytree(REPO / "examples" / "games" / "tricks", Path.cwd(), dirs_exist_ok=True, ignore=left)


def deal(trump: str) -> Any:
    """Deal one rank of each suit to each seat: seat 0 has the nines and queens, seat 2 the jacks and aces."""
    game = find_game("tricks", Path.cwd())
    return type(game.deal(game.rules(), 3, DealStreams(0, 0).deck()))(trump, DECK)


def test_check_finds_no_flaws(shell: Shell) -> None:
    assert shell("games", "check", "tricks", "--quick").out.startswith("tricks passed all checks, in ")


def test_pages_play_how_a_trick_is_taken(shell: Shell) -> None:
    """The scene comes from the event's type: the game's teller only draws panels."""
    assert shell("watch", "Greedy", "Lowest", "Greedy", "--game", "tricks", "--save", "t.json").code == 0
    assert shell("share", "t.json").code == 0
    (game,) = Page(Path("game.html")).json
    assert [place for place, turn in enumerate(game["turns"], 1) if "scene" in turn] == [*range(3, 25, 3)]
    for place in range(3, 25, 3):
        scene = game["turns"][place - 1]["scene"]
        assert (scene["call"], scene["known"], scene["stamp"], len(scene["cards"])) == ("Mine!", True, "", 3)
        assert (scene["taker"], scene["pile"]) == (scene["caller"], 0)  # its hand does not grow
        assert game["story"][place - 1].endswith(f"{game['names'][scene['taker']]} wins the trick.")


def test_revealed_lie_is_stamped_and_its_cards_are_taken() -> None:
    words = find_game("tricks", Path.cwd()).words
    lie = RevealEvent(1, ("9 of clubs", "10 of clubs"), wrong=("10 of clubs",))
    stamp, call = words.game.results.lie_words[0], words.CALLS[0]
    assert words.scene([lie, TakeEvent(2, ("9 of clubs", "10 of clubs", "ace of spades"))]) == Scene(
        1, call, lie.cards, ("10 of clubs",), stamp=stamp, bad=True, taker=2, pile=3
    )
    assert words.scene([RevealEvent(1, lie.cards, wrong=())]) == Scene(1, call, lie.cards, stamp="honest")
    assert words.scene([RevealEvent(1, lie.cards)]) == Scene(1, call, lie.cards)  # a discard: nobody takes them
    assert words.scene([]) is None


def test_seats_follow_suit_if_they_can() -> None:
    state = deal("spades")
    state.apply("9 of clubs")
    assert state.view().legal() == ("10 of clubs", "king of clubs")
    with pytest.raises(IllegalOutput, match=r"^a move here is 10 of clubs or king of clubs, and not '10 of hearts'$"):
        state.apply("10 of hearts")
    state.hands[1] = ["10 of hearts", "king of spades"]
    assert state.view().legal() == ("10 of hearts", "king of spades")


@pytest.mark.parametrize(("trump", "winner"), [("spades", 1), ("hearts", 2), ("none", 0)])
def test_highest_trump_wins_or_else_the_highest_card_of_the_suit_that_was_led(trump: str, winner: int) -> None:
    state = deal(trump)
    state.hands = [["9 of clubs"], ["10 of spades"], ["ace of hearts"]]
    for card in ("9 of clubs", "10 of spades", "ace of hearts"):
        *_, last = state.apply(card)
    assert (last.seat, state.seat, state.taken.index(1)) == (winner, winner, winner)


@pytest.mark.parametrize(("taken", "marks"), [([5, 2, 1], [2, 0, 0]), ([4, 0, 4], [1, 0, 1]), ([2, 3, 3], [0, 1, 1])])
def test_most_tricks_win_and_can_be_shared(taken: list[int], marks: list[int]) -> None:
    state = deal("none")
    state.taken = taken
    assert state.ending().marks == marks


def test_models_play_it_and_the_run_verifies(shell: Shell) -> None:
    """The report shows how results vary with the neighbours, although a win can be shared."""
    run = shell(*RUN, "--games", "4", "--contenders", "house:house-random@plain,Greedy", "--report")
    assert run.code == 0, run.err
    assert shell("replay", "r").code == 0


def test_person_is_shown_hand_and_trick() -> None:
    state, words = deal("hearts"), find_game("tricks", Path.cwd()).words
    state.apply("queen of hearts")
    assert words.describe_view(state, 1, Reader(lambda seat: f"Bot {seat}", 1)) == [
        "Trumps: hearts. Tricks: Bot 0 0, you 0, Bot 2 0.",
        "The trick: queen of hearts.",
        "Your hand: 10 of clubs, king of clubs, 10 of diamonds, king of diamonds, 10 of hearts, king of hearts, "
        "10 of spades, king of spades",
    ]


def test_hand_without_attributes_is_shown_by_its_cards_without_words() -> None:
    state = deal("hearts")
    state.hands[0] = ["9 of clubs", "queen of hearts"]
    lines = Words(find_game("tricks", Path.cwd())).describe_view(state, 0, Reader())
    assert "Your hand: 9 of clubs, queen of hearts" in lines
