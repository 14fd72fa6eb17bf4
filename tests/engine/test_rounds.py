"""R3-R8: play, doubt, what is honest, what a doubt does, sets."""

import pytest

from dubito.errors import IllegalOutput
from dubito.games.dubito.cards import JOKER, NUMBERS
from dubito.games.dubito.engine import WinRule, is_honest
from dubito.games.dubito.events import CardsPlayedEvent, DiscardEvent, DoubtResolvedEvent, PlayerWonEvent
from dubito.games.dubito.game import GAME
from tests.engine.helpers import WIN_RULES, cards, hand, output, position, run

BOTH = pytest.mark.parametrize("win_rule", WIN_RULES)


@pytest.mark.parametrize("laid", ["2", "22", "237", "*"])
def test_r3_one_to_three_cards_go_face_down(laid: str) -> None:
    """R3: the cards leave the hand for the board; the table sees number and count only."""
    game = position("*22237/34/56")
    assert run(game, f"{laid} as 9") == [CardsPlayedEvent(0, 9, len(laid))]
    assert game.board == cards(laid)
    assert sorted(hand(game, 0) + laid) == sorted("*22237")
    assert (game.number, game.n_cards_played, game.last_player, game.seat) == (9, len(laid), 0, 1)


@pytest.mark.parametrize("number", NUMBERS)
def test_r3_the_opener_declares_any_number(number: int) -> None:
    """R3: 1 to 13."""
    game = position("23/34/56")
    move = output("2 as A")
    move.number = number
    game.apply(move)
    assert game.turn_data().current_number == number


def test_r3_a_number_that_is_discarded_may_be_declared() -> None:
    """R3: legal when opening, although no card of it is left."""
    game = position("A2/AAA4/34/5")
    run(game, "A as A", "doubt")
    assert 1 not in game.playing_cards
    assert run(game, "3 as A") == [CardsPlayedEvent(2, 1, 1)]


def test_r3_everyone_after_the_opener_claims_his_number() -> None:
    """R3: with None or with the number itself, for the whole round."""
    game = position("27/34/56")
    run(game, "2 as 9")
    assert run(game, "3") == [CardsPlayedEvent(1, 9, 1)]
    assert run(game, "5 as 9") == [CardsPlayedEvent(2, 9, 1)]
    with pytest.raises(IllegalOutput, match=r"^the number of this round is 9; declare it or None$"):
        run(game, "7 as 7")
    assert run(game, "7 as 9")[0] == CardsPlayedEvent(0, 9, 1)
    assert game.board == cards("2357")


@BOTH
def test_r4_no_doubt_on_an_empty_board(win_rule: WinRule) -> None:
    """R4: at the start, and again when a doubt has cleared the board."""
    game = position("27/34/56", win_rule)
    for moves in ((), ("2 as 2", "doubt"), ("5 as 6", "doubt")):
        run(game, *moves)
        data = game.turn_data()
        assert (data.can_doubt, data.last_player_id, data.board_cards) == (False, None, 0)
        with pytest.raises(IllegalOutput, match=r"^there is no doubting on an empty board$"):
            run(game, "doubt")


@BOTH
def test_r4_everyone_may_doubt_the_play_before_his(win_rule: WinRule) -> None:
    """R4: legal when the board is not empty and whoever placed the last cards is in the game."""
    game = position("27/34/56", win_rule)
    for move, seat in (("2 as 9", 0), ("3", 1), ("5", 2)):
        run(game, move)
        data = game.turn_data()
        assert (data.can_doubt, data.last_player_id, data.prev.id) == (True, seat, seat)
    event = run(game, "doubt")[0]
    assert isinstance(event, DoubtResolvedEvent)
    assert (event.doubter_id, event.target_id) == (0, 2)


def test_r4_under_immediate_the_last_player_may_have_left() -> None:
    """R4, R9: then nobody may be doubted, and `prev` is another player."""
    game = position("2/34/56/78")
    run(game, "2 as 9")
    data = game.turn_data()
    assert (data.can_doubt, data.last_player_id, data.prev.id) == (False, 0, 3)
    with pytest.raises(IllegalOutput, match=r"^the player to doubt has left the game$"):
        run(game, "doubt")
    run(game, "3")
    data = game.turn_data()
    assert (data.can_doubt, data.last_player_id, data.prev.id) == (True, 1, 1)


