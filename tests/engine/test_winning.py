"""R9-R12: winning, the end of the game, the order of turns and the cap, under both win rules."""

import pytest

from dubito.errors import IllegalOutput
from dubito.games.dubito.engine import Result, State, WinRule
from dubito.games.dubito.events import CardList, CardsPlayedEvent, DiscardEvent, DoubtResolvedEvent, PlayerWonEvent
from tests.engine.helpers import WIN_RULES, hand, position, run

BOTH = pytest.mark.parametrize("win_rule", WIN_RULES)
HARD, SOFT, LOSS, UNFINISHED = Result.HARD_WIN, Result.SOFT_WIN, Result.LOSS, Result.UNFINISHED


def results(game: State) -> list[Result]:
    return [game.result(seat) for seat in range(len(game.hands))]


def test_r9_immediate_the_last_card_wins() -> None:
    """R9: the player wins at the end of the turn. The cards stay, and the next player continues with the number."""
    game = position("AA/23/45/67")
    assert run(game, "AA as 9") == [CardsPlayedEvent(0, 9, 2), PlayerWonEvent(0, 1)]
    data = game.view()
    assert (data.me.id, data.n_players, data.can_doubt) == (1, 3, False)
    assert (data.board_cards, data.current_number, data.n_cards_played, data.streak) == (2, 9, 2, 1)
    assert run(game, "3") == [CardsPlayedEvent(1, 9, 1)]


def test_r9_contested_the_last_card_is_pending() -> None:
    """R9: the player stays seated without cards until the end of the next turn."""
    game = position("AA/23/45/67", "contested")
    assert run(game, "AA as 9") == [CardsPlayedEvent(0, 9, 2)]
    data = game.view()
    assert (data.n_players, data.can_doubt, data.prev.id, data.prev.n_cards) == (4, True, 0, 0)
    assert game.places == [None] * 4


def test_r9_contested_a_play_confirms_the_win() -> None:
    """R9: the next player plays instead of doubting, and its own play can then be doubted."""
    game = position("AA/23/45/67", "contested")
    assert run(game, "AA as 9", "2") == [CardsPlayedEvent(1, 9, 1), PlayerWonEvent(0, 1)]
    data = game.view()
    assert (data.me.id, data.prev.id, data.last_player_id, data.n_players) == (2, 1, 1, 3)


def test_r9_contested_right_doubt_returns_the_pending_winner() -> None:
    """R9: the last play was a bluff, so the player takes the board, stays in the game and has no place."""
    game = position("A/23/45/67", "contested")
    assert run(game, "A as 9", "doubt") == [DoubtResolvedEvent(1, 0, True, CardList([1]), CardList([1]), 9, 0)]
    assert (game.seat, game.n_players, hand(game, 0)) == (1, 4, "A")
    run(game, "2 as 2", "4", "6")
    assert game.places == [None] * 4
    assert (game.seat, game.view().my_n_cards) == (0, 1)
    run(game, "A")
    assert run(game, "3") == [CardsPlayedEvent(1, 2, 1), PlayerWonEvent(0, 1)]


@BOTH
def test_r9_a_hand_emptied_by_discarding_wins_at_once(win_rule: WinRule) -> None:
    """R9: test both rules, for the wrong doubter and for the caught bluffer."""
    game = position("A2/AAA/34/56", win_rule)
    assert run(game, "A as A", "doubt")[1:] == [DiscardEvent(1, 1), PlayerWonEvent(1, 1)]
    game = position("A2/AAA/34/56", win_rule)
    assert run(game, "A as 2", "AA", "doubt")[1:] == [DiscardEvent(1, 1), PlayerWonEvent(1, 1)]


def test_r9_contested_pending_winner_precedes_a_discarder() -> None:
    game = position("A/AAA/34/56", "contested")
    assert run(game, "A as A", "doubt")[1:] == [DiscardEvent(1, 1), PlayerWonEvent(0, 1), PlayerWonEvent(1, 2)]
    assert results(game) == [HARD, SOFT, LOSS, LOSS]


def test_r9_contested_game_ends_before_a_discarder_wins() -> None:
    game = position("A/AAA/34", "contested")
    assert run(game, "A as A", "doubt")[1:] == [DiscardEvent(1, 1), PlayerWonEvent(0, 1)]
    assert (game.over, hand(game, 1), results(game)) == (True, "", [HARD, LOSS, LOSS])


@BOTH
def test_r10_over_with_two_left(win_rule: WinRule) -> None:
    """R10: both lose, whatever they hold. Place 1 is a hard win, places 2 to n - 2 are soft wins."""
    game = position("A/2/3/4/56/78", win_rule)
    run(game, "A as A", "2", "3")
    assert not game.over
    run(game, "4")
    if win_rule == "contested":
        run(game, "5")
    assert game.over
    assert not game.capped
    assert game.places == [1, 2, 3, 4, None, None]
    assert results(game) == [HARD, SOFT, SOFT, SOFT, LOSS, LOSS]


def test_r10_with_three_players_there_is_one_winner() -> None:
    """R10: after the hard win the game is over, and nobody can move."""
    game = position("A/23/45")
    run(game, "A as A")
    assert results(game) == [HARD, LOSS, LOSS]
    for move in ("2", "doubt"):
        with pytest.raises(IllegalOutput, match=r"^the game is over$"):
            run(game, move)


@BOTH
def test_r11_seating_order_after_two_wins_in_a_row(win_rule: WinRule) -> None:
    """R11: the turn skips everyone who has left, including from the last seat to the first."""
    game = position("2A/344/5/6/78/9T", win_rule)
    run(game, "2 as 2", "3", "5", "6", "7")
    assert game.places[2:4] == [1, 2]
    seats = []
    for move in ("9", "A", "4"):
        seats.append(game.seat)
        run(game, move)
    assert [*seats, game.seat] == [5, 0, 1, 4]


def test_r12_the_cap_is_a_thousand_turns() -> None:
    """R12: three players who wrongly doubt every opening pass the same cards round forever."""
    game = position("A2/A3/23")
    while not game.over:
        held = hand(game, game.seat)
        assert game.turns < 1000
        run(game, "doubt" if game.can_doubt else f"{held[0]} as {held[0]}")
    assert (game.turns, game.free_turns, game.capped) == (1000, 0, True)
    assert results(game) == [UNFINISHED] * 3


@BOTH
def test_r12_free_turns_are_not_counted(win_rule: WinRule) -> None:
    """R12: a free turn earned in the last turn is still played; then nobody can move."""
    game = position("A2/345/67", win_rule, max_turns=2)
    run(game, "A as 9", "doubt")
    assert (game.over, game.seat, game.turns, game.free_turns) == (False, 1, 2, 0)
    run(game, "3 as 3")
    assert (game.over, game.capped, game.turns, game.free_turns) == (True, True, 2, 1)
    assert results(game) == [UNFINISHED] * 3
    with pytest.raises(IllegalOutput, match=r"^the game is over$"):
        run(game, "6")
