"""Second worlds of Dubito look the same to the seat but differ in the hidden truth."""

from random import Random
from typing import cast

import pytest

from dubito.errors import IllegalOutput
from dubito.game.events import EVERYTHING, AnswerEvent
from dubito.game.log import Log, Position, SeatLog
from dubito.games.dubito.cards import Hand, TurnOutput
from dubito.games.dubito.engine import Rules, State
from dubito.games.dubito.facts import DubitoFacts, sample_table
from dubito.games.dubito.game import GAME
from dubito.games.dubito.worlds import World, sample_world
from dubito.workshop.recordings import Origin, Watcher
from tests.conftest import in_gate


def log_of(world: World, seat: int) -> SeatLog:
    """Return what a seat has seen in a world. Raises IllegalOutput for an impossible move."""
    state = State(world.rules, [Hand(list(hand), world.rules.copies) for hand in world.hands])
    log = Log(state.start)
    for move in world.moves:
        log.add(state.apply(move, EVERYTHING))
    return log.of(seat)


def without_answers(position: Position) -> SeatLog:
    return SeatLog(position.seat, [event for event in position.log if not isinstance(event, AnswerEvent)])


def watched(rules: Rules, size: int) -> list[tuple[World, Position]]:
    """Return the questions of a sample game, each with the world in which it is asked."""
    table = sample_table(rules, size, size)
    watcher = Watcher(table, Origin(None, 0, size, size), GAME, GAME.rules(**rules.stored_form()))
    hands = tuple(tuple(hand.cards) for hand in table.state.hands)
    moves: list[TurnOutput] = []
    found = []
    while not table.state.over:
        before, so_far = len(watcher.recorded), tuple(moves)
        moves.append(cast(TurnOutput, watcher.step()))
        found += [(World(rules, hands, so_far), one.position) for one in watcher.recorded[before:]]
    return found


@pytest.mark.parametrize("size", in_gate([3, 5, 8], 2))
@pytest.mark.parametrize("rules", in_gate([Rules(win_rule="contested"), Rules(jokers=0), Rules()], 1), ids=str)
def test_another_world_looks_the_same_to_the_seat(rules: Rules, size: int) -> None:
    """One of the two worlds is the game that was played."""
    chance, others, questions = Random(1), 0, watched(rules, size)
    for world, position in questions[::3]:
        log = without_answers(position)
        assert log_of(world, position.seat) == log
        other = sample_world(rules, log, chance)
        assert sorted(other.hands[position.seat]) == sorted(world.hands[position.seat])
        assert log_of(other, position.seat) == log
        others += truth(other) != truth(world)
    assert others > 0.8 * len(questions[::3]) > 5


def truth(world: World) -> object:
    return [sorted(hand) for hand in world.hands], [sorted(move.cards or ()) for move in world.moves]


def test_other_deals_and_missing_moves_are_detected() -> None:
    world, position = next(
        (w, p) for w, p in watched(Rules(), 3) if len(DubitoFacts().facts(p)["own_plays"]) > 1 and len(w.moves) > 6
    )
    own = world.hands[position.seat]
    other = (position.seat + 1) % 3
    swapped = list(world.hands)
    swapped[position.seat], swapped[other] = world.hands[other], own
    with pytest.raises(IllegalOutput):
        log_of(World(world.rules, tuple(swapped), world.moves), position.seat)
    assert log_of(World(world.rules, world.hands, world.moves[:-1]), position.seat) != without_answers(position)


def test_world_depends_only_on_the_seats_observations() -> None:
    for _, position in watched(Rules(), 5)[::7]:
        log = without_answers(position)
        there = log_of(sample_world(Rules(), log, Random(1)), position.seat)
        assert sample_world(Rules(), there, Random(2)) == sample_world(Rules(), log, Random(2))
