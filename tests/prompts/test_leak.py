"""A prompt reveals neither hidden cards nor names."""

import itertools
from collections.abc import Iterator
from dataclasses import replace
from itertools import cycle
from random import Random

import pytest

from dubito.game.streams import DealStreams
from dubito.game.table import Entrant, step
from dubito.games.dubito.engine import Rules, State, deal_table
from dubito.games.dubito.facts import facts
from dubito.games.dubito.worlds import sample_world
from dubito.workshop.audit import find_leak
from tests.conftest import in_gate
from tests.prompts.kit import PROMPTS, RULES, SIZES, asked_bot, by_temper, turns


def questions(game: State) -> Iterator[tuple[str, dict[str, bool]]]:
    """Yield every node that the walk can reach in this turn, with every path to it."""
    if not game.number:
        yield "A", {}
        yield "B", {"A": True}
        yield "B", {"A": False}
        return
    before = {"C": False} if game.can_doubt else {}
    if game.can_doubt:
        yield "C", {}
    if game.number in game.hands[game.seat].cards:
        yield "D", before
        yield "E", before | {"D": True}
        yield "E", before | {"D": False}
    else:
        yield "E", before


@pytest.mark.parametrize(("rules", "size"), in_gate(itertools.product(RULES, SIZES), [(RULES[1], 3)]), ids=str)
def test_worlds_with_other_unseen_cards_render_the_same_bytes(rules: Rules, size: int, at_length: bool) -> None:
    """Compare every possible question in every turn of a whole game. The gate uses one of the prompts in turn."""
    chance, decisions, in_turn = Random(size), 0, cycle(PROMPTS.values())
    for game, asked in turns(rules, size, 1):
        world = sample_world(asked[0], chance)
        for node, answers in questions(game):
            here = replace(asked[0], node=node, answers=answers)
            there = world.replay_position(here)
            decisions += 1
            assert facts(here) == facts(there)
            for prompt in PROMPTS.values() if at_length else [next(in_turn)]:
                assert find_leak(prompt, here, there) is None
    assert decisions > 20


@pytest.mark.parametrize("rules", in_gate(RULES[:2], 1), ids=str)
def test_names_of_players_and_bots_reach_no_prompt(rules: Rules) -> None:
    def texts(names: list[str]) -> list[str]:
        bot = asked_bot(rules, by_temper)
        table = deal_table([Entrant(name, bot) for name in names], rules, DealStreams(3, 3), deal=3)
        said = []
        while not table.state.over:
            player = table.players[table.state.seat]
            assert isinstance(player, bot)
            step(table)
            said += [str(prompt.render(position)) for position in player.asked[-1:] for prompt in PROMPTS.values()]
        return said

    said = texts(["Zorro-17", "Ötzi", "RandomBoi", "seat 9"])
    assert len(said) > 20
    assert said == texts(["a", "b", "c", "d"])
    assert not any(name in text for text in said for name in ("Zorro", "Ötzi", "RandomBoi", "seat 9"))
