"""Win rates of the seven original players, compared with the source's, and games without an end."""

from collections import Counter
from collections.abc import Sequence
from math import sqrt

import pytest

from bots.manual.bs.calculating_liar import CalculatingLiar
from bots.manual.bs.con_man import ConMan
from bots.manual.bs.hoarder import Hoarder
from bots.manual.bs.player1 import Player1
from bots.manual.bs.player2 import Player2
from bots.manual.bs.player3 import Player3
from bots.manual.bs.player4 import Player4
from dubito.game.streams import DealStreams
from dubito.games.bs.bot import BSBot
from dubito.games.bs.cards import Card
from dubito.games.bs.engine import State
from dubito.games.bs.table import Table
from tests.games.bs.kit import play_deal

GAMES = 3000  # only at length; the gate plays frozen games of these bots instead
ERRORS = 3.5  # standard errors of tolerance; the games are seeded
RATES = {  # from 200,000 games of the source's controller
    ConMan: 0.6073,
    CalculatingLiar: 0.5753,
    Player4: 0.2807,
    Player1: 0.1503,
    Player3: 0.0772,
    Player2: 0.0576,
    Hoarder: 0.0,
}
SEATS = (0.271, 0.259, 0.246, 0.224)
TURNS, LIES, CARDS, ACCUSED, RIGHT = 38.95, 0.437, 5.03, 0.331, 0.702


@pytest.fixture(scope="module")
def pool() -> list[tuple[list[type[BSBot]], State]]:
    """Yield games of four different players from the pool, with their seats."""
    games = []
    for number in range(GAMES):
        bots = DealStreams(1, number).seating().sample(list(RATES), 4)
        games.append((bots, play_deal(bots, 1, number)))
    return games


Pool = list[tuple[list[type[BSBot]], State]]


def near(found: float, expected: float, games: float) -> bool:
    return abs(found - expected) <= ERRORS * sqrt(expected * (1 - expected) / games)


@pytest.mark.at_length
def test_win_rates_match_the_controller(pool: Pool) -> None:
    sat = Counter(bot for bots, _ in pool for bot in bots)
    won = Counter(bots[game.winner] for bots, game in pool if game.winner is not None)
    rates = {bot.__name__: (won[bot] / sat[bot], rate) for bot, rate in RATES.items()}
    assert won.total() == len(pool), "every game must have a winner"
    assert [
        name for (name, (found, rate)), bot in zip(rates.items(), RATES, strict=True) if not near(found, rate, sat[bot])
    ] == []


@pytest.mark.at_length
def test_wins_by_seat_match_the_controller(pool: Pool) -> None:
    won = Counter(game.winner for _, game in pool)
    assert all(near(won[seat] / len(pool), share, len(pool)) for seat, share in enumerate(SEATS)), won


@pytest.mark.at_length
def test_turns_lies_and_accusations_match_the_controller(pool: Pool) -> None:
    turns = [game.turns_played for _, game in pool]
    mean = sum(turns) / len(pool)
    error = sqrt(sum((one - mean) ** 2 for one in turns)) / len(pool)
    assert abs(mean - TURNS) <= ERRORS * error
    counts = [seat for _, game in pool for seat in game.counts]
    drawn = sum(seat.accusations_drawn for seat in counts)
    assert sum(seat.lies for seat in counts) / sum(turns) == pytest.approx(LIES, abs=0.01)
    assert sum(seat.cards_played for seat in counts) / sum(turns) == pytest.approx(CARDS, abs=0.2)
    assert drawn / sum(turns) == pytest.approx(ACCUSED, abs=0.01)
    assert sum(seat.accusations_right for seat in counts) / drawn == pytest.approx(RIGHT, abs=0.015)


class NeverRid(BSBot):
    """Lies with one card whenever possible, and accuses while it holds more than two cards."""

    def request_cards(self, number: int, table: Table) -> Sequence[Card]:
        return [next((card for card in self.cards if card.number != number), self.cards[0])]

    def bs(self, seat: int, number: int, n_cards: int, table: Table) -> bool:
        return len(self.cards) > 2


def test_b2_constant_accusers_reach_the_cap_of_4000_turns() -> None:
    for number in range(3):
        game = play_deal([NeverRid] * 4, 8, number)
        assert game.ending().game_counts == (4000, 1000)
        assert (game.winner, game.ending().capped) == (None, True)