def test_r4_under_contested_a_doubt_on_a_board_is_always_legal() -> None:
    """R4, R9: who has put down its last cards is still seated, and is prev."""
    game = position("2/34/56/78", "contested")
    run(game, "2 as 9")
    data = game.turn_data()
    assert (data.can_doubt, data.last_player_id, data.prev.id) == (True, 0, 0)


@pytest.mark.parametrize(
    ("held", "laid", "lie"),
    [
        *[("7*8", "7", None), ("7*8", "*", None), ("7*8", "7*", None), ("7*8", "8", "chosen"), ("7*8", "*8", "chosen")],
        *[("*89", "*", None), ("*89", "8", "forced"), ("*89", "*8", "forced"), ("889", "89", "forced")],
    ],
)
def test_a_bluff_is_forced_without_the_number_and_by_choice_with_it(held: str, laid: str, lie: str | None) -> None:
    """R5, R22, R25: a joker alone is honest, but who holds only jokers of the number cannot choose to be."""
    game = position(f"72/{held}/56")
    run(game, "7 as 7")
    assert GAME.lie is not None
    assert GAME.lie(game, output(laid)) == lie
    assert GAME.lie(game, output("doubt")) is None


@pytest.mark.parametrize(
    ("laid", "lie"),
    [("7 as 7", None), ("* as 3", None), ("**7 as 7", None), ("7 as 8", "chosen"), ("*78 as 7", "chosen")],
)
def test_who_opens_a_round_bluffs_by_choice(laid: str, lie: str | None) -> None:
    assert GAME.lie is not None
    assert GAME.lie(position("**78/34/56"), output(laid)) == lie


@pytest.mark.parametrize(
    ("laid", "honest"),
    [
        *[("7", True), ("77", True), ("777", True), ("*", True), ("**", True), ("*7", True), ("7*7", True)],
        *[("8", False), ("78", False), ("877", False), ("*8", False), ("8*", False), ("**8", False), ("*78", False)],
    ],
)
def test_r5_honest_is_the_number_or_a_joker(laid: str, honest: bool) -> None:
    """R5: each card; a joker beside a card that does not match is a bluff."""
    assert is_honest(cards(laid), 7) is honest
    game = position(f"{laid}2/34/56")
    event = run(game, f"{laid} as 7", "doubt")[0]
    assert isinstance(event, DoubtResolvedEvent)
    assert event.correct is not honest
    assert game.counts[0].bluffs == (not honest)


def test_r6_a_wrong_doubt() -> None:
    """R6: the jokers of the doubted play leave, older ones and the rest go to the doubter; the next opens."""
    game = position("*93/*29/57/8")
    events = run(game, "*9 as 2", "*2", "doubt")
    assert events == [DoubtResolvedEvent(2, 1, False, (JOKER, 2), (JOKER, 9, 2), 2, 1)]
    assert [hand(game, seat) for seat in range(4)] == ["3", "9", "*2579", "8"]
    assert (game.seat, game.board, game.number) == (3, [], 0)


def test_r6_all_jokers_of_the_doubted_play_leave() -> None:
    game = position("**9/34/57")
    assert run(game, "** as 2", "doubt") == [DoubtResolvedEvent(1, 0, False, (0, 0), (), 2, 2)]
    assert [hand(game, seat) for seat in range(3)] == ["9", "34", "57"]


def test_r6_without_jokers_the_doubter_takes_the_whole_board() -> None:
    game = position("29/228/57")
    assert run(game, "9 as 2", "22", "doubt") == [DoubtResolvedEvent(2, 1, False, (2, 2), (9, 2, 2), 2, 0)]
    assert (hand(game, 2), game.seat) == ("22579", 0)


