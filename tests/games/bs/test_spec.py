"""BS in the harness: rules, JSON, models' answers, and buckets."""

import json
from random import Random
from typing import Any

import pytest
from pydantic import ValidationError

from dubito.errors import IllegalOutput, UsageError
from dubito.games.bs.cards import Card, HandView
from dubito.games.bs.engine import State
from dubito.games.bs.game import GAME
from dubito.games.bs.knowledge import BSRules
from tests.games.bs.kit import deal_game, turn, with_hands


def test_the_rules_are_their_defaults_or_more_rounds() -> None:
    game = GAME.deal(BSRules(), 4, Random(0))
    assert isinstance(game, State)
    assert (game.max_rounds, BSRules(max_rounds=7).max_rounds) == (1000, 7)


@pytest.mark.parametrize("rules", [{"max_rounds": 0}, {"max_rounds": "7"}, {"first_number": "carry"}])
def test_other_rules_are_refused(rules: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        BSRules(**rules)


def test_applied_rules_and_outputs_cannot_be_changed() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        BSRules().max_rounds = 7
    game = deal_game()
    play = game.hands[0].cards[:2]
    copy = game.copy_of(play)
    play.clear()
    assert copy == game.hands[0].cards[:2]


def test_a_deal_of_three_is_refused() -> None:
    with pytest.raises(UsageError, match="BS needs 4 players, not 3"):
        GAME.deal(BSRules(), 3, Random(0))


def test_deal_is_stored_as_its_hands() -> None:
    game = deal_game(2)
    written = json.loads(json.dumps(GAME.deal_to_json(game)))
    assert [[Card(*divmod(place, 4)) for place in hand] for hand in written["hands"]] == [h.cards for h in game.hands]


@pytest.mark.parametrize("output", [True, False, [Card(3, 0), Card(12, 3)], (Card(0, 0),)])
def test_outputs_come_back_from_json(output: Any) -> None:
    back = GAME.output_from_json(json.loads(json.dumps(GAME.output_to_json(output))))
    assert back == (output if isinstance(output, bool) else list(output))
    assert type(back) in (bool, list)


def test_numbers_of_a_model_become_the_first_matching_cards() -> None:
    cards = HandView(with_hands([5, 0, 5, 3, 5], [], [], []).hands[0])
    assert GAME.output_of("cards", [5, 3, 5], cards) == [Card(5, 0), Card(5, 1), Card(3, 0)]
    assert GAME.output_of("cards", [], cards) == []
    assert GAME.output_of("bs", True, cards) is True


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        ([0, 0], "the hand holds 1 card of number 0, not 2"),
        ([5, 5, 5, 5], "the hand holds 3 cards of number 5, not 4"),
        ([7], "the hand holds no card of number 7; play cards that it holds"),
        ([3, 7, 7], "the hand holds no card of number 7; play cards that it holds"),
    ],
)
def test_more_cards_than_held_are_refused(answer: list[int], sentence: str) -> None:
    cards = HandView(with_hands([5, 0, 5, 3, 5], [], [], []).hands[0])
    with pytest.raises(IllegalOutput) as caught:
        GAME.output_of("cards", answer, cards)
    assert str(caught.value) == sentence


def test_a_game_is_a_win_a_loss_or_unfinished() -> None:
    won = with_hands([5], [1], [2], [3])
    turn(won, won.hands[0].cards[:])
    forfeited = deal_game()
    forfeited.forfeit(3)
    assert [buckets(game) for game in (won, forfeited)] == [["wins"] + ["losses"] * 3, ["unfinished"] * 4]
    assert GAME.results.measures[0].values == (1, 0, 0)
    assert GAME.results.chance_level(4) == {"wins": 0.25}


def buckets(game: State) -> list[str]:
    ending = game.ending()
    return [GAME.results.buckets[GAME.results.bucket(mark, ending.capped)] for mark in ending.marks]


def test_habits_are_ratios_of_existing_counts() -> None:
    ending = deal_game().ending()
    assert [len(counts) for counts in ending.counts] == [len(GAME.results.seat_counts)] * 4
    assert len(ending.game_counts) == len(GAME.results.game_counts)
    for habit in GAME.results.habits:
        assert {habit.count, habit.of} <= {*GAME.results.seat_counts}
    assert [getattr(GAME.base, node.method).__name__ for node in GAME.nodes] == ["request_cards", "bs"]


@pytest.mark.parametrize(
    ("hand", "played", "lie"),
    [
        *[([0, 0, 5], [0], None), ([0, 0, 5], [0, 5], "chosen"), ([0, 0, 5], [5], "chosen")],
        *[([4, 5], [5], "forced"), ([4, 5], [4, 5], "forced")],
    ],
)
def test_lie_is_forced_if_no_card_of_the_number_is_held(hand: list[int], played: list[int], lie: str) -> None:
    game = with_hands(hand, [1], [2], [3])
    view = HandView(game.hands[0])
    assert GAME.lie is not None
    assert GAME.lie(game, GAME.output_of("cards", played, view)) == lie
    game.apply(GAME.output_of("cards", played, view))
    assert [GAME.lie(game, answer) for answer in (True, False)] == [None, None]
