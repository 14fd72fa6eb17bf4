"""Facts are true: counts, rates and certain knowledge, compared with the engine in random games."""

import json
from collections import Counter
from dataclasses import replace
from functools import partial
from random import Random
from typing import Any

import pytest

from dubito.game.events import EVERYTHING
from dubito.game.log import Log, Position, SeatLog
from dubito.games.dubito.cards import COPIES, JOKER, TurnOutput
from dubito.games.dubito.engine import Result, Rules, State, is_honest
from dubito.games.dubito.events import CardsPlayedEvent, DoubtResolvedEvent
from dubito.games.dubito.facts import DubitoFacts, example_position
from dubito.games.dubito.knowledge import Knowledge
from dubito.games.dubito.sentences import card_name
from dubito.llm.prompts import SeatTexts
from tests.conftest import in_gate
from tests.engine.helpers import cards, position
from tests.prompts.kit import PLAIN, PROMPTS, RULES, TABLES, by_temper, turns

GAMES = pytest.mark.parametrize(("rules", "size"), TABLES, ids=str)


def words(values: list[int]) -> Counter[str]:
    return Counter(map(card_name, values))


def check_counts(values: dict[str, Any], game: State) -> None:
    """Check that each player's line equals the engine's PlayerData (R20-R23)."""
    seats = [seat for seat, place in enumerate(game.places) if place is None]
    turn = game.view()
    start = seats.index(game.seat)
    assert values["seats_in_game"] == seats[start:] + seats[:start]
    assert values["places"] == {str(seat): place for seat, place in enumerate(game.places) if place is not None}
    for line in values["players"]:
        data = game.counts[line["seat"]].public()
        assert (line["cards"], line["turns"], line["doubts"]) == (data.n_cards, data.turns, data.doubts)
        assert (line["chances_to_doubt"], line["honest_plays"]) == (data.not_first_turns, data.honest_times)
        assert line["doubted_plays"] == data.honest_times + data.dishonest_times
    for who, data in (("prev", turn.prev), ("next", turn.next)):
        doubted = data.honest_times + data.dishonest_times
        assert (values[who], values[f"{who}_cards"]) == (data.id, data.n_cards)
        expected = data.doubts / data.not_first_turns if data.not_first_turns else None
        assert values[f"{who}_doubt_rate"] == expected
        assert values[f"{who}_bluff_rate"] == (data.dishonest_times / doubted if doubted else None)
        assert values[f"{who}_honest_share"] == (data.honest_times / doubted if doubted else None)
    everyone = [game.counts[seat].public() for seat in range(len(game.places))]
    chances = sum(data.not_first_turns for data in everyone)
    assert values["table_doubt_rate"] == (sum(data.doubts for data in everyone) / chances if chances else None)


def check_board(values: dict[str, Any], game: State) -> None:
    """Check the turn data in words (R20-R22)."""
    turn = game.view()
    hand = game.hands[game.seat].cards
    assert values["hand"] == words(hand)
    assert (values["own_cards"], values["board_cards"], values["streak"]) == (len(hand), len(game.board), turn.streak)
    assert values["numbers_in_play"] == [card_name(number) for number in turn.playing_cards]
    assert len(values["sets_gone"]) + len(turn.playing_cards) == 13
    assert values["can_doubt"] is turn.can_doubt
    assert values["number"] == (card_name(game.number) if game.number else None)
    assert values["last_player"] == turn.last_player_id
    in_play = [card for held in game.hands for card in held.cards] + game.board
    assert values["jokers_gone"] == game.rules.jokers - in_play.count(JOKER)


def check_certain(values: dict[str, Any], game: State) -> None:
    """Check that cards certainly held are held, sure bluffs are bluffs, and known cards are in hand or on the board."""
    for line in values["players"]:
        if line["seat"] != game.seat:
            held = words(game.hands[line["seat"]].cards)
            assert Counter(line["surely_holds"]) <= held
            assert Counter(line["known_cards"]) <= held + words(game.board)
            assert (Counter(line["known_cards"]) - held).total() <= line["put_down"]
    if game.number:
        latest = game.board[-game.n_cards_played :]
        others = COPIES - values["number_elsewhere"]
        assert latest.count(game.number) <= others
        assert values["held_of_number"] == game.hands[game.seat].counts[game.number]
        if values["sure_bluff"]:
            assert not is_honest(latest, game.number)


@GAMES
def test_facts_match_the_engine(rules: Rules, size: int) -> None:
    """Compare facts with the engine at every question of whole games (R9, R20-R23, R26)."""
    asked = sure = held = 0
    for deal in range(3):
        for game, positions in turns(rules, size, deal):
            for one in positions:
                values = DubitoFacts().facts(one)
                check_counts(values, game)
                check_board(values, game)
                check_certain(values, game)
                asked += 1
                sure += values["sure_bluff"] is True
                held += any(line["surely_holds"] for line in values["players"])
    assert asked > 60
    assert sure > 0, "no game has a sure bluff"
    assert held > asked / 10


