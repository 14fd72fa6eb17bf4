"""R3-R8: plays, doubts, honesty, the effect of a doubt, and sets."""

import pytest

from dubito.errors import IllegalOutput
from dubito.games.dubito.cards import JOKER, NUMBERS
from dubito.games.dubito.engine import WinRule, is_honest
from dubito.games.dubito.events import CardList, CardsPlayedEvent, DiscardEvent, DoubtResolvedEvent
from dubito.games.dubito.game import GAME
from tests.engine.helpers import WIN_RULES, cards, hand, output, position, run

BOTH = pytest.mark.parametrize("win_rule", WIN_RULES)


@pytest.mark.parametrize("laid", ["2", "22", "237", "*"])
def test_r3_one_to_three_cards_go_face_down(laid: str) -> None:
    """R3: the cards move from the hand to the board; the others see only their number and count."""
    game = position("*22237/34/56")
    assert run(game, f"{laid} as 9") == [CardsPlayedEvent(0, 9, len(laid))]
    assert game.board == cards(laid)
    assert sorted(hand(game, 0) + laid) == sorted("*22237")
    assert (game.number, game.n_cards_played, game.last_player, game.seat) == (9, len(laid), 0, 1)


@BOTH
def test_r4_no_doubt_on_an_empty_board(win_rule: WinRule) -> None:
    """R4: the board is empty at the start and after each doubt."""
    game = position("27/34/56", win_rule)
    for moves in ((), ("2 as 2", "doubt"), ("5 as 6", "doubt")):
        run(game, *moves)
        data = game.view()
        assert (data.can_doubt, data.last_player_id, data.board_cards) == (False, None, 0)
        with pytest.raises(IllegalOutput, match=r"^an empty board has no play to doubt$"):
            run(game, "doubt")


def test_r4_under_immediate_the_last_player_may_have_left() -> None:
    """R4, R9: then nobody can be doubted, and `prev` is another player."""
    game = position("2/34/56/78")
    run(game, "2 as 9")
    data = game.view()
    assert (data.can_doubt, data.last_player_id, data.prev.id) == (False, 0, 3)
    with pytest.raises(IllegalOutput, match=r"^the player to doubt has left the game$"):
        run(game, "doubt")
    run(game, "3")
    data = game.view()
    assert (data.can_doubt, data.last_player_id, data.prev.id) == (True, 1, 1)


@pytest.mark.parametrize(
    ("held", "laid", "lie"),
    [
        *[("7*8", "7", None), ("7*8", "*", None), ("7*8", "7*", None), ("7*8", "8", "chosen"), ("7*8", "*8", "chosen")],
        *[("*89", "*", None), ("*89", "8", "forced"), ("*89", "*8", "forced"), ("889", "89", "forced")],
    ],
)
def test_bluff_is_forced_only_without_the_number(held: str, laid: str, lie: str | None) -> None:
    """R5, R22, R25: a joker alone is honest, but a player without cards of the number cannot choose honesty."""
    game = position(f"72/{held}/56")
    run(game, "7 as 7")
    assert GAME.lie is not None
    assert GAME.lie(game, output(laid)) == lie
    assert GAME.lie(game, output("doubt")) is None


@pytest.mark.parametrize(
    ("laid", "lie"),
    [("7 as 7", None), ("* as 3", None), ("**7 as 7", None), ("7 as 8", "chosen"), ("*78 as 7", "chosen")],
)
def test_bluff_of_an_opener_is_voluntary(laid: str, lie: str | None) -> None:
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
    """R5: all cards must match; a joker next to a card that does not match is a bluff."""
    assert is_honest(cards(laid), 7) is honest
    game = position(f"{laid}2/34/56")
    event = run(game, f"{laid} as 7", "doubt")[0]
    assert isinstance(event, DoubtResolvedEvent)
    assert event.correct is not honest
    assert game.counts[0].bluffs == (not honest)


def test_r6_wrong_doubter_takes_the_cards() -> None:
    """R6: the doubted play's jokers leave the game, the doubter takes the other cards, and the next player opens."""
    game = position("*93/*29/57/8")
    events = run(game, "*9 as 2", "*2", "doubt")
    assert events == [DoubtResolvedEvent(2, 1, False, CardList([JOKER, 2]), CardList([JOKER, 9, 2]), 2, 1)]
    assert [hand(game, seat) for seat in range(4)] == ["3", "9", "*2579", "8"]
    assert (game.seat, game.board, game.number) == (3, [], 0)


def test_r7_caught_bluffer_takes_the_board() -> None:
    """R7: the bluffer takes the whole board, including jokers, and the doubter plays on the empty board."""
    game = position("*93/*29/57/8")
    events = run(game, "*9 as 2", "*9", "doubt")
    assert events == [DoubtResolvedEvent(2, 1, True, CardList([JOKER, 9]), CardList([JOKER, 9, JOKER, 9]), 2, 0)]
    assert [hand(game, seat) for seat in range(4)] == ["3", "**299", "57", "8"]
    assert (game.seat, game.board, game.number) == (2, [], 0)


def test_r7_free_turn_is_a_separate_turn() -> None:
    """R7, R20: the same player moves again and must not doubt; then the next player moves."""
    game = position("23/45/67")
    run(game, "2 as 9", "doubt")
    data = game.view()
    assert (data.me.id, data.me.turns, data.me.not_first_turns, data.board_cards) == (1, 1, 1, 0)
    assert (game.turns, game.free_turns) == (2, 0)
    run(game, "4 as 4")
    assert (game.seat, game.turns, game.free_turns) == (2, 2, 1)
    assert (game.counts[1].turns, game.counts[1].not_first_turns) == (2, 1)


def test_r8_four_of_a_number_are_discarded_on_pick_up() -> None:
    """R8: the set leaves the hand that grew, and its number is out of the game."""
    game = position("A2/AAA4/34")
    assert run(game, "A as A", "doubt") == [
        DoubtResolvedEvent(1, 0, False, CardList([1]), CardList([1]), 1, 0),
        DiscardEvent(1, 1),
    ]
    assert hand(game, 1) == "4"
    assert game.playing_cards == [*NUMBERS[1:]]
    assert game.counts[1].n_cards == 1


def test_r8_joker_does_not_complete_a_set() -> None:
    game = position("*A2/AA5/34")
    assert len(run(game, "*A as 3", "5", "doubt")) == 1
    assert hand(game, 1) == "*AAA5"
    game = position("**2/5**/34")  # more jokers than in any deck
    assert len(run(game, "** as 3", "5", "doubt")) == 1
    assert hand(game, 1) == "****5"