def test_r7_a_right_doubt() -> None:
    """R7: the bluffer takes the whole board, jokers included, and the doubter plays on the empty board."""
    game = position("*93/*29/57/8")
    events = run(game, "*9 as 2", "*9", "doubt")
    assert events == [DoubtResolvedEvent(2, 1, True, (JOKER, 9), (JOKER, 9, JOKER, 9), 2, 0)]
    assert [hand(game, seat) for seat in range(4)] == ["3", "**299", "57", "8"]
    assert (game.seat, game.board, game.number) == (2, [], 0)


def test_r7_the_free_turn_is_a_turn_of_its_own() -> None:
    """R7, R20: of the same player, who may not doubt; then it is the next one's."""
    game = position("23/45/67")
    run(game, "2 as 9", "doubt")
    data = game.turn_data()
    assert (data.me.id, data.me.turns, data.me.not_first_turns, data.board_cards) == (1, 1, 1, 0)
    assert (game.turns, game.free_turns) == (2, 0)
    run(game, "4 as 4")
    assert (game.seat, game.turns, game.free_turns) == (2, 2, 1)
    assert (game.player_data(1).turns, game.player_data(1).not_first_turns) == (2, 1)


@BOTH
def test_r7_the_free_turn_is_kept_when_the_caught_player_leaves(win_rule: WinRule) -> None:
    """R7: it discards all it holds and has won; the doubter opens, between the nearest seats."""
    game = position("A2/AAA/34/56", win_rule)
    events = run(game, "A as 2", "A", "doubt")
    assert events[1:] == [DiscardEvent(1, 1), PlayerWonEvent(1, 1)]
    data = game.turn_data()
    assert (data.me.id, data.prev.id, data.next.id, data.n_players) == (2, 0, 3, 3)
    run(game, "3 as 3")
    assert (game.seat, game.free_turns) == (3, 1)


@BOTH
def test_r7_no_free_turn_when_the_game_is_over(win_rule: WinRule) -> None:
    """R7, R10: the caught player's leaving ends a game of three."""
    game = position("A2/AAA/34", win_rule)
    run(game, "A as 2", "A", "doubt")
    assert game.over
    assert game.places == [None, 1, None]
    with pytest.raises(IllegalOutput, match=r"^the game is over$"):
        run(game, "3 as 3")


def test_r8_four_of_a_number_are_discarded_on_pick_up() -> None:
    """R8: from the hand that grew; the number is out of the game."""
    game = position("A2/AAA4/34")
    assert run(game, "A as A", "doubt") == [DoubtResolvedEvent(1, 0, False, (1,), (1,), 1, 0), DiscardEvent(1, 1)]
    assert hand(game, 1) == "4"
    assert game.playing_cards == NUMBERS[1:]
    assert game.player_data(1).n_cards == 1


def test_r8_one_event_for_each_set_ascending() -> None:
    """R8: two sets in one pick-up, whatever order the cards lie in."""
    game = position("Q79/777QQQ3/45")
    assert run(game, "Q7 as 2", "Q", "doubt")[1:] == [DiscardEvent(1, 7), DiscardEvent(1, 12)]
    assert hand(game, 1) == "3"
    assert game.playing_cards == (1, 2, 3, 4, 5, 6, 8, 9, 10, 11, 13)


def test_r8_the_bluffer_discards_what_he_takes_back() -> None:
    """R8: whoever lost the doubt is the one whose hand grew."""
    game = position("AAA7/A5/34")
    run(game, "AA as 2", "A")
    assert run(game, "doubt")[1:] == []
    assert hand(game, 1) == "AAA5"
    game = position("A57/AAA4/34")
    events = run(game, "A as 2", "4", "doubt")
    assert events[1:] == [DiscardEvent(1, 1)]
    assert events[0] == DoubtResolvedEvent(2, 1, True, (4,), (1, 4), 2, 0)


def test_r8_three_of_a_number_and_a_joker_are_no_set() -> None:
    """R8: jokers never form a set, nor complete one."""
    game = position("*A2/AA5/34")
    assert len(run(game, "*A as 3", "5", "doubt")) == 1
    assert hand(game, 1) == "*AAA5"
    game = position("**2/5**/34")  # more jokers than any deck has
    assert len(run(game, "** as 3", "5", "doubt")) == 1
    assert hand(game, 1) == "****5"