@GAMES
def test_turn_data_and_hand_are_computed_from_the_log(rules: Rules, size: int) -> None:
    """A seat's turn data (R20-R23), each player's counters and its hand follow from the events that it saw."""
    for game, positions in turns(rules, size, 9):
        known = positions[-1].known(Knowledge)
        assert known.turn() == game.view()
        assert sorted(known.hand.elements()) == sorted(game.hands[game.seat].cards)
        for seat in known.active():
            assert known.players[seat] == game.counts[seat].public()


@pytest.mark.at_length
@pytest.mark.parametrize("rules", in_gate(RULES, 1), ids=str)
def test_texts_are_the_same_if_they_are_rendered_one_after_another(rules: Rules) -> None:
    """At every question, texts equal those that are rendered from a new log."""
    followed = 0
    every: dict[int, SeatTexts] = {seat: SeatTexts() for seat in range(4)}
    for _, positions in turns(rules, 4, 1):
        for one in positions:
            texts, alone = every[one.seat], replace(one, log=SeatLog(one.seat, one.log))
            assert DubitoFacts().facts(one) == DubitoFacts().facts(alone)
            for prompt in PROMPTS.values():
                before = texts if prompt is PLAIN else None
                turn = [DubitoFacts().facts(each) for each in prompt.questions(one)]
                assert prompt.fill(DubitoFacts().facts(one), before, turn) == prompt.render(alone)
            followed += len(texts.chapters) > 2
    assert followed > 20


def test_facts_are_plain_values_with_the_same_keys_at_every_node() -> None:
    every = [DubitoFacts().facts(example_position(node)) for node in "ABCDE"]
    assert len({tuple(values) for values in every}) == 1
    for values in every:
        assert json.loads(json.dumps(values)) == values


def facts_after(game: State, seat: int, *moves: str) -> dict[str, Any]:
    """Return what the seat knows after these moves, written as in the engine's tests."""
    log = Log(game.start)
    for move in moves:
        laid, _, number = move.partition(" as ")
        declared = cards(number)[0] if number else None
        output = TurnOutput(True) if laid == "doubt" else TurnOutput(False, declared, cards(laid))
        log.add(game.apply(output, EVERYTHING))
    assert game.seat == seat
    return DubitoFacts().facts(Position(game.rules, "C" if game.can_doubt else "A", log.of(seat)))


def player(values: dict[str, Any], seat: int) -> dict[str, Any]:
    found: dict[str, Any] = next(line for line in values["players"] if line["seat"] == seat)
    return found


def test_picked_up_cards_are_known_individually() -> None:
    values = facts_after(position("A2345/6789T/JQK23"), 2, "A as 2", "doubt", "6 as 6")
    assert player(values, 0)["surely_holds"] == ["ace"]
    assert player(values, 1)["surely_holds"] == []


def test_cards_possibly_played_since_are_not_certain() -> None:
    """After a play of two, one of three equal cards is still certain; a single one is not."""
    values = facts_after(position("A2345AA/6789T/JQK23"), 2, "AAA as 2", "doubt", "6 as 6", "Q", "45", "7")
    line = player(values, 0)
    assert line["known_cards"] == ["ace", "ace", "ace"]
    assert (line["surely_holds"], line["put_down"]) == (["ace"], 2)


def test_turned_over_board_makes_cards_certain_again() -> None:
    values = facts_after(
        position("A2345AA/6789T/JQK23"), 2, "AAA as 2", "doubt", "6 as 6", "Q", "45", "doubt", "7 as 7"
    )
    assert player(values, 0)["surely_holds"] == ["ace", "ace", "ace", "4", "5", "6", "queen"]


def test_discarded_set_is_in_no_hand() -> None:
    """R3, R8: three cards claimed as its number are a sure bluff; two may be the jokers."""
    aces_gone = ("2A as A", "A", "doubt")
    three = facts_after(position("A2345678/A99/AATTT"), 1, *aces_gone, "345 as A")
    assert (three["sets_gone"], three["number_elsewhere"], three["sure_bluff"]) == (["ace"], 4, True)
    assert player(three, 2)["surely_holds"] == ["2"]
    two = facts_after(position("A2345678/A99/AATTT"), 1, *aces_gone, "34 as A")
    assert (two["number_elsewhere"], two["sure_bluff"]) == (4, False)


def test_more_cards_than_left_are_certainly_a_bluff() -> None:
    """R5: count the player's own cards, and jokers that the other may hold."""
    held = position("234567/555*8/9TJQK", "immediate")
    values = facts_after(held, 1, "234 as 5")
    assert values["number_elsewhere"] == 3
    assert values["sure_bluff"] is True  # at most one five and one joker
    spare = facts_after(position("234567/5558/9TJQK"), 1, "234 as 5")
    assert spare["sure_bluff"] is False  # one five and two jokers


