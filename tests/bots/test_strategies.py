"""The answers of the bots without memory match the table in RULES.md, "The bots of the source documents"."""

from collections.abc import Callable
from itertools import product
from typing import NamedTuple

import pytest

from dubito.games.dubito.cards import TurnData
from tests.bots.kit import NUMBER, REGISTRY, chance, in_seat, neighbour, opening, regular

HOLDING = (NUMBER, 1, 2, 3, 4)
LACKING = (0, 0, 1, 2, 3)  # jokers do not count as the number (R22)
FOUND_BY_BISECTION = 1e-9

ABDE = {  # bot -> probabilities of a yes at A, B, D, E in any situation
    "RandomBoi": (1 / 2, 0, 1 / 2, 0),
    "AlwaysTruthful": (0, 1, 0, 1),
    "MrNoDoubt": (0, 1, 0, 1),
    "JustPutCards": (1, 1, 1, 1),
    "MrDoubt": (1 / 2, 1, 1, 1),
    "StefaBot": (1 / 2, 1, 1 / 2, 1),
    "SusBoi": (0, 1, 0, 1),
    "UsualBot": (0.67, 1, 0.67, 1),
}


class Situation(NamedTuple):
    """All that the bots in this file may use when asked C."""

    holds: bool
    played: int
    opened: bool  # the last play is the whole board
    prev_cards: int

    @property
    def hand(self) -> tuple[int, ...]:
        return HOLDING if self.holds else LACKING

    @property
    def turn(self) -> TurnData:
        older = 0 if self.opened else 4
        return regular(self.hand, played=self.played, older=older, prev=neighbour(0, self.prev_cards))


SITUATIONS = [Situation(*row) for row in product((True, False), (1, 2, 3), (True, False), (0, 9))]


def usual_doubt(s: Situation) -> float:
    """Never doubt an opening play, always doubt a player without cards, otherwise decide by the play's size."""
    if s.opened:
        return 0
    if s.prev_cards == 0:
        return 1
    return {1: 0.3, 2: 0.6, 3: 0.9}[s.played]


C: dict[str, Callable[[Situation], float]] = {
    "RandomBoi": lambda s: 1 / 3 if s.holds else 1 / 2,
    "AlwaysTruthful": lambda s: 0 if s.holds else 1,
    "MrNoDoubt": lambda s: 0,
    "JustPutCards": lambda s: 0,
    "MrDoubt": lambda s: 1,
    "StefaBot": lambda s: 1 if s.opened or s.played == 3 else 0,
    "SusBoi": lambda s: {1: 0.3, 2: 0.6, 3: 0.9}[s.played] if s.holds else 1,
    "UsualBot": usual_doubt,
}


@pytest.mark.parametrize("name", C)
def test_node_c_doubts_as_described(name: str) -> None:
    for situation in SITUATIONS:
        player = in_seat(REGISTRY.bots[name].cls, situation.hand)
        found = chance(player, "C", situation.turn)
        assert found == pytest.approx(C[name](situation), abs=FOUND_BY_BISECTION), situation


@pytest.mark.parametrize("name", ABDE)
def test_a_and_b_when_opening(name: str) -> None:
    for hand in (HOLDING, (5, 5, 5), (0,), tuple(range(1, 14))):
        for cards in (0, 1, 9, 30):
            p = opening(hand, prev=neighbour(0, cards), next=neighbour(2, 31 - cards))
            player = in_seat(REGISTRY.bots[name].cls, hand)
            found = [chance(player, node, p) for node in "AB"]
            assert found == pytest.approx(ABDE[name][:2], abs=FOUND_BY_BISECTION), p


@pytest.mark.parametrize("name", ABDE)
def test_d_and_e_on_a_regular_turn(name: str) -> None:
    for situation in SITUATIONS:
        player = in_seat(REGISTRY.bots[name].cls, situation.hand)
        found = [chance(player, node, situation.turn) for node in "DE"]
        assert found == pytest.approx(ABDE[name][2:], abs=FOUND_BY_BISECTION), situation


def test_mr_doubt_reaches_d_only_when_it_may_not_doubt() -> None:
    """R4: if the previous player has left the game, MrDoubt plays three random cards."""
    player = in_seat(REGISTRY.bots["MrDoubt"].cls, (NUMBER, 1, 2))
    assert player.play(regular((NUMBER, 1, 2))).doubt is True
    output = player.play(regular((NUMBER, 1, 2), can_doubt=False))
    assert output.doubt is False
    assert output.cards == [NUMBER, 1, 2]


def test_every_hand_written_bot_of_the_source_has_its_strategy_tested() -> None:
    elsewhere = {"RiskCounter", "AdaptyBoi", "ClaudeBot"}  # test_strategies_with_sums.py
    source = {bot.name for bot in REGISTRY.bots.values() if "isBre/Dubito" in bot.cls.origin}
    assert source == C.keys() | elsewhere
    assert C.keys() == ABDE.keys()
