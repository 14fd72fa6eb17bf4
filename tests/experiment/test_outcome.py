"""Packed rows are small and exact, and invalid ones are rejected."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dubito.games.dubito.engine import RESULTS
from dubito.stats.tally import Outcome, unpack_outcome

small = st.integers(0, 300)
counts = st.tuples(*(st.one_of(st.integers(0, 60), st.integers(0, 70_000)) for _ in RESULTS.counts))


@st.composite
def any_outcome(draw: st.DrawFn) -> Outcome:
    n = draw(st.integers(3, 8))
    return Outcome(
        game_counts=(draw(st.integers(0, 1000)), draw(small)),
        capped=draw(st.booleans()),
        contender_seat=draw(st.none() | st.integers(0, n - 1)),
        seats=draw(st.lists(small, min_size=n, max_size=n)),
        marks=draw(st.lists(st.integers(0, 6), min_size=n, max_size=n)),
        counts=draw(st.lists(counts, min_size=n, max_size=n)),
    )


@given(any_outcome())
def test_unpack_is_the_inverse_of_pack(outcome: Outcome) -> None:
    assert unpack_outcome(outcome.pack(), RESULTS) == outcome


def test_typical_row_takes_one_byte_per_number() -> None:
    outcome = Outcome((40, 6), False, None, [0, 1, 2], [0, 1, 0], [(9,) * len(RESULTS.counts)] * 3)
    assert len(outcome.pack()) == 1 + 5 + 3 * (2 + len(RESULTS.counts))


def test_results_follow_places_and_the_cap() -> None:
    outcome = Outcome((40, 6), False, None, [0, 1, 2, 3], [2, 1, 0, 0], [(9,) * len(RESULTS.counts)] * 4)
    named = [RESULTS.buckets[outcome.buckets(RESULTS)[seat]] for seat in range(4)]
    assert named == ["soft_wins", "hard_wins", "losses", "losses"]
    outcome.capped = True
    assert [RESULTS.buckets[outcome.buckets(RESULTS)[seat]] for seat in (1, 2)] == ["hard_wins", "unfinished"]


@pytest.mark.parametrize("row", [b"", b"\x01", b"\x03abc", b"\x01\x03\x00", b"\x02abc", b"\x01" + b"\x00" * 38])
def test_invalid_row_is_refused(row: bytes) -> None:
    with pytest.raises(ValueError, match="not a packed outcome"):
        unpack_outcome(row, RESULTS)
