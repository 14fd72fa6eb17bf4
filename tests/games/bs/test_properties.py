"""Properties of random games of BS."""

from collections.abc import Iterator
from random import Random
from typing import Any, NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from dubito.game import GameEvent
from dubito.games.bs.cards import DECK, NUMBERS, PlayEvent, RoundEvent, TurnEvent, WinEvent
from dubito.games.bs.engine import State
from tests.games.bs.kit import deal_game


class Setup(NamedTuple):
    """The setup of a random game."""

    seed: int
    honest: float  # how often a player that can plays the requested number
    accuses: float
    most: int  # cards in a lie
    max_rounds: int


SETUPS = st.builds(
    Setup,
    seed=st.integers(0, 2**32 - 1),
    honest=st.sampled_from([0.1, 0.6, 1.0]),
    accuses=st.sampled_from([0.0, 0.1, 0.5, 1.0]),
    most=st.sampled_from([1, 3, 52]),
    max_rounds=st.sampled_from([1, 2, 30]),
)


def play_each_move(setup: Setup) -> Iterator[tuple[State, int, list[GameEvent]]]:
    """Yield the game after each move, with its player and the events."""
    rng = Random(setup.seed)
    game = deal_game(setup.seed, setup.max_rounds)
    while not game.over:
        seat = game.seat
        output: Any = rng.random() < setup.accuses
        if game.view().node == "cards":
            hand = game.hands[seat].cards
            output = [card for card in hand if card.number == game.view().number]
            if not output or rng.random() > setup.honest:
                output = rng.sample(hand, rng.randint(1, min(setup.most, len(hand))))
        yield game, seat, list(game.apply(output))


@given(SETUPS)
def test_every_card_is_in_one_hand_or_on_the_pile(setup: Setup) -> None:
    for game, _, _ in play_each_move(setup):
        places = [*game.hands, game.pile]
        assert sorted(card for place in places for card in place.cards) == list(DECK)
        for place in places:
            assert place.bits == sum(1 << DECK.index(card) for card in place.cards)


@given(SETUPS)
def test_sizes_agree_and_at_most_one_hand_is_empty_after_a_turn(setup: Setup) -> None:
    for game, _, _ in play_each_move(setup):
        sizes = [len(hand.cards) for hand in game.hands]
        assert game.public.hands == sizes
        assert game.public.pile == len(game.pile.cards)
        if game.public.node == "cards":
            assert sizes.count(0) == (game.winner is not None)
            assert game.over == (0 in sizes or game.turns_played == 4 * setup.max_rounds)


@given(SETUPS)
def test_a_turn_is_four_moves_and_a_round_four_turns(setup: Setup) -> None:
    turns, rounds, wins = 0, 0, 0
    for move, (game, seat, events) in enumerate(play_each_move(setup)):
        mover, number = turns % 4, turns % NUMBERS
        assert seat == (mover if move % 4 == 0 else [other for other in range(4) if other != mover][move % 4 - 1])
        kinds = [type(event) for event in events]
        turns += TurnEvent in kinds
        rounds += RoundEvent in kinds
        wins += WinEvent in kinds
        assert move % 4 or kinds == [PlayEvent]
        assert (move % 4 == 3) == (TurnEvent in kinds)
        assert (RoundEvent in kinds) == (move % 16 == 15 or game.over)
        if move % 4 == 0:
            assert events == [PlayEvent(mover, number, game.public.n_cards)]
    assert game.ending().game_counts == (turns, rounds) == (game.turns_played, rounds)
    assert wins == sum(game.ending().marks)


@given(SETUPS)
def test_counts_agree_with_one_another(setup: Setup) -> None:
    *_, (game, _, _) = play_each_move(setup)
    lies, accused = (sum(getattr(seat, name) for seat in game.counts) for name in ("lies", "lies_accused"))
    assert sum(seat.plays for seat in game.counts) == game.turns_played
    assert accused == sum(seat.accusations_right for seat in game.counts) <= lies
    for seat in game.counts:
        assert seat.accusations_right <= seat.accusations_drawn <= seat.accusations <= seat.asked
        assert seat.lies_accused <= seat.lies <= seat.plays <= seat.cards_played
        assert seat.asked == game.turns_played - seat.plays
    assert [counts[0] for counts in game.ending().counts] == [len(hand.cards) for hand in game.hands]


@given(SETUPS)
def test_why_illegal_accepts_every_legal_play(setup: Setup) -> None:
    game = deal_game(setup.seed)
    rng = Random(setup.seed)
    hand = game.hands[0].cards
    play = rng.choices(hand, k=5)
    assert game.view().why_illegal(play) is None
    game.apply(play)
    assert game.view().why_illegal(True) is game.view().why_illegal(False) is None
    assert game.view().why_illegal(play) is not None
