"""The pages agree with `all_games.yaml` and the summary."""

import json
from pathlib import Path
from typing import Any

import pytest

from dubito.experiment.stored import open_recorded_run
from dubito.files import read_yaml
from dubito.games.dubito.engine import RESULTS
from dubito.report.render import Site
from dubito.report.scan import scan
from dubito.report.site import write_pages
from dubito.report.tables import Column, ColumnKind, ResultTable, Section, cell_text
from dubito.report.tables import Page as ReportPage
from dubito.stats.ranking import by_table_size, ranking
from dubito.stats.rates import Rate
from dubito.store.spend import PICO
from tests.llm.kit import rows
from tests.report.kit import Page, data, hand_written, records, report_of

COUNTS = [count for count in RESULTS.seat_counts if count != "cards"]


def read_results(run: Path) -> dict[str, Any]:
    content: dict[str, Any] = read_yaml(run / "all_games.yaml")
    return content


@pytest.mark.parametrize("which", ["bots_run", "models_run"])
def test_counts_cover_all_games(which: str, request: pytest.FixtureRequest) -> None:
    run: Path = request.getfixturevalue(which)
    counted = read_results(run)
    page = Page(run / "report" / "strategy.html")
    in_words = {name.strip(): cells for name, _, *cells in page.tables["counts"][1:]}
    for row in data(run / "report", "counts"):
        total = counted[row["bot"]]["total"]
        assert {count: row[count] for count in COUNTS} == {count: total[count] for count in COUNTS}
        assert in_words[row["bot"]] == [f"{total[count]:,}" for count in COUNTS]
    assert in_words.keys() == counted.keys()


def test_results_cover_all_games(bots_run: Path) -> None:
    for row in data(bots_run / "report", "outcomes"):
        own = read_results(bots_run)[row["bot"]]
        assert [row[result] for result in RESULTS.buckets] == [own[result]["games"] for result in RESULTS.buckets]
        assert row["relative_position"] == pytest.approx(own["total"]["relative_position"])
        assert row["hard_wins_rate"] == pytest.approx(own["hard_wins"]["games"] / own["total"]["games"])


def test_long_table_is_cut_on_its_page_and_whole_in_its_file(tmp_path: Path) -> None:
    tables = [
        ResultTable(
            f"of-{n}",
            "Names",
            [
                Column("name", "name", "text", [f"n{place}" for place in range(n)]),
                Column("place", "place", "count", [*range(n)]),
            ],
        )
        for n in (500, 1001)
    ]
    pages = [ReportPage("index.html", "Names", [Section("", tables)])]
    written = write_pages(tmp_path / "report", Site("", pages=[("index.html", "Names")]), pages)
    page, files = Page(written), written.parent / "data"
    assert [len(page.tables[table.key]) for table in tables] == [501, 501]
    assert "These are the first 500 of 1,001 rows." in written.read_text()
    assert [len((files / f"{table.key}.csv").read_text().splitlines()) for table in tables] == [501, 1002]
    assert [(files / f"{table.key}.json").exists() for table in tables] == [True, False]
    assert "of-500.json" in written.read_text()
    assert "of-1001.json" not in written.read_text()


def test_neighbours_cover_all_games(bots_run: Path) -> None:
    counted = read_results(bots_run)
    for side, key in (("next", "next"), ("previous", "prev")):
        rows = data(bots_run / "report", f"hard-wins-by-{side}")
        assert rows
        for row in rows:
            own, other = counted[row["bot"]], row[side]
            sat = own["total"][key][other]
            assert (row["games"], row["hard_wins"]) == (sat, pytest.approx(own["hard_wins"][key][other] / sat))


def test_a_map_shows_the_neighbours_rates(bots_run: Path) -> None:
    counted = read_results(bots_run)
    head, *rows = Page(bots_run / "report" / "neighbours.html").tables["hard-wins-by-next"]
    for name, *cells in rows:
        own = counted[name]
        for other, cell in zip(head[1:-1], cells, strict=False):
            assert cell == f"{100 * own['hard_wins']['next'][other] / own['total']['next'][other]:.0f}"


