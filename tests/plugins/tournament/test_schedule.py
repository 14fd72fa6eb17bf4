"""The schedule, and the seeds of a match."""

from itertools import combinations

import pytest

from dubito.plugins.tournament.plan import Pairing, SeedSource, list_pairings, list_rounds, match_seats, next_pairing
from dubito.sandbox.programs import assign_cores


@pytest.mark.parametrize("bots", range(2, 10))
def test_every_pair_meets_once_and_no_bot_plays_twice_per_round(bots: int) -> None:
    found = list(list_rounds(bots))
    assert sorted(pair for pairs in found for pair in pairs) == list(combinations(range(bots), 2))
    for pairs in found:
        playing = [bot for pair in pairs for bot in pair]
        assert len(set(playing)) == len(playing) >= bots - 1


def test_pair_waits_until_both_bots_are_free() -> None:
    waiting = list_pairings(2, 4)
    assert len(waiting) == 12
    chosen = next_pairing(waiting, {1, 2})
    assert chosen is not None
    assert set(chosen.bots) == {0, 3}
    assert next_pairing(waiting, {0, 1, 2}) is None
    assert waiting[0] == Pairing(0, (0, 3))


def test_a_bot_meets_its_opponents_in_the_order_of_rounds() -> None:
    waiting = [Pairing(0, (0, 1)), Pairing(0, (1, 2)), Pairing(0, (2, 3)), Pairing(0, (4, 5))]
    assert next_pairing(waiting, {0}) == Pairing(0, (4, 5))


def test_persistent_bots_get_one_seed() -> None:
    source = SeedSource(0, "secret", stay=True)
    one, other, fourth = (source.seeds("kuhn_poker", ("a", "b"), match) for match in (0, 1, 4))
    assert one.bots == fourth.bots != other.bots
    assert one.chance != fourth.chance


def test_bots_have_their_own_cores_only_if_there_are_enough() -> None:
    assert [assign_cores(number, 2, [1, 3, 5, 6]) for number in range(2)] == [(1, 3), (5, 6)]
    assert [assign_cores(number, 2, [1, 3, 5]) for number in range(2)] == [None, None]


def test_seats_alternate_between_matches() -> None:
    assert [match_seats(match) for match in range(4)] == [(0, 1), (1, 0), (0, 1), (1, 0)]


def test_seeds_are_unique_and_reproducible() -> None:
    source = SeedSource(0, "secret")
    first = source.seeds("kuhn_poker", ("a", "b"), 0)
    assert first.chance == (5987910173880698725,)
    others = [
        SeedSource(1, "secret").seeds("kuhn_poker", ("a", "b"), 0),
        source.seeds("leduc_poker", ("a", "b"), 0),
        source.seeds("kuhn_poker", ("a", "c"), 0),
        source.seeds("kuhn_poker", ("a", "b"), 1),
    ]
    assert len({*first.chance, *first.replacements, *first.bots}) == 5
    assert len({one.chance for one in [first, *others]}) == 5


def test_secret_determines_all_draws_except_the_bots_seeds() -> None:
    one, other = (SeedSource(0, secret).seeds("kuhn_poker", ("a", "b"), 0) for secret in ("one", "other"))
    assert one.bots == other.bots
    assert one.chance != other.chance
    assert set(one.replacements).isdisjoint(other.replacements)


def test_twins_share_only_chance_draws() -> None:
    source = SeedSource(0, "secret", twins=True)
    one, other, next_one = (source.seeds("kuhn_poker", ("a", "b"), match) for match in range(3))
    assert one.chance == other.chance != next_one.chance
    assert set(one.replacements).isdisjoint(other.replacements)
