"""The ten players of BS: their plays and accusations, by example."""

from itertools import pairwise
from typing import Any

import pytest

from bots.manual.bs._template import MyBot
from bots.manual.bs.calculating_liar import CalculatingLiar
from bots.manual.bs.con_man import ConMan, choose
from bots.manual.bs.hoarder import Hoarder
from bots.manual.bs.jerk import Jerk
from bots.manual.bs.player1 import Player1
from bots.manual.bs.player2 import JavaRandom, Player2
from bots.manual.bs.player3 import Player3
from bots.manual.bs.player4 import Player4
from bots.manual.bs.risk_taker import RiskTaker
from bots.manual.bs.two_card import TwoCard
from dubito.game.streams import DealStreams
from dubito.games.bs.bot import BSBot
from dubito.games.bs.table import PublicState, Table
from tests.games.bs.kit import play_deal, seat_bots, with_hands

ALL = (CalculatingLiar, ConMan, Hoarder, Jerk, Player1, Player2, Player3, Player4, RiskTaker, TwoCard)
JAVA_YES = [4, 5, 9, 27, 28, 32, 33, 48, 55, 56, 58, 63, 70, 72, 74, 83, 85, 89]
JAVA_YES += [91, 92, 94, 96, 97, 104, 107, 109, 115, 118]


def seated(bot: type[BSBot], hand: list[int], deal: int = 0) -> Any:
    return seat_bots(with_hands(hand, [], [], []), [bot] * 4, DealStreams(1, deal)).players[0]


def table(pile: int = 0, mover_holds: int = 9, mine: int = 9, mover: int = 1, **public: int) -> Table:
    """Return a table at which seat `mover` has this many cards and seat 0 has `mine`."""
    hands = [mine, 9, 9, 9]
    if mover:
        hands[mover] = mover_holds
    return Table(PublicState(hands, pile=pile, mover=mover, **public))


@pytest.mark.parametrize(
    ("bot", "hand", "number", "played"),
    [
        (Player1, [5, 3, 5], 5, [5, 5]),
        (Player1, [5, 3, 5], 4, [5]),
        (Player3, [5, 3, 5], 3, [3]),
        (Player3, [5, 3, 5], 4, [5, 3]),
        (Player4, [5, 3, 5], 4, [5, 3]),
        (CalculatingLiar, [4, 9, 8, 9], 0, [9]),  # its next numbers are 4, 8, 12, 3, 7, 11, 2, 6, 10, 1, 5, 9
        (RiskTaker, [4, 9, 8], 0, [9]),
        (ConMan, [4, 9, 8, 0, 0], 0, [0, 0]),
        (Hoarder, [4, 0, 8, 0, 9], 0, [4, 0, 8, 0, 9]),  # its next numbers are 0, 4, 8, 12, so 9 would have to wait
        (Hoarder, [8, 0, 4], 0, [0]),
        (TwoCard, [5, 3, 5], 5, [5, 5]),
        (TwoCard, [5, 3, 6], 3, [3, 5]),
        (TwoCard, [5, 3, 6], 4, [5, 3]),
        (Jerk, [5, 5, 5, 0, 1], 5, [5, 5, 5]),
        (Jerk, [5, 3], 5, [5]),
        (Jerk, [5], 4, [5]),
    ],
)
def test_players_choose_the_expected_cards(bot: type[BSBot], hand: list[int], number: int, played: list[int]) -> None:
    game = with_hands(hand, [], [], [])
    player: Any = seat_bots(game, [bot] * 4, DealStreams(1, 0)).players[0]
    view = table(mine=len(hand), mover=0)
    assert [card.number for card in player.request_cards(number, view)] == played


