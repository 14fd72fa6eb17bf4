"""`all_games.yaml` (R30, R31) and the ranking agree with a recount of the games."""

from collections import Counter
from typing import Any

import pytest

from dubito.games.dubito.engine import RESULTS
from dubito.games.dubito.game import GAME
from dubito.stats.ranking import all_games, by_table_size, ranking
from dubito.stats.tally import Outcome, Tally, sum_deals
from tests.experiment.kit import experiment, outcomes

BOTS = ["StefaBot", "ClaudeBot", "AlwaysTruthful", "MrDoubt"]
FIELDS = ["bluffs", "bluff_caught", "doubts", "successful_doubts", "cards_played", "play_turns", "not_first_turns"]


def games() -> list[Outcome]:
    return outcomes(experiment(bots=BOTS, games=150, table_sizes=[3, 4, 6], rules={"max_turns": 60}))


def recounted(played: list[Outcome], player: int, bucket: str) -> dict[str, Any]:
    """Count a bucket (R30) seat by seat, in the simplest way."""
    seats = [
        (game, seat)
        for game in played
        for seat, who in enumerate(game.seats)
        if who == player and bucket in ("total", RESULTS.buckets[game.buckets(RESULTS)[seat]])
    ]
    sums = {name: sum(game.counts[seat][RESULTS.counts.index(name)] for game, seat in seats) for name in FIELDS}
    positions = []
    for game, seat in seats:
        n, place = len(game.seats), game.marks[seat] or len(game.seats) - 0.5
        if game.marks[seat] or not game.capped:
            positions.append((n - place) / (n - 1))
    cards = [game.counts[seat][0] for game, seat in seats]
    return {
        "games": len(seats),
        "avg_cards": sum(cards) / len(cards) if cards else None,
        **sums,
        "relative_position": sum(positions) / len(positions) if positions else None,
        "prev": Counter(BOTS[game.seats[seat - 1]] for game, seat in seats),
        "next": Counter(BOTS[game.seats[(seat + 1) % len(game.seats)]] for game, seat in seats),
    }


def test_r30_r31_every_field_of_every_bucket() -> None:
    played = games()
    results = all_games(sum_deals([[game] for game in played], RESULTS), BOTS, GAME)
    assert list(results) == BOTS
    buckets = ["total", *(result for result in RESULTS.buckets)]
    for player, name in enumerate(BOTS):
        assert list(results[name]) == [*buckets, "by_table_size"]
        for bucket in buckets:
            expected, actual = recounted(played, player, bucket), results[name][bucket]
            assert list(actual) == list(expected)
            for side in ("prev", "next"):
                assert actual.pop(side) == {bot: expected[side][bot] for bot in BOTS}
                del expected[side]
            for field, value in expected.items():
                assert actual[field] == (None if value is None else pytest.approx(value, rel=1e-12))
    assert any(results[name]["unfinished"]["games"] for name in BOTS), "some games must reach the cap"
    assert results["ClaudeBot"]["hard_wins"]["avg_cards"] == 0, "winners hold no cards"


def test_r30_total_is_the_sum_of_the_other_four() -> None:
    for buckets in all_games(sum_deals([[game] for game in games()], RESULTS), BOTS, GAME).values():
        parts = [buckets[result] for result in RESULTS.buckets]
        for name in ("games", *FIELDS):
            assert buckets["total"][name] == sum(part[name] for part in parts)


def test_r30_results_are_split_by_table_size() -> None:
    played = games()
    results = all_games(sum_deals([[game] for game in played], RESULTS), BOTS, GAME)
    for name, buckets in results.items():
        sizes = buckets["by_table_size"]
        assert list(sizes) == [3, 4, 6]
        for size, row in sizes.items():
            seats = [(g, s) for g in played for s, p in enumerate(g.seats) if len(g.seats) == size and BOTS[p] == name]
            assert row["games"] == len(seats)
            for place, result in enumerate(RESULTS.buckets):
                assert row[result] == sum(g.buckets(RESULTS)[s] == place for g, s in seats)
        assert sum(row["hard_wins"] for row in sizes.values()) == buckets["hard_wins"]["games"]


def test_r31_the_two_losers_share_their_place() -> None:
    """With N = 4 and places 1, 2, 3.5 and 3.5, the relative positions are 1, 2/3, 1/6 and 1/6."""
    game = Outcome((9, 0), False, None, [0, 1, 2, 3], [1, 2, 0, 0], [(0,) * len(RESULTS.counts)] * 4)
    results = all_games(sum_deals([[game]], RESULTS), BOTS, GAME)
    positions = [results[name]["total"]["relative_position"] for name in BOTS]
    assert positions == pytest.approx([1, 2 / 3, 1 / 6, 1 / 6])


def test_r31_means_without_data_are_null() -> None:
    game = Outcome((9, 0), True, None, [0, 1, 2], [0, 0, 0], [(5,) * len(RESULTS.counts)] * 3)
    results = all_games(sum_deals([[game]], RESULTS), BOTS, GAME)
    assert results["StefaBot"]["total"]["relative_position"] is None, "unfinished seats are left out"
    assert results["StefaBot"]["hard_wins"]["avg_cards"] is None
    assert results["MrDoubt"]["total"]["avg_cards"] is None


def test_chunks_add_up_in_any_grouping() -> None:
    deals = [[game] for game in games()]
    whole = sum_deals(deals, RESULTS).to_json()
    for cut in (1, 70, 149):
        assert (sum_deals(deals[:cut], RESULTS) + sum_deals(deals[cut:], RESULTS)).to_json() == whole
        assert (sum_deals(deals[cut:], RESULTS) + sum_deals(deals[:cut], RESULTS)).to_json() == whole
    assert Tally.from_json(whole, RESULTS).to_json() == whole


def test_one_bot_twice_at_a_table_counts_twice_and_clusters() -> None:
    game = Outcome((9, 0), False, None, [0, 0, 1], [1, 0, 0], [(0,) * len(RESULTS.counts)] * 3)
    row = {row.name: row for row in ranking(sum_deals([[game]] * 40, RESULTS), BOTS[:2], RESULTS)}["StefaBot"]
    assert row.games == 80
    assert row.rates["hard_wins"].value == 0.5
    deals, m2 = sum_deals([[game]] * 40, RESULTS).tables["clusters"][0,][:2]
    assert (deals, m2) == (40, 160)


def test_the_ranking_orders_by_score_and_shows_equal_shares() -> None:
    tally = sum_deals([[game] for game in games()], RESULTS)
    rows = ranking(tally, BOTS, RESULTS)
    scores = [row.rates["score"].value or 0 for row in rows]
    assert scores == sorted(scores, reverse=True)
    for row in rows:
        at_sizes = [r for r in by_table_size(tally, BOTS, RESULTS) if r.name == row.name]
        expected = sum(r.games * r.equal_share["score"] for r in at_sizes) / row.games
        assert row.equal_share["score"] == pytest.approx(expected)
        hard, soft = row.rates["hard_wins"].value, row.rates["soft_wins"].value
        assert row.rates["score"].value == pytest.approx((hard or 0) + (soft or 0) / 2)
