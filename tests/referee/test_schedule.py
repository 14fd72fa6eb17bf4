"""Who meets whom, and what a match is drawn from."""

from itertools import combinations

import pytest

from dubito.referee.schedule import Pairing, pairings, rounds, seats, seeds, startable


@pytest.mark.parametrize("bots", range(2, 10))
def test_every_two_meet_once_and_nobody_twice_in_a_round(bots: int) -> None:
    found = list(rounds(bots))
    assert sorted(pair for pairs in found for pair in pairs) == list(combinations(range(bots), 2))
    for pairs in found:
        playing = [bot for pair in pairs for bot in pair]
        assert len(set(playing)) == len(playing) >= bots - 1


def test_a_pair_waits_until_both_its_bots_are_free() -> None:
    waiting = pairings(2, 4)
    assert len(waiting) == 12
    chosen = startable(waiting, {1, 2})
    assert chosen is not None
    assert set(chosen.bots) == {0, 3}
    assert startable(waiting, {0, 1, 2}) is None
    assert waiting[0] == Pairing(0, (0, 3))


def test_each_sits_in_seat_0_in_every_other_match() -> None:
    assert [seats(match) for match in range(4)] == [(0, 1), (1, 0), (0, 1), (1, 0)]


def test_seeds_of_a_match_are_its_own_and_always_the_same() -> None:
    first = seeds(0, "kuhn_poker", ("a", "b"), 0)
    assert first.chance == 5097864269123121937
    others = [
        seeds(1, "kuhn_poker", ("a", "b"), 0),
        seeds(0, "leduc_poker", ("a", "b"), 0),
        seeds(0, "kuhn_poker", ("a", "c"), 0),
        seeds(0, "kuhn_poker", ("a", "b"), 1),
    ]
    assert len({first.chance, *first.replacements, *first.bots}) == 5
    assert len({one.chance for one in [first, *others]}) == 5


def test_twins_share_their_chance_draws_and_nothing_else() -> None:
    one, other, next_one = (seeds(0, "kuhn_poker", ("a", "b"), match, twins=True) for match in range(3))
    assert one.chance == other.chance != next_one.chance
    assert set(one.replacements).isdisjoint(other.replacements)
