"""Second worlds: the seat sees the same, the truth is another."""

from random import Random

from dubito.games.dubito.cards import TurnOutput
from dubito.games.dubito.engine import Rules
from dubito.games.dubito.facts import Position, World, pairs, sample_table
from dubito.games.dubito.game import GAME
from dubito.workshop.recordings import Origin, Watcher
from tests.conftest import cases


def watched(rules: Rules, size: int) -> list[tuple[World, Position]]:
    """The questions of a sample game, each with the world in which it is asked."""
    table = sample_table(rules, size, size)
    watcher = Watcher(table, Origin(None, 0, size, size), GAME, rules)
    hands = tuple(tuple(hand.cards) for hand in table.state.hands)
    moves: list[TurnOutput] = []
    found = []
    while not table.state.over:
        before, so_far = len(watcher.recorded), tuple(moves)
        moves.append(watcher.step())
        found += [(World(rules, hands, so_far), one.position) for one in watcher.recorded[before:]]
    return found


@cases("rules", [Rules(), Rules(win_rule="contested"), Rules(jokers=0)])
@cases("size", [3, 5, 8])
def test_a_world_shows_each_seat_what_it_saw_whatever_is_changed(rules: Rules, size: int) -> None:
    chance, possible = Random(1), 0
    for world, position in watched(rules, size):
        assert world.seen(position) == position
        other = world.changed(position.seat, chance)
        assert truth(other) != truth(world)
        assert other.hands[position.seat] == world.hands[position.seat]
        seen = other.seen(position)
        assert seen in (None, position)
        possible += seen is not None
    assert possible > 5


def truth(world: World) -> object:
    """What no seat may know: who was dealt what, and what was put down."""
    return [sorted(hand) for hand in world.hands], [sorted(move.cards or ()) for move in world.moves]


def test_a_world_in_which_the_seat_saw_anything_else_is_none() -> None:
    world, position = next((w, p) for w, p in watched(Rules(), 3) if len(p.own_plays) > 1 and len(w.moves) > 6)
    own = world.hands[position.seat]
    other = (position.seat + 1) % 3
    swapped = list(world.hands)
    swapped[position.seat], swapped[other] = world.hands[other], own
    assert World(world.rules, tuple(swapped), world.moves).seen(position) is None
    assert World(world.rules, world.hands, world.moves[:-1]).seen(position) is None


def test_a_deal_that_no_game_begins_with_is_no_world() -> None:
    """R2: nobody is dealt four of a number."""
    world, position = watched(Rules(), 5)[0]
    assert world.moves == ()
    four = (7, 7, 7, 7, *world.hands[1][4:])
    assert World(world.rules, (world.hands[0], four, *world.hands[2:])).seen(position) is None
    three = (7, 7, 7, 8, *(card for card in world.hands[1][4:] if card != 7), 9, 9)[: len(four)]
    assert World(world.rules, (world.hands[0], three, *world.hands[2:])).seen(position) == position


def test_most_positions_of_a_game_have_a_second_world() -> None:
    questions = len(watched(Rules(), 3))
    assert len(list(pairs(Rules(), 3, 3))) > questions / 2
    assert list(pairs(Rules(), 3, 3)) == list(pairs(Rules(), 3, 3))
