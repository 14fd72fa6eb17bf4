"""Kuhn poker's rules, tested against the engine sentence by sentence."""

from itertools import permutations

import pytest

from tests.plugins.openspiel.games.kit import Claims, after, legal, load, load_words, tree

says = Claims()


def chips_by_the_rules(cards: tuple[int, ...], acts: list[str]) -> tuple[int | None, list[int]]:
    """Return the seat to move (None if the game is over) and everyone's winnings."""
    players = len(cards)
    put, bettor = [1] * players, None
    order = list(range(players))
    while order:
        if not acts:
            return order[0], []
        seat, act, acts = order.pop(0), acts[0], acts[1:]
        if act == "bet":
            put[seat] += 1
            if bettor is None:
                bettor = seat
                order = [(seat + step) % players for step in range(1, players)]
    able = [seat for seat in range(players) if bettor is None or put[seat] == 2]
    winner = max(able, key=lambda seat: cards[seat])
    return None, [(sum(put) if seat == winner else 0) - put[seat] for seat in range(players)]


@says(
    "Seat 0 begins, and the players act in seat order.",
    "A bet puts 1 more chip into the pot, a pass nothing.",
    "Once a player has bet, each of the others acts once more, in seat order after that player: a bet then calls, "
    "with 1 more chip, and a pass folds.",
    "Nobody can raise.",
    "Then the game is over.",
    "If somebody has bet, the highest card among the players who bet or called wins the pot.",
    "If everybody has passed, the game is over and the highest card of all wins it.",
    "A player's result is the chips they take out of the pot minus the chips they put in.",
)
@pytest.mark.parametrize("players", [2, 3, 4])
def test_every_game_follows_the_rules(players: int) -> None:
    game = load(f"kuhn_poker(players={players})")
    ends = 0
    for cards in permutations(range(players + 1), players):
        for state in tree(after(game, cards)):
            acts = [load_words(game).names[action] for action in state.history()[players:]]
            mover, results = chips_by_the_rules(cards, acts)
            assert mover == (None if state.is_terminal() else state.current_player())
            if mover is None:
                ends += 1
                assert state.returns() == results
            else:
                assert legal(state) == ["pass", "bet"]
    assert ends == {2: 30, 3: 312, 4: 3960}[players]  # deals times betting sequences: 6 x 5, 24 x 13, 120 x 33


@says(
    "Two players sit in seats 0 and 1.",
    "The deck has 3 cards, from the lowest to the highest: jack, queen, king.",
    "Each player puts 1 chip into the pot and is dealt one card, unseen by the others; the last card stays unseen.",
)
def test_a_card_each_is_dealt_unseen() -> None:
    game = load("kuhn_poker")
    assert len(game.new_initial_state().legal_actions()) == 3
    shares = ("1 of yours, 1 of seat 1", "1 of seat 0, 1 of yours")
    for seat in (0, 1):
        hands = {load_words(game).describe_hand(after(game, cards), seat) for cards in permutations(range(3), 2)}
        assert hands == {f"the {card}; pot 2 chips: {shares[seat]}" for card in ("jack", "queen", "king")}
    assert after(game, (2, 1), "pass", "pass").returns() == [1, -1]  # the king beats the queen
    assert after(game, (0, 1), "pass", "pass").returns() == [-1, 1]  # the queen beats the jack


def test_every_sentence_is_played() -> None:
    assert says.left(load_words(load("kuhn_poker")).rules) == ""


def test_the_history_names_calls_and_folds() -> None:
    state = after(load("kuhn_poker(players=3)"), (2, 3, 0), "pass", "bet", "pass", "bet")
    words = load_words(state.get_game())
    assert words.history(state, 0) == [
        (None, "The cards are dealt. Yours: the queen."),
        (0, "You pass."),
        (1, "seat 1 bets."),
        (2, "seat 2 passes (folds)."),
        (0, "You bet (call)."),
    ]
    assert words.describe_hand(state, 1) == "the king; pot 5 chips: 2 of seat 0, 2 of yours, 1 of seat 2"
    assert words.rules[0].startswith("3 players sit in seats 0 to 2. The deck has 4 cards, from the lowest to the")
    assert "ten, jack, queen, king" in words.rules[0]
