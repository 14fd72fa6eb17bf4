"""R20-R23: what a player sees, and the three helper questions."""

from functools import partial

import pytest

from dubito.game import Seating, make_player
from dubito.game.streams import DealStreams
from dubito.games.dubito.bot import PlayerAI
from dubito.games.dubito.cards import NUMBERS, HandView, PlayerData, TurnData
from dubito.games.dubito.engine import State
from dubito.games.dubito.events import CardList
from tests.engine.helpers import position, run


def player(game: State) -> PlayerAI:
    streams = DealStreams(0, 0).seat(game.seat)
    return make_player(PlayerAI, Seating(game.seat, 0, 0, streams, partial(HandView, game.hands[game.seat])), {})


def test_r20_the_whole_turn_data_of_a_turn() -> None:
    game = position("A25/*34/567/89")
    run(game, "A as 9", "34", "doubt", "5 as 5", "89")
    assert game.view() == TurnData(
        board_cards=3,
        playing_cards=CardList(NUMBERS),
        current_number=5,
        n_cards_played=2,
        streak=2,
        n_players=3,
        my_n_cards=2,
        me=PlayerData(0, 2, 1, 0, 0, 0, 0),
        prev=PlayerData(2, 2, 2, 1, 1, 0, 0),
        next=PlayerData(1, 4, 1, 1, 0, 0, 1),
        can_doubt=False,
        last_player_id=3,
    )


def test_r21_streak_counts_the_plays_since_the_last_doubt() -> None:
    """R21: the streak counts the whole table's plays, not cards. Every doubt resets it."""
    game = position("AA23J/345/5678")
    seen = []
    for move in ("AA as 9", "3", "56", "2", "doubt", "4 as 4", "7", "doubt", "J as A"):
        seen.append(game.view().streak)
        run(game, move)
    assert seen == [0, 1, 2, 3, 4, 0, 1, 2, 0]
    game = position("A2/34/56")
    run(game, "A as A", "doubt")
    assert game.view().streak == 0


@pytest.mark.parametrize(
    ("held", "move", "answer"),
    [("34", "A as 3", True), ("34", "A as 4", True), ("34", "A as 5", False), ("3*", "A as 5", False)],
)
def test_r22_can_play_truthfully(held: str, move: str, answer: bool) -> None:
    game = position(f"A2/{held}/56")
    run(game, move)
    assert player(game).can_play_truthfully(game.view()) is answer


def test_r22_empty_board_has_no_truthful_play() -> None:
    game = position("*A/34/56")
    assert player(game).can_play_truthfully(game.view()) is False
    assert player(game).prev_player_started_turn(game.view()) is False


def test_r22_prev_player_started_turn() -> None:
    """R22: prev's last cards are the whole board."""
    game = position("AA2/345/567")
    run(game, "AA as 9")
    assert player(game).prev_player_started_turn(game.view()) is True
    run(game, "34")
    assert player(game).prev_player_started_turn(game.view()) is False
    run(game, "doubt", "5 as 5")
    assert player(game).prev_player_started_turn(game.view()) is True


def test_r22_prev_did_not_start_a_departed_players_round() -> None:
    """R22, R4: the cards are the whole board, but prev did not play them."""
    game = position("A/34/56/78")
    run(game, "A as 9")
    assert player(game).prev_player_started_turn(game.view()) is False
    game = position("A/34/56/78", "contested")
    run(game, "A as 9")
    assert player(game).prev_player_started_turn(game.view()) is True


def test_r22_is_first_turn() -> None:
    game = position("A2/34/56")
    assert player(game).is_first_turn(game.view()) is True
    run(game, "A as 9")
    assert player(game).is_first_turn(game.view()) is False


def test_r22_uncertainty_value_is_a_twentieth() -> None:
    assert PlayerAI.uncertainty_value == 0.05


def test_r23_honest_and_dishonest_times_count_for_the_doubted() -> None:
    """R23: the doubter's counts and those of earlier players do not change."""
    game = position("AA2/3345/567")
    run(game, "A as A", "3", "doubt")
    assert [game.counts[seat].dishonest_times for seat in range(3)] == [0, 1, 0]
    assert [game.counts[seat].honest_times for seat in range(3)] == [0, 0, 0]
    run(game, "5 as 5", "A", "doubt", "4 as 4", "doubt")
    assert [game.counts[seat].dishonest_times for seat in range(3)] == [1, 1, 0]
    assert [game.counts[seat].honest_times for seat in range(3)] == [0, 1, 0]
    assert [game.counts[seat].doubts for seat in range(3)] == [0, 1, 2]
