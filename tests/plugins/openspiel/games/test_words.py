"""Sentences about OpenSpiel's games contain exactly what the seat knows."""

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest

from dubito.game.find import find_game
from dubito.plugins.openspiel.known_games import find_words
from tests.conftest import in_gate
from tests.plugins.openspiel.games.kit import load, load_words, tree

TOLD = [
    "kuhn_poker",
    "kuhn_poker(players=10)",
    "leduc_poker",
    "leduc_poker(players=10,starting_player=9)",
    "liars_dice",
    "liars_dice(numdice=10)",
    "liars_dice(numdice=2,dice_sides=3,bidding_rule=reset-quantity)",
    "gin_rummy",
    "gin_rummy(hand_size=3,knock_card=0)",
]


@pytest.mark.parametrize("name", TOLD)
def test_each_action_has_a_distinct_name(name: str) -> None:
    game = load(name)
    names = load_words(game).names
    assert len(set(names)) == len(names) == game.num_distinct_actions() <= 250
    assert all(name == " ".join(name.split()) and "|" not in name for name in names)


def test_lead_explains_the_game_to_newcomers() -> None:
    assert find_game("openspiel:kuhn_poker", Path()).words.LEAD == (
        "Kuhn poker, the smallest poker game: one card each, one bet, and the highest card takes the pot."
    )
    assert find_game("openspiel:tic_tac_toe", Path()).words.LEAD == "Tic Tac Toe, by OpenSpiel."


@pytest.mark.parametrize(
    ("name", "gain", "sentence"),
    [
        ("kuhn_poker", 1, "You win 1 chip."),
        ("leduc_poker", -13, "You lose 13 chips."),
        ("leduc_poker", 0, "It is a draw."),
        ("gin_rummy", 25, "You win 25 points."),
        ("liars_dice", 1, "You win!"),
        ("tic_tac_toe", -1, "You lose."),
        ("tic_tac_toe", 0, "It is a draw."),
        ("goofspiel(num_cards=3,returns_type=total_points)", 4, "Your return is 4."),
    ],
)
def test_verdict_is_spoken_to_the_person(name: str, gain: float, sentence: str) -> None:
    ended: Any = SimpleNamespace(state=SimpleNamespace(returns=lambda: [-gain, gain]))
    assert find_game(f"openspiel:{name}", Path()).words.verdict(ended, 1) == sentence


@pytest.mark.parametrize(
    "name",
    [
        "tic_tac_toe",
        "liars_dice_ir",
        "leduc_poker(suit_isomorphism=True)",
        "leduc_poker(action_mapping=True)",
        "leduc_poker(starting_player=2)",
        "liars_dice(numdice=11)",
        "liars_dice(numdice=10,dice_sides=13)",
        "gin_rummy(oklahoma=True)",
        "gin_rummy(num_ranks=10)",
        "gin_rummy(num_suits=3)",
        "gin_rummy(gin_bonus=-1)",
    ],
)
def test_no_words_for_unsupported_parameters(name: str) -> None:
    assert find_words(load(name)) is None


class Later:
    """A game in a later version of OpenSpiel, with one more parameter."""

    def __init__(self, game: Any) -> None:
        self.get_type = game.get_type
        self._given = game.get_parameters()

    def get_parameters(self) -> dict[str, Any]:
        return {**self._given, "later": True}


@pytest.mark.parametrize("name", ["kuhn_poker", "leduc_poker", "liars_dice", "gin_rummy"])
def test_unknown_parameter_has_no_words(name: str) -> None:
    later: Any = Later(load(name))
    assert find_words(later) is None


def describe_seat(state: Any, seat: int) -> str:
    words = load_words(state.get_game())
    return "\n".join([words.describe_hand(state, seat), *map(str, words.history(state, seat))])


