"""Leduc poker's rules, tested against the engine sentence by sentence."""

from itertools import permutations
from random import Random
from typing import Any

import pytest

from tests.plugins.openspiel.games.kit import Claims, after, legal, load, load_words, tree

says = Claims()
JACK, JACK_2, QUEEN, QUEEN_2, KING, KING_2 = range(6)  # hearts and spades


class Table:
    """A game played by the sentences of the rules, for comparison with the engine."""

    def __init__(self, players: int, first: int) -> None:
        self.players, self.first = players, first
        self.put = [1] * players
        self.folded: set[int] = set()
        # Number of raises, and the seats that have acted since the last one.
        self.rounds: list[tuple[int, set[int]]] = [(0, set())]
        self.seat = first

    def legal(self) -> list[str]:
        owes, can_raise = self.put[self.seat] < max(self.put), self.rounds[-1][0] < 2
        return [*["fold"] * owes, "call", *["raise"] * can_raise]

    def act(self, name: str) -> None:
        raises, settled = self.rounds[-1]
        if name == "fold":
            self.folded.add(self.seat)
        else:
            self.put[self.seat] = max(self.put)
            if name == "raise":
                self.put[self.seat] += (2, 4)[len(self.rounds) - 1]
                raises, settled = raises + 1, set()
            settled.add(self.seat)
        self.rounds[-1] = raises, settled
        self.seat = self.next(self.seat + 1)

    def next(self, start: int) -> int:
        seats = [(start + step) % self.players for step in range(self.players)]
        return next(seat for seat in seats if seat not in self.folded)

    def round_is_over(self) -> bool:
        return self.rounds[-1][1] >= set(range(self.players)) - self.folded

    def over(self) -> bool:
        return len(self.folded) == self.players - 1 or (len(self.rounds) == 2 and self.round_is_over())

    def turn_up(self) -> None:
        self.rounds.append((0, set()))
        self.seat = self.next(self.first)

    def results(self, ranks: list[int], shown: int | None) -> list[float]:
        left = sorted(set(range(self.players)) - self.folded)
        best = max((ranks[seat] == shown, ranks[seat]) for seat in left)
        winners = [seat for seat in left if (ranks[seat] == shown, ranks[seat]) == best]
        if len(left) == 1:
            winners = left
        share = sum(self.put) / len(winners)
        return [(share if seat in winners else 0) - self.put[seat] for seat in range(self.players)]


def check(state: Any, first: int) -> None:
    """Follow the table through the state's history and compare the two."""
    game = state.get_game()
    table = Table(game.num_players(), first)
    cards = state.history()[: table.players]
    shown = None
    for entry in state.full_history()[table.players :]:
        if entry.player < 0:
            assert table.round_is_over()
            table.turn_up()
            shown = entry.action // 2
        else:
            assert table.seat == entry.player
            table.act(load_words(game).names[entry.action])
    assert state.is_terminal() == table.over()
    if state.is_terminal():
        assert state.returns() == table.results([card // 2 for card in cards], shown)
    elif state.is_chance_node():
        assert table.round_is_over()
        assert len(table.rounds) == 1
    else:
        assert (state.current_player(), legal(state)) == (table.seat, table.legal())


RULES = (
    "In each round seat 0 begins, or the next seat that has not folded, and the players act in seat order.",
    "A call matches the most chips that any player has put in, which may cost nothing.",
    "A raise does the same and adds 2 chips in the first round, 4 in the second; a round has at most 2 raises by all "
    "players together.",
    "A fold leaves the game, and is allowed only if a call would cost chips.",
    "A round is over when all players who have not folded have called, or have called the last raise.",
    "When only one player has not folded, the game is over and that player takes the pot.",
    "After the second round the cards are compared: a card of the community card's rank is a pair, which beats "
    "everything else; without a pair the highest rank wins.",
    "Suits do not count.",
    "Two players with the same rank share the pot.",
    "A player's result is the chips they take out of the pot minus the chips they put in.",
)


@says(*RULES)
def test_every_game_follows_the_rules() -> None:
    game, states = load("leduc_poker"), 0
    for cards in permutations(range(6), 2):
        for state in tree(after(game, cards)):
            check(state, first=0)
            states += 1
    assert states == 9450


@pytest.mark.parametrize(("players", "first"), [(2, 1), (3, 0), (3, 2), (5, 1)])
def test_other_tables_follow_the_rules(players: int, first: int) -> None:
    game, chance = load(f"leduc_poker(players={players},starting_player={first})"), Random(players)
    assert f"In each round seat {first} begins" in load_words(game).rules[1]
    for _ in range(300):
        state = after(game, chance.sample(range(2 * players + 2), players))
        while not state.is_terminal():
            check(state, first)
            state.apply_action(chance.choice(state.legal_actions()))
        check(state, first)


@says(
    "Two players sit in seats 0 and 1.",
    "The deck has 6 cards: jack, queen, king, from the lowest to the highest, each once in hearts and once in spades.",
    "Each player puts 1 chip into the pot and is dealt one card, unseen by the others.",
    "There are two rounds of betting; between them one more card is turned up, the community card.",
)
def test_cards_are_dealt_and_turned_up() -> None:
    game = load("leduc_poker")
    words = load_words(game)
    assert len(game.new_initial_state().legal_actions()) == 6
    ranks = ("jack", "queen", "king")
    cards = {f"the {rank} of {suit}" for rank in ranks for suit in ("hearts", "spades")}
    hands = {words.describe_hand(after(game, pair), 1) for pair in permutations(range(6), 2)}
    assert hands == {f"{card}; community card: none yet; pot 2 chips: 1 of seat 0, 1 of yours" for card in cards}
    shown = after(game, (JACK, KING, QUEEN_2), "call", "call")
    for seat, own in enumerate(("the jack of hearts", "the king of hearts")):
        assert words.describe_hand(shown, seat).startswith(f"{own}; community card: the queen of spades; pot 2 chips")
    assert after(game, (JACK, JACK_2, KING), *["call"] * 4).returns() == [0, 0]
    assert after(game, (JACK, KING_2, JACK_2), *["call"] * 4).returns() == [1, -1]
    assert after(game, (QUEEN, JACK, KING), *["call"] * 4).returns() == [1, -1]


def test_every_sentence_is_played() -> None:
    assert says.left(load_words(load("leduc_poker")).rules) == ""


def test_history_contains_the_bets() -> None:
    state = after(load("leduc_poker"), (QUEEN_2, JACK, KING), "call", "raise", "raise", "call", "raise", "fold")
    words = load_words(state.get_game())
    assert words.history(state, 1) == [
        (None, "The cards are dealt. Yours: the jack of hearts."),
        (0, "seat 0 calls, putting in nothing."),
        (1, "You raise, putting in 2 chips."),
        (0, "seat 0 raises, putting in 4 chips."),
        (1, "You call, putting in 2 chips."),
        (None, "The community card is the king of hearts."),
        (0, "seat 0 raises, putting in 4 chips."),
        (1, "You fold."),
    ]
    assert words.describe_hand(state, 0).endswith("pot 14 chips: 9 of yours, 5 of seat 1")