def test_own_cards_on_the_board_are_not_in_the_last_play() -> None:
    values = facts_after(position("555*8/234567/*9TJQ"), 0, "555 as 5", "23", "9T")
    assert values["number_elsewhere"] == 3
    assert values["sure_bluff"] is False
    values = facts_after(position("5*58/234567/9TJQK"), 0, "55* as 5", "2", "9TJ")
    assert (values["number_elsewhere"], values["sure_bluff"]) == (2, False)
    values = facts_after(position("555*8/234567/9TJQK"), 0, "55* as 5", "2", "9TJ")
    assert (values["number_elsewhere"], values["sure_bluff"]) == (3, True)


def test_history_shows_cards_only_of_own_plays() -> None:
    values = facts_after(position("A2345/6789T/JQK23"), 0, "A2 as 2", "6", "JK")
    assert values["history"] == [
        "The cards are dealt: seat 0 holds 5, seat 1 holds 5, seat 2 holds 5.",
        "seat 0 plays 2 cards as 2s. Yours: ace 2, a bluff.",
        "seat 1 plays 1 card as 2s.",
        "seat 2 plays 2 cards as 2s.",
    ]
    assert values["own_plays"] == [{"number": "2", "cards": ["ace", "2"], "honest": False}]


@pytest.mark.parametrize("size", [3, 8])
def test_every_event_is_a_line_of_the_history(size: int) -> None:
    """The history is append-only."""
    before: dict[int, list[str]] = {}
    for _, positions in turns(Rules(), size, 2):
        for one in positions:
            facts = DubitoFacts().facts(one)["history"]
            assert len(facts) == sum(event.only is None for event in one.log)
            assert facts[: len(before.get(one.seat, []))] == before.get(one.seat, [])
            before[one.seat] = facts
            doubts = [event for event in one.log if isinstance(event, DoubtResolvedEvent)]
            assert sum("doubts" in line for line in facts) == len(doubts)
            own = [e for e in one.log if isinstance(e, CardsPlayedEvent) and e.player_id == one.seat]
            assert sum("Yours" in line for line in facts) == len(own) == len(DubitoFacts().facts(one)["own_plays"])


def test_rate_without_data_is_null() -> None:
    values = DubitoFacts().facts(example_position("C"))
    first = facts_after(position("A2345/6789T/JQK23"), 0)
    assert (first["prev_bluff_rate"], first["next_doubt_rate"], first["table_doubt_rate"]) == (None, None, None)
    assert isinstance(values["table_doubt_rate"], float)


def as_many_as_possible(one: Position, chance: Random) -> bool:
    return one.node in "BE" or by_temper(one, chance)


@GAMES
def test_described_effect_of_many_cards_is_correct(rules: Rules, size: int) -> None:
    """R9, R10, R24, R25: the number of cards played, and whether the play wins."""
    promised, checked, won = None, 0, 0
    for game, positions in (turn for deal in range(6) for turn in turns(rules, size, deal, as_many_as_possible)):
        if promised is not None:
            promised()
        last = positions[-1]
        promised = partial(check_promise, game, last) if last.node in "BE" else None
        checked += promised is not None
        won += promised is not None and "You then have no cards" in DubitoFacts().facts(last)["if_true"]
    assert checked > 40
    assert won > 3


def check_promise(game: State, one: Position) -> None:
    """Check that the game after the turn is as described in `if_true`."""
    text = DubitoFacts().facts(one)["if_true"]
    count = text.removeprefix("you play ").split()[0]
    expected = {"three": 3, "all": one.known(Knowledge).hand.total()}.get(count) or int(count)
    assert (game.last_player, game.n_cards_played) == (one.seat, expected)
    if " as " in text:
        assert f" as {card_name(game.number, plural=True)}." in text
    has_none = game.counts[one.seat].n_cards == 0
    assert ("You then have no cards" in text) == has_none
    if has_none and "lose" in text:
        assert game.result(one.seat) is Result.LOSS
    elif has_none and "unless" not in text:
        assert game.places[one.seat] is not None
    elif has_none:
        assert (game.places[one.seat], game.over) == (None, False)


def test_the_last_card_loses_when_a_pending_winner_ends_the_game() -> None:
    """R9, R10: the pending win leaves two players, and both lose."""
    values = facts_after(position("2A6A7/2Q/8T", "contested"), 2, "2A6 as 2", "2")
    assert "lose" not in values["if_false"]
    values = facts_after(position("2A6/2Q/8T", "contested"), 1, "2A6 as 2")
    assert values["prev_about_to_win"] is True
    assert values["if_false"].endswith("seat 0 has won and the game is over: you lose.")
    four = facts_after(position("2A6/2Q/8T/9J", "contested"), 1, "2A6 as 2")
    assert four["if_false"].endswith(" seat 0 has won.")
