"""Instant run-off voting: the announcement's example, OpenSpiel's count, and all ties."""

from collections.abc import Sequence
from fractions import Fraction
from random import Random

import pytest

from dubito.plugins.tournament.pages import describe_outcome
from dubito.plugins.tournament.standings import GameRanking, Number, final_places, is_disqualified, rank_game

A, B, C = range(3)
G1 = [[0, 2, 3], [-2, 0, -1], [-3, 1, 0]]
G2 = [[0, -1, 2], [1, 0, 5], [-2, -5, 0]]


def ranked(rows: Sequence[Sequence[Number]]) -> GameRanking:
    bots = range(len(rows))
    scores = {(i, j): rows[i][j] for i in bots for j in bots if i != j}
    return rank_game(scores, bots, "ABCDEFGHIJ")


def order(ranking: GameRanking) -> list[tuple[int, ...]]:
    return [place.bots for place in ranking.places]


def test_announcements_example_has_its_places() -> None:
    one, other = ranked(G1), ranked(G2)
    assert one.ballots == {A: [B, C], B: [A, C], C: [A, B]}
    assert [dict(place.rounds[0].votes) for place in one.places] == [{A: 2, B: 1, C: 0}, {B: 2, C: 1}, {C: 2}]
    assert order(one) == [(A,), (B,), (C,)]
    assert other.ballots == {A: [B, C], B: [A, C], C: [B, A]}
    assert order(other) == [(B,), (A,), (C,)]
    assert one.ties == other.ties == []
    ranks = {bot: [one.place_by_bot[bot], other.place_by_bot[bot]] for bot in (A, B, C)}
    assert final_places(ranks) == {A: 1, B: 1, C: 3}


def test_rankings_without_ties_match_openspiel(at_length: bool) -> None:
    from open_spiel.python.voting import base, stv

    stream, compared = Random(18), 0
    while compared < (1000 if at_length else 250):
        n = stream.choice((3, 5, 7))
        rows = [[0.0] * n for _ in range(n)]
        for i in range(n):
            for j in range(i):
                rows[i][j] = stream.uniform(-1, 1)
                rows[j][i] = -rows[i][j]
        ours = ranked(rows)
        if ours.ties:
            continue
        left, theirs = list(range(n)), []
        while len(left) > 1:
            votes = [[bot for bot in ballot if bot in left] for ballot in ours.ballots.values()]
            profile = base.PreferenceProfile(votes=[vote for vote in votes if vote], alternatives=left)
            theirs.append(stv.STVVoting(num_winners=1).run_election(profile).ranking[0])
            left.remove(theirs[-1])
        assert order(ours) == [(bot,) for bot in [*theirs, *left]]
        compared += 1


def test_two_bots_are_ranked_by_the_direct_result_or_share() -> None:
    assert order(ranked([[0, -1], [1, 0]])) == [(1,), (0,)]
    even = ranked([[0, 0], [0, 0]])
    assert order(even) == [(0, 1)]
    assert even.place_by_bot == {0: 1, 1: 1}
    assert even.ties == ["equal votes for A and B: they share the place"]


def test_direct_result_is_described() -> None:
    place = ranked([[0, 1], [-1, 0]]).places[0]
    assert describe_outcome("AB", place, 0) == "A takes place 1 by the direct result (1 of 2 each)"


def test_equal_scores_on_a_ballot_go_by_total_then_entry() -> None:
    ranking = ranked([[0, 1, 1], [-1, 0, 2], [-1, -2, 0]])
    assert ranking.ballots[0] == [1, 2]
    assert ranking.ties == ["A scored the same against B and C: the higher total decides its ballot"]
    result = ranked([[0, 1, 1], [-1, 0, 0], [-1, 0, 0]])
    assert result.ballots[0] == [1, 2]
    assert "A scored the same against B and C: the order of entry decides its ballot" in result.ties


def test_sum_against_tied_bots_decides_who_is_dropped() -> None:
    """The bots beat each other in a circle by different scores, so each has one vote."""
    rows = [[0, 3, -1], [-3, 0, 4], [1, -4, 0]]
    ranking = ranked(rows)
    first = ranking.places[0].rounds[0]
    assert dict(first.votes) == {0: 1, 1: 1, 2: 1}
    assert first.dropped == (2,)
    assert ranking.ties == ["fewest votes (1) for A, B and C: the lowest sum against each other is dropped"]


def test_indistinguishable_bots_share_a_place() -> None:
    ranking = ranked([[0, 1, -1], [-1, 0, 1], [1, -1, 0]])
    assert order(ranking) == [(0, 1, 2)]
    assert ranking.ties == ["equal votes and scores of A, B and C: they share the place"]
    assert final_places({0: [1, 1], 1: [1, 1], 2: [1, 2]}) == {0: 1, 1: 1, 2: 3}


def test_final_order_compares_worst_places_first() -> None:
    assert final_places({0: [1, 3], 1: [2, 2], 2: [3, 1]}) == {0: 2, 1: 1, 2: 2}


def test_bots_without_first_choices_are_dropped_together() -> None:
    """The first three beat each other in a circle by different scores. The last three are nobody's first choice."""
    rows = [[0.0] * 6 for _ in range(6)]
    for one, other, score in ((0, 1, 5.0), (1, 2, 6), (2, 0, 7), (0, 3, 9), (1, 3, 8), (2, 3, 9), (3, 4, 1), (3, 5, 2)):
        rows[one][other], rows[other][one] = score, -score
    for one, other, score in ((0, 4, 3), (0, 5, 4), (1, 4, 3.5), (1, 5, 4.5), (2, 4, 3.2), (2, 5, 4.2), (4, 5, 1)):
        rows[one][other], rows[other][one] = score, -score
    ranking = ranked(rows)
    first = ranking.places[0].rounds[0]
    assert first.votes[3] == first.votes[4] == first.votes[5] == 0
    assert first.dropped == (3, 4, 5)
    assert not [tie for tie in ranking.ties if "fewest votes (0)" in tie]


def test_sums_are_compared_exactly() -> None:
    tenth = Fraction(0.1)
    rows: list[list[Fraction | int]] = [[0, 3 * tenth, Fraction(0.3)], [-3 * tenth, 0, 1], [-Fraction(0.3), -1, 0]]
    assert not [tie for tie in ranked(rows).ties if "scored the same" in tie]


@pytest.mark.parametrize(
    ("failed", "matches", "out"), [(0, 0, False), (1, 100, False), (2, 199, True), (50, 5000, False)]
)
def test_more_than_one_percent_disqualifies(failed: int, matches: int, out: bool) -> None:
    assert is_disqualified(failed, matches) is out