def test_each_table_size_has_its_chance_level(bots_run: Path) -> None:
    shares = {row["size"]: row["equal_share_hard_wins"] for row in data(bots_run / "report", "by-table-size")}
    assert shares == {3: pytest.approx(1 / 3), 5: pytest.approx(1 / 5)}


def test_intervals_of_a_size_equal_a_run_of_that_size(tmp_path: Path) -> None:
    hand_written(tmp_path / "run", table_sizes=[4])
    with open_recorded_run(tmp_path / "run") as source:
        scanned = scan(source)
        for row in ranking(source.tally, source.names, RESULTS):
            for measure, rate in row.rates.items():
                assert scanned.measure_at_size(source.names.index(row.name), 4, measure) == rate


@pytest.fixture(scope="module")
def long_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("long") / "run"
    hand_written(folder, games=1200, table_sizes=[3, 4])
    return folder


@pytest.fixture(scope="module")
def long_report(long_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return report_of(long_run, output=tmp_path_factory.mktemp("report") / "report", scanned=150, games="0")


@pytest.mark.at_length
def test_long_run_explains_its_sampled_intervals(long_run: Path, long_report: Path) -> None:
    report = long_report
    with open_recorded_run(long_run) as source:
        whole = {(row.name, row.size): row.rates["score"] for row in by_table_size(source.tally, source.names, RESULTS)}
    sizes = json.loads((report / "data" / "by-table-size.json").read_text())
    assert {(row["bot"], row["size"]): row["score"] for row in sizes["rows"]} == whole
    assert all(0 < row["score_low"] < row["score"] < row["score_high"] < 1 for row in sizes["rows"])
    known = "Rates cover all 1,200 games, but the widths of their intervals are estimated from the first 150"
    for key in ("by-table-size", "habits", "deviations", "hard-wins-by-next", "bot-0-habits"):
        assert known in json.loads((report / "data" / f"{key}.json").read_text())["notes"][-1]
    assert known in Page(report / "neighbours.html").words
    for key in ("lies", "bot-0-lies"):
        lies = json.loads((report / "data" / f"{key}.json").read_text())
        assert lies["notes"][0] == "Counted in the first 1,000 games of 1,200 by replaying them."
        assert all(0 < row["lies"] < read_results(long_run)[row["bot"]]["total"]["bluffs"] for row in lies["rows"])
    seats = json.loads((report / "data" / "bot-0-by-seat.json").read_text())
    assert "Covers only the first 150 of 1,200 games" in seats["notes"][0]
    assert sum(data(report, f"bot-{player}-by-seat")[place]["games"] for player in range(4) for place in range(3)) < 300


def test_merged_run_has_no_further_notes(bots_run: Path) -> None:
    for path in (bots_run / "report" / "data").glob("*.json"):
        assert "first" not in " ".join(json.loads(path.read_text())["notes"]), path


def test_contenders_are_sampled_by_whole_deals(models_run: Path) -> None:
    with open_recorded_run(models_run) as source:
        assert (scan(source, 3).games, scan(source).games) == (2, 6)


def test_no_side_is_named_within_chance(bots_run: Path) -> None:
    rows = data(bots_run / "report", "deviations")
    assert {row["more"] for row in rows} == {"may be chance"}
    assert all(row["difference_low"] < 0 < row["difference_high"] and row["by_next_chance"] > 0 for row in rows)


def test_model_players_have_their_fallbacks_cost_and_decisions(models_run: Path) -> None:
    report = models_run / "report"
    players = {row["player"]: row for row in data(report, "models")}
    failing = next(row for name, row in players.items() if name.startswith("fails"))
    assert 0 < failing["fallback"] == failing["fallback:malformed"] < 1
    assert players["asked again"]["reasks"] > 0 == players["asked again"]["fallback"]
    decided = data(report, f"bot-{place(models_run, 'asked again')}-decisions")
    assert sum(row["decisions"] for row in decided) == players["asked again"]["decisions"]
    assert sum(row["model_after_reask"] for row in decided) == players["asked again"]["reasks"]


def test_call_statistics_match_the_log(stating_run: Path) -> None:
    where = place(stating_run, "states")
    median, _, most = data(stating_run / "report", f"bot-{where}-use")
    query = "SELECT input, output FROM attempts WHERE player = 'states' AND game >= 0 AND input IS NOT NULL"
    tokens = rows(stating_run, query)
    for key, counts in zip(("input", "output"), zip(*tokens, strict=True), strict=True):
        assert most[key] == max(counts)
        assert median[key] == sorted(counts)[(len(counts) + 1) // 2 - 1]
    ((longest, most_expensive),) = rows(stating_run, "SELECT max(seconds), max(picodollars) FROM tries")
    assert (most["seconds"], most["cost"]) == (longest, most_expensive / PICO)


def test_calibration_is_shown(stating_run: Path) -> None:
    (row,) = data(stating_run / "report", "calibration")
    bins = data(stating_run / "report", "calibration-bins")
    assert sum(line["statements"] for line in bins) == row["statements"] > 0


def test_csv_and_json_agree(models_run: Path) -> None:
    report = models_run / "report"
    tables = sorted(path.stem for path in (report / "data").glob("*.csv"))
    assert tables == sorted(path.stem for path in (report / "data").glob("*.json"))
    for key in tables:
        plain = [{name: "" if cell is None else str(cell) for name, cell in row.items()} for row in data(report, key)]
        assert records(report, key) == plain


def test_columns_with_different_numbers_of_values_are_refused() -> None:
    table = ResultTable("t", "T", [Column("a", "a", "count", [1, 2]), Column("b", "b", "count", [1])])
    with pytest.raises(ValueError, match="shorter"):
        table.to_csv()


def test_each_player_column_gets_a_column_of_kinds() -> None:
    columns = [
        Column("bot", "bot", "player", ["a", "b"]),
        Column("games", "games", "count", [3, 4]),
        Column("other", "against", "player", ["b", "c"]),
    ]
    table = ResultTable("t", "T", columns).with_kinds({"a": "model", "b": "hand-written"})
    assert table.to_csv() == "bot,kind,games,other,other_kind\na,model,3,b,hand-written\nb,hand-written,4,c,\n"


def test_interval_ends_have_separate_columns() -> None:
    rates = [Rate(0.5, 0.25, 0.75), None]
    table = ResultTable("t", "T", [Column("bot", "bot", "text", ["a", "b"]), Column("x", "x", "rate", rates)])
    assert table.to_csv() == "bot,x,x_low,x_high\na,0.5,0.25,0.75\nb,,,\n"
    assert [column.texts for column in table.columns] == [["a", "b"], ["50.0 [25.0, 75.0]", "-"]]


def place(run: Path, name: str) -> int:
    with open_recorded_run(run) as source:
        return source.names.index(name)


@pytest.mark.parametrize(
    ("rate", "kind", "expected"),
    [
        (Rate(0.5, 0.499, 0.501), "rate", "50.0 [49.9, 50.1]"),
        (Rate(0.5, 0.4998, 0.5002), "rate", "50.00 [49.98, 50.02]"),
        (Rate(0.0, 0.0, 0.00003), "rate", "0.000 [0.000, 0.003]"),
        (Rate(0.01, 0.0098, 0.0102), "points", "+1.00 [+0.98, +1.02]"),
        (Rate(2.99, 2.989, 2.991), "cards", "2.990 [2.989, 2.991]"),
    ],
)
def test_no_interval_is_shown_as_a_point(rate: Rate, kind: ColumnKind, expected: str) -> None:
    assert cell_text(rate, kind) == expected
