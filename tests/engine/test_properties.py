"""Properties of random games, with both win rules, all table sizes and joker counts."""

from collections import Counter
from collections.abc import Iterator
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dubito.errors import IllegalOutput
from dubito.game import GameEvent
from dubito.games.dubito.cards import COPIES, JOKER, NUMBERS, PlayerData, TurnOutput
from dubito.games.dubito.engine import Rules, State
from dubito.games.dubito.events import DiscardEvent, DoubtResolvedEvent
from tests.engine.helpers import Setup, in_play, new_game, random_game, snapshot, twin

SETUPS = st.builds(
    Setup,
    seed=st.integers(0, 2**32 - 1),
    players=st.integers(3, 8),
    rules=st.builds(
        Rules,
        jokers=st.integers(0, 2),
        win_rule=st.sampled_from(["immediate", "contested"]),
        max_turns=st.sampled_from([1, 2, 5, 30, 150]),
    ),
    deal=st.sampled_from(["full", "short", "clumped"]),
    doubt=st.sampled_from([0.05, 0.3, 0.6]),
    honest=st.sampled_from([0.1, 0.5, 0.9]),
)
ANYTHING = st.one_of(st.none(), st.booleans(), st.integers(-1, 14), st.just("7"), st.just(7.0))
OUTPUTS = st.builds(
    TurnOutput,
    doubt=st.one_of(st.booleans(), st.integers(0, 1), st.none()),
    number=ANYTHING,
    cards=st.one_of(
        st.lists(st.integers(0, 13), max_size=4),
        st.lists(st.integers(0, 13), max_size=4).map(tuple),
        st.lists(ANYTHING, max_size=4),
        st.sets(st.integers(0, 13), max_size=3),
        ANYTHING,
    ),
)


def play_each_turn(setup: Setup) -> Iterator[tuple[State, int, list[GameEvent]]]:
    for game, output in random_game(setup):
        seat = game.seat
        yield game, seat, game.apply(output)


@given(setup=SETUPS)
def test_r1_no_card_is_made_or_lost(setup: Setup) -> None:
    """R1, R6, R8: every card is in a hand, on the board, in a discarded set, or a doubted joker."""
    deck = in_play(new_game(setup))
    if setup.deal == "full":
        assert deck == Counter([*NUMBERS] * COPIES + [JOKER] * setup.rules.jokers)
    gone: Counter[int] = Counter()
    for game, _, events in play_each_turn(setup):
        for event in events:
            if isinstance(event, DiscardEvent):
                gone[event.card_number] += COPIES
            elif isinstance(event, DoubtResolvedEvent):
                gone[JOKER] += event.jokers_discarded
        assert in_play(game) + gone == deck
        assert all(Counter(held.cards) == +Counter(dict(enumerate(held.counts))) for held in game.hands)


@given(setup=SETUPS)
def test_a_player_is_never_stuck(setup: Setup) -> None:
    """R3, R9: the player to move always holds a card that can be played."""
    for game, output in random_game(setup):
        held = game.hands[game.seat].cards
        branch = twin(game)
        branch.apply(TurnOutput(False, None if game.number else 13, [held[-1]]))
        assert len(branch.hands[game.seat].cards) == len(held) - 1
        game.apply(output)


def legal(game: State, output: TurnOutput) -> bool:
    """Decide whether an output is legal, independently of the engine (R3, R4, R13)."""
    cards = output.cards
    allowed = list(NUMBERS) if game.number == 0 else [None, game.number]
    if not any((type(output.number), output.number) == (type(number), number) for number in allowed):
        return False
    if output.doubt is True:
        someone = game.last_player is not None and game.places[game.last_player] is None
        return someone and cards in (None, [], ())
    if output.doubt is not False or not isinstance(cards, (list, tuple)) or len(cards) not in (1, 2, 3):
        return False
    return all(type(card) is int for card in cards) and Counter(cards) <= Counter(game.hands[game.seat].cards)


@given(setup=SETUPS, outputs=st.lists(OUTPUTS, min_size=1, max_size=20), skip=st.integers(0, 12))
def test_r13_an_illegal_output_raises_and_changes_nothing(setup: Setup, outputs: list[TurnOutput], skip: int) -> None:
    for _, (game, output) in zip(range(skip + 1), random_game(setup), strict=False):
        before = snapshot(game)
        for wrong in outputs:
            branch = twin(game)
            if legal(game, wrong):
                assert branch.apply(wrong)
                continue
            with pytest.raises(IllegalOutput, match=r"."):
                branch.apply(wrong)
            assert snapshot(branch) == before
        game.apply(output)


@given(setup=SETUPS, shuffle=st.randoms(use_true_random=False))
def test_turn_data_does_not_depend_on_hidden_cards(setup: Setup, shuffle: Random) -> None:
    """R20: if the others' hands and the board are dealt again, the seat to move sees the same."""
    for game, output in random_game(setup):
        other = twin(game)
        piles = [other.board, *(held.cards for seat, held in enumerate(other.hands) if seat != game.seat)]
        hidden = [card for pile in piles for card in pile]
        shuffle.shuffle(hidden)
        for pile in piles:
            pile[:] = [hidden.pop() for _ in pile]
        for held in other.hands:
            held.counts[:] = [held.cards.count(value) for value in range(14)]
        assert other.view() == game.view()
        game.apply(output)


@given(setup=SETUPS)
def test_r26_turn_data_is_the_players_own_copy(setup: Setup) -> None:
    """R26: a bot that changes its turn data affects only itself."""
    for game, output in random_game(setup):
        before = snapshot(game)
        data = game.view()
        assert data.me == game.counts[game.seat].public()
        for person in (data.me, data.prev, data.next):
            for name in PlayerData.__slots__:
                setattr(person, name, -1)
        assert snapshot(game) == before
        game.apply(output)


@given(setup=SETUPS)
def test_a_game_without_announcements_is_the_same_game(setup: Setup) -> None:
    """R26: events are only built for observers, and building them has no effect on the game."""
    quiet = new_game(setup)
    for game, output in random_game(setup):
        assert game.apply(output) != []
        assert quiet.apply(output, announce=False) == []
        assert snapshot(quiet) == snapshot(game)
