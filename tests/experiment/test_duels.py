"""Duels are counted by pair and seat, and their sums can be merged like all others."""

import json

import pytest

from dubito.game import Measure, Results
from dubito.report.run_tables import Duels, duel_tables
from dubito.report.tables import FEW_GAMES, HeatMap, Paragraph, ResultTable, value_range
from dubito.stats.rates import Rate, clustered_rate
from dubito.stats.tally import BOTH, Outcome, Tally, sum_deals

RESULTS = Results(
    buckets=("wins", "losses", "draws"),
    endings=("won", "lost", "drawn"),
    bucket=lambda mark, capped: mark,
    measures=(Measure("points", "points", "Points", (2, 0, 1), scale=2),),
    headline=("points",),
    equal_share=lambda seats: {"points": 1 / seats},
    game_counts=("turns",),
    seat_counts=(),
)
WON, LOST, DRAWN = range(3)


def game(first: int, second: int, ended: int) -> Outcome:
    marks = [ended, {WON: LOST, LOST: WON, DRAWN: DRAWN}[ended]]
    return Outcome((1,), False, None, [first, second], marks, [(0,), (0,)])


DEALS = [
    [game(0, 1, WON)],
    [game(0, 1, WON)],
    [game(0, 1, DRAWN)],
    [game(1, 0, LOST)],
    [game(2, 0, WON), game(0, 2, WON)],
]


@pytest.fixture
def tally() -> Tally:
    return sum_deals(DEALS, RESULTS)


def test_games_and_rates_are_by_pair_and_seat(tally: Tally) -> None:
    whole = Duels(tally, RESULTS, RESULTS.measures[0])
    assert [whole.games(*key) for key in ((0, 1, 0), (0, 1, 1), (0, 1), (1, 0), (0,), (1, 2))] == [3, 1, 4, 4, 6, 0]
    assert whole.rate(0, 1, 0) == clustered_rate(3, 3, 3, 5, 9, 5, 2)
    assert whole.rate(1, 0, 1).value == pytest.approx(1 / 6)
    assert whole.rate(0, 2) == clustered_rate(1, 2, 4, 2, 4, 4, 2)
    assert whole.rate(1, 2).value is None
    assert whole.rate(0).value == pytest.approx(9 / 12)


def test_advantage_is_the_first_players_extra_per_game(tally: Tally) -> None:
    rate = Duels(tally, RESULTS, RESULTS.measures[0]).first_player_advantage()
    assert rate.value == pytest.approx(3 / 6)
    assert -1 <= rate.low < 0.5 < rate.high <= 1


def test_parts_add_up_and_come_back_from_json(tally: Tally) -> None:
    parts = sum_deals(DEALS[:2], RESULTS) + (Tally() + sum_deals(DEALS[2:], RESULTS))
    assert parts.to_json() == tally.to_json()
    assert Tally.from_json(tally.to_json(), RESULTS).to_json() == tally.to_json()
    broken = json.loads(tally.to_json())
    broken["begun"] = [[0, [1] * 6]]
    with pytest.raises(ValueError, match="begun is not a table"):
        Tally.from_json(json.dumps(broken), RESULTS)


def test_tables_of_three_have_no_duel_sums() -> None:
    three = Outcome((1,), False, None, [0, 1, 2], [WON, LOST, LOST], [(0,)] * 3)
    whole = sum_deals([[three]], RESULTS)
    assert not {"seated", "begun"} & whole.tables.keys()
    assert Tally.from_json(whole.to_json(), RESULTS).to_json() == whole.to_json()


def test_matrix_and_pairs_agree(tally: Tally) -> None:
    names = ["A", "B", "C"]
    matrix, pairs, summary = duel_tables(tally, names, RESULTS)
    assert isinstance(matrix, ResultTable)
    assert isinstance(pairs, ResultTable)
    assert isinstance(summary, Paragraph)
    assert [row[0] for row in matrix.rows] == ["A", "C", "B"]
    assert [row[-1] for row in matrix.rows] == [6, 2, 4]
    assert [(row[0], row[2], row[-1]) for row in pairs.rows] == [("A", "C", 2), ("A", "B", 4)]
    assert summary.text.startswith("Going first is worth +50.0 [")
    assert [isinstance(cell, Rate) and cell.value for cell in matrix.rows[0][2:4]] == [1.0, pytest.approx(5 / 6)]
    assert Duels(tally, RESULTS, RESULTS.measures[0]).games(0, seat=BOTH) == 6


def test_cell_with_few_games_has_no_colour_and_no_effect_on_scale() -> None:
    cells: list[list[tuple[float | None, int]]] = [[(0.9, FEW_GAMES - 1), (0.4, FEW_GAMES)], [(0.2, 500), (None, 0)]]
    shown = HeatMap("", "", "AB", cells, [None, None], ResultTable("t", "", []), value_range(cells[0] + cells[1]))
    assert shown.ends == (0.2, 0.4)
    assert [shown.shade(value, games) for row in cells for value, games in row if value] == ["few", "h9", "h0"]
    assert shown.too_few == "Cells with fewer than 20 games have no colour."
    assert value_range([(0.5, 1), (None, 0)]) == (0.0, 0.0)
    pale = HeatMap("", "", "A", [[(0.5, 1), (None, 0)]], [None], ResultTable("t", "", []), (0.0, 0.0))
    assert pale.too_few == "No cell has a colour, since all have fewer than 20 games."
