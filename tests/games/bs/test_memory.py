"""Compare ConMan and CalculatingLiar with the reference, question by question."""

from collections.abc import Sequence
from typing import Any

import pytest

from bots.manual.bs.calculating_liar import CalculatingLiar
from bots.manual.bs.con_man import PILE, UNKNOWN, ConMan
from bots.manual.bs.hoarder import Hoarder
from bots.manual.bs.jerk import Jerk
from bots.manual.bs.player1 import Player1
from bots.manual.bs.player2 import Player2
from bots.manual.bs.player4 import Player4
from bots.manual.bs.risk_taker import RiskTaker
from bots.manual.bs.two_card import TwoCard
from dubito.game import GameEvent
from dubito.games.bs.bot import BSBot
from dubito.games.bs.cards import Card, RoundEvent
from dubito.games.bs.table import Table
from tests.games.bs import reference
from tests.games.bs.kit import play_deal

GAMES = 40  # a quarter of this in the gate still covers every branch twice
PLACES = {PILE: reference.PILE, UNKNOWN: reference.UNKNOWN}


class CheckedLiar(CalculatingLiar):
    """A CalculatingLiar that compares each answer with the reference."""

    def __init__(self, id: int) -> None:
        super().__init__(id)
        self.plain = reference.Liar()

    def request_cards(self, number: int, table: Table) -> Sequence[Card]:
        expected = self.plain.request_cards(number, list(self.cards), table.pile)
        play = super().request_cards(number, table)
        assert play == expected
        self.compare()
        return play

    def bs(self, seat: int, number: int, n_cards: int, table: Table) -> bool:
        expected = self.plain.bs(number, n_cards, list(self.cards), table.pile, table.hands[seat])
        accuses = super().bs(seat, number, n_cards, table)
        assert accuses is expected
        self.compare()
        return accuses

    def observe(self, event: GameEvent) -> None:
        super().observe(event)
        if isinstance(event, RoundEvent):
            self.plain.refresh(event.pile)
            self.compare()

    def compare(self) -> None:
        assert (self.known, self.last) == (self.plain.known, self.plain.last)


class CheckedConMan(ConMan):
    """A ConMan that compares each answer with the reference."""

    questions = 0

    def __init__(self, id: int) -> None:
        super().__init__(id)
        self.plain = reference.Con(id)

    def request_cards(self, number: int, table: Table) -> Sequence[Card]:
        expected = self.plain.request_cards(number, list(self.cards), table.pile, list(table.hands))
        play = super().request_cards(number, table)
        assert play == expected
        self.compare()
        return play

    def bs(self, seat: int, number: int, n_cards: int, table: Table) -> bool:
        expected = self.plain.bs(seat, number, n_cards, list(self.cards), table.pile, list(table.hands))
        accuses = super().bs(seat, number, n_cards, table)
        assert accuses is expected
        self.compare()
        return accuses

    def compare(self) -> None:
        assert beliefs(self) == expected_beliefs(self.plain)
        assert (self.pile, self.hands, self.route) == (self.plain.pile, self.plain.sizes, self.plain.t)
        assert [record.card for record in self.held] == [record.bound for record in self.plain.snapshot]
        CheckedConMan.questions += 1


def beliefs(bot: ConMan) -> list[Any]:
    return [
        (record.number, PLACES.get(record.place, record.place), round(record.confidence, 9), record.card)
        for record in bot.records()
    ]


def expected_beliefs(plain: reference.Con) -> list[Any]:
    return [(record.number, record.place, round(record.confidence, 9), record.bound) for record in plain.everything()]


@pytest.mark.parametrize(
    "pool",
    [
        (CheckedConMan, CheckedLiar, Player4, Player1),
        (Player2, CheckedConMan, Hoarder, CheckedLiar),
        (CheckedConMan, RiskTaker, CheckedConMan, Jerk),
        (CheckedLiar, TwoCard, Jerk, CheckedConMan),
    ],
)
def test_memories_match_the_description(pool: tuple[type[BSBot], ...], at_length: bool) -> None:
    CheckedConMan.questions = 0
    games = GAMES if at_length else GAMES // 4
    for number in range(games):
        play_deal(pool, 4, number)
    assert CheckedConMan.questions > 20 * games
