"""R20-R23: what a player sees, and the three questions that are answered from it."""

from functools import partial

import pytest

from dubito.game import Seating, make_player
from dubito.game.streams import DealStreams
from dubito.games.dubito.bot import PlayerAI
from dubito.games.dubito.cards import NUMBERS, HandView, PlayerData, TurnData, TurnOutput
from dubito.games.dubito.engine import State, WinRule
from tests.engine.helpers import WIN_RULES, position, run

BOTH = pytest.mark.parametrize("win_rule", WIN_RULES)


def player(game: State) -> PlayerAI:
    streams = DealStreams(0, 0).seat(game.seat)
    return make_player(PlayerAI, Seating(game.seat, 0, 0, streams, partial(HandView, game.hands[game.seat])), {})


def test_r20_the_whole_turn_data_of_a_turn() -> None:
    """R20-R22: every field once."""
    game = position("A25/*34/567/89")
    run(game, "A as 9", "34", "doubt", "5 as 5", "89")
    assert game.turn_data() == TurnData(
        board_cards=3,
        playing_cards=NUMBERS,
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


@BOTH
def test_r20_an_empty_board(win_rule: WinRule) -> None:
    """R20: no number, no last cards, no last player, no plays; at the start and after a doubt."""
    game = position("A2/34/56", win_rule)
    for moves in ((), ("A as 9", "3", "doubt")):
        run(game, *moves)
        data = game.turn_data()
        assert (data.board_cards, data.current_number, data.n_cards_played, data.streak) == (0, 0, 0, 0)
        assert (data.can_doubt, data.last_player_id) == (False, None)


def test_r20_playing_cards_are_the_numbers_not_discarded() -> None:
    """R20: ascending, without the joker, whatever is held or lies on the board."""
    game = position("A2K/AAAKKK3/34/56")
    assert game.turn_data().playing_cards == NUMBERS
    run(game, "AK as 4", "A", "doubt")
    assert game.turn_data().playing_cards == tuple(range(2, 13))


def test_r20_cards_played_is_the_size_of_the_last_play() -> None:
    """R20: whoever placed it, also when it has left."""
    game = position("AAA2/33/456/78")
    for move, size in (("AAA as 9", 3), ("33", 2), ("4", 1)):
        run(game, move)
        assert game.turn_data().n_cards_played == size


def test_r20_counters_exclude_the_turn_that_is_played() -> None:
    """R20: turns, not first turns and doubts are those of finished turns."""
    game = position("A2/34/56")
    assert game.turn_data().me == PlayerData(0, 2, 0, 0, 0, 0, 0)
    run(game, "A as 9")
    assert game.turn_data().me == PlayerData(1, 2, 0, 0, 0, 0, 0)
    assert game.turn_data().prev == PlayerData(0, 1, 1, 0, 0, 0, 0)
    run(game, "3")
    assert game.player_data(1) == PlayerData(1, 1, 1, 1, 0, 0, 0)


def test_r20_a_doubt_and_its_free_turn_are_two_turns() -> None:
    """R20: the doubt is no first turn, the free turn is one."""
    game = position("A2/345/67")
    run(game, "A as 9", "doubt")
    assert game.turn_data().me == PlayerData(1, 3, 1, 1, 1, 0, 0)
    run(game, "3 as 3")
    assert game.player_data(1) == PlayerData(1, 2, 2, 1, 1, 0, 0)


def test_r20_ids_are_seats() -> None:
    """R20: 0 to n - 1, and prev and next are the nearest seats."""
    game = position("A2/34/56/78")
    for move, seats in (("A as 9", (0, 3, 1)), ("3", (1, 0, 2)), ("5", (2, 1, 3)), ("7", (3, 2, 0))):
        data = game.turn_data()
        assert (data.me.id, data.prev.id, data.next.id) == seats
        run(game, move)


def test_r21_streak_counts_the_plays_since_the_last_doubt() -> None:
    """R21: of the whole table, plays and not cards; a doubt of either kind starts again."""
    game = position("AA23J/345/5678")
    seen = []
    for move in ("AA as 9", "3", "56", "2", "doubt", "4 as 4", "7", "doubt", "J as A"):
        seen.append(game.turn_data().streak)
        run(game, move)
    assert seen == [0, 1, 2, 3, 4, 0, 1, 2, 0]
    game = position("A2/34/56")
    run(game, "A as A", "doubt")
    assert game.turn_data().streak == 0


@pytest.mark.parametrize(
    ("held", "move", "answer"),
    [("34", "A as 3", True), ("34", "A as 4", True), ("34", "A as 5", False), ("3*", "A as 5", False)],
)
def test_r22_can_play_truthfully(held: str, move: str, answer: bool) -> None:
    game = position(f"A2/{held}/56")
    run(game, move)
    assert player(game).can_play_truthfully(game.turn_data()) is answer


def test_r22_nothing_is_truthful_on_an_empty_board() -> None:
    game = position("*A/34/56")
    assert player(game).can_play_truthfully(game.turn_data()) is False
    assert player(game).prev_player_started_turn(game.turn_data()) is False


def test_r22_prev_player_started_turn() -> None:
    """R22: prev's last cards are the whole board."""
    game = position("AA2/345/567")
    run(game, "AA as 9")
    assert player(game).prev_player_started_turn(game.turn_data()) is True
    run(game, "34")
    assert player(game).prev_player_started_turn(game.turn_data()) is False
    run(game, "doubt", "5 as 5")
    assert player(game).prev_player_started_turn(game.turn_data()) is True


def test_r22_prev_did_not_start_the_round_of_one_who_has_left() -> None:
    """R22, R4: the cards are the whole board, but not prev's."""
    game = position("A/34/56/78")
    run(game, "A as 9")
    assert player(game).prev_player_started_turn(game.turn_data()) is False
    game = position("A/34/56/78", "contested")
    run(game, "A as 9")
    assert player(game).prev_player_started_turn(game.turn_data()) is True


def test_r22_is_first_turn() -> None:
    """R22: the board is empty."""
    game = position("A2/34/56")
    assert player(game).is_first_turn(game.turn_data()) is True
    run(game, "A as 9")
    assert player(game).is_first_turn(game.turn_data()) is False


def test_r22_uncertainty_value() -> None:
    assert PlayerAI.uncertainty_value == 0.05


def test_r23_honest_and_dishonest_times_count_for_the_doubted() -> None:
    """R23: nobody else's; not the doubter's, not those of who played before."""
    game = position("AA2/3345/567")
    run(game, "A as A", "3", "doubt")
    assert [game.player_data(seat).dishonest_times for seat in range(3)] == [0, 1, 0]
    assert [game.player_data(seat).honest_times for seat in range(3)] == [0, 0, 0]
    run(game, "5 as 5", "A", "doubt", "4 as 4", "doubt")
    assert [game.player_data(seat).dishonest_times for seat in range(3)] == [1, 1, 0]
    assert [game.player_data(seat).honest_times for seat in range(3)] == [0, 1, 0]
    assert [game.player_data(seat).doubts for seat in range(3)] == [0, 1, 2]


def test_r23_immediate_who_played_before_a_winner_is_not_doubted() -> None:
    """R23, R4: the reference counted such a doubt against the innocent seat before it."""
    game = position("A2/3/456/78")
    run(game, "A as 9", "3", "4")
    game.apply(TurnOutput(True))
    assert [game.player_data(seat).dishonest_times for seat in range(4)] == [0, 0, 1, 0]


def test_r31_what_the_game_counts_for_each_seat() -> None:
    """R5, R31: plays, cards, bluffs, successful doubts."""
    game = position("AAJ2/3345/567")
    run(game, "A2 as A", "3", "doubt", "5 as 5", "A", "4", "doubt", "6 as 7", "doubt")
    counts = [(c.play_turns, c.cards_played, c.bluffs, c.successful_doubts) for c in game.counts]
    assert counts == [(2, 3, 2, 1), (2, 2, 2, 0), (2, 2, 1, 2)]