@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("kuhn_poker", 12),
        ("kuhn_poker(players=3)", 48),
        ("liars_dice(dice_sides=3)", 192),
        ("liars_dice(numdice=2,dice_sides=2)", 768),
        ("leduc_poker", 936),
    ],
)
def test_words_are_the_information_state(name: str, count: int) -> None:
    """Over all histories, texts and information states correspond one to one."""
    by_state, by_words = defaultdict(set), defaultdict(set)
    for state in tree(load(name).new_initial_state()):
        if state.is_player_node():
            seat = state.current_player()
            key, words = (seat, state.information_state_string(seat)), (seat, describe_seat(state, seat))
            by_state[key].add(words)
            by_words[words].add(key)
    assert {len(words) for words in by_state.values()} == {len(keys) for keys in by_words.values()} == {1}
    assert len(by_state) == len(by_words) == count


def test_every_moment_of_a_deal_can_be_narrated() -> None:
    for name in TOLD:
        state = load(name).new_initial_state()
        while state.is_chance_node():
            for seat in range(state.num_players()):
                assert load_words(state.get_game()).history(state, seat) == []
                assert load_words(state.get_game()).describe_hand(state, seat)
            state.apply_action(state.legal_actions()[-1])


def gin_games(knocks: bool) -> Iterator[Any]:
    """Yield questions of random games, which either reach a knock and what follows, or never do."""
    for deal in range(8):
        chance, state = Random(deal), load("gin_rummy(hand_size=4)").new_initial_state()
        while not state.is_terminal():
            if state.is_player_node():
                yield state
            options = state.legal_actions()
            if 55 in options:
                options = [55] if knocks else [action for action in options if action != 55]
            state.apply_action(chance.choice(options))


def other_world(state: Any, seat: int, chance: Random) -> Any:
    """Return the same game with unseen cards exchanged, or None if that is impossible."""
    entries, unseen = state.full_history(), set(range(52))
    dealt = state.get_game().new_initial_state()  # copying it is a hundred times faster
    replay, other = dealt, dealt.clone()
    for entry in entries:
        replay.apply_action(entry.action)
        unseen -= {*replay.hands()[seat], *replay.discard_pile(), *replay.known_cards()[1 - seat], *replay.layoffs()}
        unseen -= {replay.upcard()}
        unseen -= {entry.action} if entry.player >= 0 else set()
        for meld in replay.layed_melds()[1 - seat]:
            unseen -= set(_cards_of(replay, meld))
    hidden = sorted(unseen)
    exchange = dict(zip(hidden, chance.sample(hidden, len(hidden)), strict=True))
    for entry in entries:
        action = exchange.get(entry.action, entry.action) if entry.player < 0 else entry.action
        if action not in other.legal_actions():
            return None
        other.apply_action(action)
    return other


def _cards_of(state: Any, meld: int) -> list[int]:
    name = state.action_to_string(0, 56 + meld).split()[-1]
    return ["scdh".index(name[at + 1]) * 13 + "A23456789TJQK".index(name[at]) for at in range(0, len(name), 2)]


@pytest.mark.parametrize("knocks", in_gate([True, False], 1))
def test_gin_reveals_nothing_hidden(knocks: bool) -> None:
    """Compare deals that differ only in the other hand and in the stock."""
    compared = after_a_knock = 0
    chance = Random(1)
    for number, state in enumerate(gin_games(knocks)):
        seat = state.current_player()
        if number % 10 and not any(state.knocked()):
            continue
        other = other_world(state, seat, chance)
        if other is None:
            continue
        assert other.information_state_string(seat) == state.information_state_string(seat)
        assert describe_seat(other, seat) == describe_seat(state, seat)
        compared += other.hands() != state.hands()
        after_a_knock += any(state.knocked())
    assert compared > 30
    assert after_a_knock > 20 or not knocks


def test_gin_history_is_true() -> None:
    for state in gin_games(knocks=True):
        seat, words = state.current_player(), load_words(state.get_game())
        parts = dict(part.split(": ", 1) for part in words.describe_hand(state, seat).split("; ") if ": " in part)
        hand = words.describe_hand(state, seat).split(" (")[0]
        cards = words.names[:52]
        assert sorted(hand.split()) == sorted(cards[card] for card in state.hands()[seat]) or hand == "none"
        known = parts[f"known in the hand of seat {1 - seat}"]
        assert known == "none" or {cards.index(card) for card in known.split()} <= set(state.hands()[1 - seat])
        assert f"deadwood {state.deadwood()[seat]})" in words.describe_hand(state, seat) or any(state.knocked())
