from dubito.game_data import TurnOutput
from dubito.rehearsal import at_turn

HANDS = [[7, 1, 2, 3], [7, 7, 4, 5], [6, 8, 9, 10]]


def test_it_doubts_three_cards() -> None:
    bot, p = at_turn("MyBot", HANDS, [TurnOutput(False, 7, [7, 1, 2])])  # seat 0 puts down three cards as 7s
    assert bot.should_doubt(p)


def test_it_believes_two() -> None:
    bot, p = at_turn("MyBot", HANDS, [TurnOutput(False, 7, [7, 1])])
    assert not bot.should_doubt(p)


def test_its_setting_decides_how_often_it_bluffs() -> None:
    bold, p = at_turn("MyBot", HANDS, [TurnOutput(False, 7, [7, 1])], risk=1.0)
    assert bold.bluff_regular(p)


def test_it_opens_with_what_it_holds_most_of() -> None:
    bot, p = at_turn("MyBot", [[5, 5, 9], [1, 2], [3, 4]])
    assert bot.play(p) == TurnOutput(False, 5, [5, 5])
