"""Who meets whom, and what a match is drawn from."""

from itertools import combinations

import pytest

from dubito.plugins.tournament.plan import Pairing, Source, pairings, rounds, seats, startable
from dubito.plugins.tournament.programs import cores_of


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


def test_a_bot_meets_its_opponents_in_the_order_of_rounds() -> None:
    waiting = [Pairing(0, (0, 1)), Pairing(0, (1, 2)), Pairing(0, (2, 3)), Pairing(0, (4, 5))]
    assert startable(waiting, {0}) == Pairing(0, (4, 5))


def test_bots_that_stay_are_told_one_seed() -> None:
    source = Source(0, "secret", stay=True)
    one, other, fourth = (source.seeds("kuhn_poker", ("a", "b"), match) for match in (0, 1, 4))
    assert one.bots == fourth.bots != other.bots
    assert one.chance != fourth.chance


def test_a_bot_has_its_own_core_only_if_all_have() -> None:
    assert [cores_of(number, 2, [1, 3, 5, 6]) for number in range(2)] == [(1, 3), (5, 6)]
    assert [cores_of(number, 2, [1, 3, 5]) for number in range(2)] == [None, None]


def test_each_sits_in_seat_0_in_every_other_match() -> None:
    assert [seats(match) for match in range(4)] == [(0, 1), (1, 0), (0, 1), (1, 0)]


def test_seeds_of_a_match_are_its_own_and_always_the_same() -> None:
    source = Source(0, "secret")
    first = source.seeds("kuhn_poker", ("a", "b"), 0)
    assert first.chance == (5987910173880698725,)
    others = [
        Source(1, "secret").seeds("kuhn_poker", ("a", "b"), 0),
        source.seeds("leduc_poker", ("a", "b"), 0),
        source.seeds("kuhn_poker", ("a", "c"), 0),
        source.seeds("kuhn_poker", ("a", "b"), 1),
    ]
    assert len({*first.chance, *first.replacements, *first.bots}) == 5
    assert len({one.chance for one in [first, *others]}) == 5


def test_all_draws_but_the_bots_own_come_from_the_secret() -> None:
    one, other = (Source(0, secret).seeds("kuhn_poker", ("a", "b"), 0) for secret in ("one", "other"))
    assert one.bots == other.bots
    assert one.chance != other.chance
    assert set(one.replacements).isdisjoint(other.replacements)


def test_twins_share_their_chance_draws_and_nothing_else() -> None:
    source = Source(0, "secret", twins=True)
    one, other, next_one = (source.seeds("kuhn_poker", ("a", "b"), match) for match in range(3))
    assert one.chance == other.chance != next_one.chance
    assert set(one.replacements).isdisjoint(other.replacements)