@pytest.mark.parametrize(
    ("bot", "hand", "number", "n_cards", "view", "accuses"),
    [
        (Player1, [5], 0, 2, table(), False),
        (Player1, [5], 0, 3, table(), True),
        (Player3, [0, 0, 0], 0, 9, table(mover_holds=0), False),
        (Player4, [0, 0], 0, 2, table(), False),
        (Player4, [0, 0], 0, 3, table(), True),
        (Player4, [5, 6], 0, 1, table(mover_holds=0), True),
        (CalculatingLiar, [5, 6], 0, 4, table(), False),
        (CalculatingLiar, [5, 6], 0, 5, table(), True),
        (CalculatingLiar, [5, 6], 0, 1, table(mover_holds=0), True),
        (CalculatingLiar, [5], 0, 1, table(mover_holds=4), True),
        (CalculatingLiar, [5, 6], 0, 1, table(mover_holds=4), False),
        (Hoarder, [5], 0, 2, table(mover_holds=3), False),
        (Hoarder, [5], 0, 2, table(mover_holds=2), True),
        (TwoCard, [0, 0], 0, 1, table(), False),
        (TwoCard, [0, 0], 0, 2, table(), True),
        (Jerk, [0, 0], 0, 3, table(pile=3), True),
        (Jerk, [5], 0, 1, table(mover_holds=0, pile=1), True),
        (ConMan, [0, 0, 0], 0, 2, table(pile=2, mine=3), True),
        (ConMan, [5, 6, 7], 0, 2, table(pile=2, mine=3, mover_holds=0), True),
    ],
)
def test_players_accuse_as_expected(
    bot: type[BSBot], hand: list[int], number: int, n_cards: int, view: Table, accuses: bool
) -> None:
    assert seated(bot, hand).bs(1, number, n_cards, view) is accuses


def test_player2_answers_as_its_generator_does() -> None:
    player = seated(Player2, [5])
    yes = [question for question in range(1, 121) if player.bs(1, 0, 1, table())]
    assert yes == JAVA_YES


def test_the_generator_draws_as_in_the_other_language() -> None:
    generator = JavaRandom(42)
    assert [generator.random() for _ in range(2)] == [0.7275636800328681, 0.6832234717598454]


def test_calculating_liar_remembers_its_own_cards_on_the_pile() -> None:
    player = seated(CalculatingLiar, [0, 0, 7])
    player.request_cards(0, table(pile=3, mover=0))
    assert player.bs(1, 0, 1, table(pile=6))  # two matching cards are on the pile, and two in its hand
    assert not player.bs(1, 0, 1, table(pile=5)), "the pile was taken"


def test_risk_taker_is_stricter_or_perverse_by_its_mood() -> None:
    player = seated(RiskTaker, [0, 0])
    moods = DealStreams(1, 0).seat(0).bot
    for _ in range(400):
        mood = moods.random()
        assert player.bs(1, 0, 2, table()) is (mood < 0.05 or mood >= 0.75)
        assert player.bs(1, 0, 3, table()) is (moods.random() >= 0.05)


def test_jerk_pads_its_plays_at_random() -> None:
    padded = {
        tuple(card.number for card in seated(Jerk, [5, 0, 6, 7], deal).request_cards(number, table()))
        for deal in range(80)
        for number in (0, 4)
    }
    others = {(first, second) for first in (0, 5, 6, 7) for second in (0, 5, 6, 7) if first != second}
    assert padded == others


def test_jerk_counts_claims_on_this_pile() -> None:
    # (n_cards, pile): the pile under the fourth play has no more cards than were declared.
    asked = [(2, 2), (2, 4), (2, 6), (1, 6), (2, 3)]
    player = seated(Jerk, [5])
    assert [player.bs(1, 0, n_cards, table(pile=pile)) for n_cards, pile in asked] == [False, False, True, False, False]
    assert player.seen[0] == 3
    whims = [seated(Jerk, [5], deal).bs(1, 0, 1, table(pile=1)) for deal in range(2000)]
    assert 30 < sum(whims) < 70  # the expected share is 0.025


@pytest.mark.parametrize(
    ("upper", "lower", "ways"),
    [(5, 2, 10), (5, 0, 1), (5, 5, 1), (5, -1, 0), (5, 6, 0), (-1, -1, 1), (-1, 0, 1), (2.5, 1.5, 2.5), (3.5, 1, 3.5)],
)
def test_choose_is_the_binomial_of_real_numbers(upper: float, lower: float, ways: float) -> None:
    assert choose(upper, lower) == pytest.approx(ways)
    if 0 <= lower < upper:
        assert choose(upper + 1, lower + 1) == pytest.approx(choose(upper, lower) + choose(upper, lower + 1))


def test_every_player_documents_its_origin_and_strategy() -> None:
    for bot in ALL:
        assert bot.origin != BSBot.origin
        assert len((bot.__doc__ or "").strip().splitlines()) > 2
        assert len((bot.__doc__ or "").splitlines()[0]) < 120
    assert all(one.__name__ < other.__name__ for one, other in pairwise(ALL))


def test_the_template_is_a_bot_that_plays() -> None:
    assert play_deal([MyBot, Player1, MyBot, Player3], 0).over
