"""What the pages say is what the run counted: `all_games.yaml`, and the functions that the summary prints."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from dubito.experiment.contenders import contender_pairs
from dubito.experiment.ranking import by_table_size, ranking
from dubito.experiment.statistics import Rate
from dubito.report.scan import scan
from dubito.report.source import opened
from dubito.report.tables import Column, Table, shown
from tests.report.kit import Seen, data, hand_written, records, reported

COUNTS = ("play_turns", "bluffs", "bluff_caught", "not_first_turns", "doubts", "successful_doubts", "cards_played")
RESULTS = ("hard_wins", "soft_wins", "losses", "unfinished")


def published(run: Path) -> dict[str, Any]:
    content: dict[str, Any] = yaml.safe_load((run / "all_games.yaml").read_text())
    return content


@pytest.mark.parametrize("which", ["bots_run", "models_run"])
def test_counts_are_those_of_all_games(which: str, request: pytest.FixtureRequest) -> None:
    run: Path = request.getfixturevalue(which)
    counted = published(run)
    page = Seen(run / "report" / "strategy.html")
    in_words = {name.strip(): cells for name, *cells in page.tables["counts"][1:]}
    for row in data(run / "report", "counts"):
        total = counted[row["bot"]]["total"]
        assert {count: row[count] for count in COUNTS} == {count: total[count] for count in COUNTS}
        assert in_words[row["bot"]] == [f"{total[count]:,}" for count in COUNTS]
    assert in_words.keys() == counted.keys()


def test_results_are_those_of_all_games(bots_run: Path) -> None:
    for row in data(bots_run / "report", "outcomes"):
        own = published(bots_run)[row["bot"]]
        assert [row[result] for result in RESULTS] == [own[result]["games"] for result in RESULTS]
        assert row["relative_position"] == pytest.approx(own["total"]["relative_position"])
        assert row["hard_wins_rate"] == pytest.approx(own["hard_wins"]["games"] / own["total"]["games"])


def test_neighbours_are_those_of_all_games(bots_run: Path) -> None:
    counted = published(bots_run)
    for side, key in (("next", "next"), ("previous", "prev")):
        rows = data(bots_run / "report", f"hard-wins-by-{side}")
        assert rows
        for row in rows:
            own, other = counted[row["bot"]], row[side]
            sat = own["total"][key][other]
            assert (row["games"], row["hard_wins"]) == (sat, pytest.approx(own["hard_wins"][key][other] / sat))


def test_a_map_shows_the_neighbours_rates(bots_run: Path) -> None:
    counted = published(bots_run)
    head, *rows = Seen(bots_run / "report" / "neighbours.html").tables["hard-wins-by-next"]
    for name, *cells in rows:
        own = counted[name]
        for other, cell in zip(head[1:-1], cells, strict=False):
            assert cell == f"{100 * own['hard_wins']['next'][other] / own['total']['next'][other]:.0f}"


def test_ranking_is_that_of_the_summary(bots_run: Path) -> None:
    with opened(bots_run) as source:
        rows = ranking(source.tally, source.names)
    seen = Seen(bots_run / "report" / "index.html").tables["ranking"][1:]
    assert [cells[0] for cells in seen] == [row.name for row in rows]
    for cells, row in zip(seen, rows, strict=True):
        assert cells[2] == shown(row.rates["score"], "rate")
        assert cells[-2] == f"{100 * row.equal_share['score']:.1f}"


def test_pairs_are_those_of_the_summary(models_run: Path) -> None:
    with opened(models_run) as source:
        (pair,) = contender_pairs(source.tally, source.compared)
    (row,) = data(models_run / "report", "pairs")
    assert (row["score"], row["score_low"], row["score_high"]) == (
        pair.score.rate.value,
        pair.score.rate.low,
        pair.score.rate.high,
    )


def test_each_table_size_has_its_own_equal_share(bots_run: Path) -> None:
    shares = {row["size"]: row["equal_share_hard_wins"] for row in data(bots_run / "report", "by-table-size")}
    assert shares == {3: pytest.approx(1 / 3), 5: pytest.approx(1 / 5)}


def test_intervals_of_a_size_are_those_of_a_run_of_that_size(tmp_path: Path) -> None:
    hand_written(tmp_path / "run", table_sizes=[4])
    with opened(tmp_path / "run") as source:
        scanned = scan(source)
        assert scanned is not None
        for row in ranking(source.tally, source.names):
            for measure, rate in row.rates.items():
                assert scanned.sized(source.names.index(row.name), 4, measure) == rate


def test_a_long_run_says_what_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hand_written(tmp_path / "run")
    monkeypatch.setattr("dubito.report.scan.SCANNED", 59)
    report = reported(tmp_path / "run")
    with opened(tmp_path / "run") as source:
        plain = {(row.name, row.size): row.rates["score"] for row in by_table_size(source.tally, source.names)}
    sizes = json.loads((report / "data" / "by-table-size.json").read_text())
    assert {(row["bot"], row["size"]): row["score"] for row in sizes["rows"]} == plain
    assert "score_low" not in sizes["rows"][0]
    assert "No intervals here" in sizes["notes"][0]
    assert "Nothing here" in Seen(report / "bots" / "0.html").words


def test_model_players_have_their_fallbacks_cost_and_decisions(models_run: Path) -> None:
    report = models_run / "report"
    rows = {row["player"]: row for row in data(report, "models")}
    failing = next(row for name, row in rows.items() if name.startswith("fails"))
    assert 0 < failing["fallback"] == failing["fallback:malformed"] < 1
    assert rows["asked again"]["reasks"] > 0 == rows["asked again"]["fallback"]
    decided = data(report, f"bot-{place(models_run, 'asked again')}-decisions")
    assert sum(row["decisions"] for row in decided) == rows["asked again"]["decisions"]
    assert sum(row["model_after_reask"] for row in decided) == rows["asked again"]["reasks"]


def test_calibration_is_shown(stating_run: Path) -> None:
    (row,) = data(stating_run / "report", "calibration")
    bins = data(stating_run / "report", "calibration-bins")
    assert sum(line["statements"] for line in bins) == row["statements"] > 0


def test_csv_and_json_say_the_same(models_run: Path) -> None:
    report = models_run / "report"
    tables = sorted(path.stem for path in (report / "data").glob("*.csv"))
    assert tables == sorted(path.stem for path in (report / "data").glob("*.json"))
    for key in tables:
        plain = [{name: "" if cell is None else str(cell) for name, cell in row.items()} for row in data(report, key)]
        assert records(report, key) == plain


def test_an_interval_has_its_ends_in_columns_of_their_own() -> None:
    table = Table(
        "t", "T", [Column("bot", "bot", "text"), Column("x", "x", "rate")], [["a", Rate(0.5, 0.25, 0.75)], ["b", None]]
    )
    assert table.to_csv() == "bot,x,x_low,x_high\na,0.5,0.25,0.75\nb,,,\n"
    assert [cell for row in table.shown() for _, cell in row] == ["a", "50.0 [25.0, 75.0]", "b", "-"]


def place(run: Path, name: str) -> int:
    with opened(run) as source:
        return source.names.index(name)
