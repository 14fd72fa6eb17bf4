"""The search and the filters of the games page in a browser, compared with the run's outcomes."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dubito.experiment.stored import open_recorded_run
from dubito.report.tables import Cell, Column, ColumnKind, Value
from dubito.stats.rates import Rate
from tests.chromium import Chrome
from tests.cli.kit import REPO, Shell
from tests.llm.kit import contender, run_games, small
from tests.report.kit import SCRIPT, data, hand_written, records, report_of

LEFT = "[...document.querySelectorAll('#games tbody tr')].filter(r => !r.hidden).map(r => r.cells[0].textContent)"
HINT = "[...document.querySelectorAll('section p')].find(p => p.textContent.startsWith('Click')).textContent"
NAMES = [
    "Anna",
    "Anna place 1",
    'anna "the lost"',
    "(lost)",
    "lost, and found (hand-written)",
    "place 1",
    "<b>x</b> & co",
    SCRIPT,
]
Seats = dict[str, list[tuple[str, str]]]


@pytest.fixture(scope="module")
def hostile_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("hostile") / "run"
    bots = [{"bot": bot, "name": name} for name, bot in zip(NAMES, ["RandomBoi", "SusBoi"] * 4, strict=True)]
    hand_written(folder, games=40, bots=bots, table_sizes=[3, 4])
    report_of(folder)
    return folder


@pytest.fixture(scope="module")
def mixed_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Play a run of a fake model, which counts as one kind, against hand-written bots, with unfinished games."""
    folder = tmp_path_factory.mktemp("mixed") / "run"
    run_games(small(contender("my model"), contender("fake"), games=10, turns=40), folder)
    report_of(folder)
    return folder


def seats_of(folder: Path) -> Seats:
    """Return each game's players and results, from the run's outcomes."""
    with open_recorded_run(folder) as run:
        rows = run.db.read("SELECT game, outcome FROM games ORDER BY game", ())
        outcomes = {str(game): run.outcome(row) for game, row in rows}
        describe = run.game.results.describe_ending
        return {
            game: [
                (run.names[player], describe(mark, one.capped))
                for player, mark in zip(one.seats, one.marks, strict=True)
            ]
            for game, one in outcomes.items()
        }


def search(chrome: Chrome, typed: str) -> list[str]:
    value = json.dumps(typed)
    chrome.run(f"(f => {{ f.value = {value}; f.dispatchEvent(new Event('input', {{bubbles: true}})); }})(filter)")
    found: list[str] = chrome.run(LEFT)
    total = chrome.run("document.querySelectorAll('#games tbody tr').length")
    assert chrome.text("#found") == f"{len(found)} of {total} games shown"
    return found


def choose(chrome: Chrome, passes: str, value: str) -> None:
    chrome.run(
        f"(f => {{ f.value = {json.dumps(value)}; f.dispatchEvent(new Event('input', {{bubbles: true}})); }})"
        f"(document.querySelector('[data-passes={passes}]'))"
    )


def ways_to_type(name: str, result: str, label: str) -> Iterator[str]:
    yield from (f"{name} {result}", f"{name} ({result})", f"  {name}   {result.upper()} ", f'"{name}" {result}')
    yield f"{label} ({result})"


@pytest.mark.parametrize("which", ["bots_run", "models_run", "mixed_run", "hostile_run"])
def test_search_finds_the_games_of_a_players_result(which: str, chrome: Chrome, request: pytest.FixtureRequest) -> None:
    folder: Path = request.getfixturevalue(which)
    seats = seats_of(folder)
    with open_recorded_run(folder) as run:
        label = run.label
    everyone = {one for own in seats.values() for one in own}
    chrome.open(folder / "report" / "games.html")
    for name in {name for name, _ in everyone}:
        for result in {result for _, result in everyone}:
            wanted = [game for game, own in seats.items() if (name, result) in own]
            for typed in ways_to_type(name, result, label(name)):
                assert search(chrome, typed) == wanted, typed
            choose(chrome, "names", name)
            choose(chrome, "result", result)
            assert search(chrome, "") == wanted
            choose(chrome, "names", "")
            choose(chrome, "result", "")


def test_documented_example_counts_right_beside_models(mixed_run: Path, chrome: Chrome) -> None:
    """The games page's own rows, as published in games.csv, are the truth here."""
    listed = records(mixed_run / "report", "games")
    names = {label for row in listed for label in row["seats"].split(", ")}
    bot = next(label.partition(" (")[0] for label in names if "(hand-written) (place 1)" in label)
    won = [row["game"] for row in listed if f"{bot} (hand-written) (place 1)" in row["seats"].split(", ")]
    chrome.open(mixed_run / "report" / "games.html")
    assert 0 < len(won) < len(listed)
    for typed in (f"{bot} place 1", f"{bot} (hand-written) (place 1)", f"{bot.lower()} PLACE  1"):
        assert search(chrome, typed) == won


@pytest.mark.parametrize("which", ["bots_run", "mixed_run", "hostile_run"])
def test_hint_of_the_page_finds_the_games_that_it_describes(
    which: str, chrome: Chrome, request: pytest.FixtureRequest
) -> None:
    folder: Path = request.getfixturevalue(which)
    chrome.open(folder / "report" / "games.html")
    hint = chrome.run(HINT).partition("such as “")[2].rpartition("”")[0]
    seats = seats_of(folder)
    (meant,) = {one for own in seats.values() for one in own if hint == " ".join(one)}
    assert search(chrome, hint) == [game for game, own in seats.items() if meant in own]


def test_terms_combine_and_name_parts_are_found(hostile_run: Path, chrome: Chrome) -> None:
    seats = seats_of(hostile_run)
    chrome.open(hostile_run / "report" / "games.html")

    def games(*wanted: Any) -> list[str]:
        return [game for game, own in seats.items() if all(any(one(*seat) for seat in own) for one in wanted)]

    for typed, wanted in {
        "Anna": games(lambda name, _: name == "Anna"),
        '"Anna place 1"': games(lambda name, _: name == "Anna place 1"),
        "anna place 1 place 1, (lost)": games(
            lambda name, result: (name, result) == ("Anna place 1", "place 1"), lambda name, _: name == "(lost)"
        ),
        "the lost": games(lambda name, result: "the" in name and result == "lost"),
        "the, lost": games(lambda name, _: "the" in name, lambda _, result: result == "lost"),
        "found place 2": games(lambda name, result: "found" in name and result == "place 2"),
        "co": games(lambda name, _: "co" in name),
        "17": ["17"],
        "game 17": ["17"],
        "nobody": [],
        "nobody place 1": [],
        "place 11": [],
        "": [*seats],
    }.items():
        assert search(chrome, typed) == wanted, typed


def test_shared_wins_are_found_by_each_winner(shell: Shell, chrome: Chrome) -> None:
    shutil.copytree(REPO / "examples" / "games" / "outsider", shell.folder, dirs_exist_ok=True)
    bots = "Listener,Echo,Mumbler"
    assert shell("run", "--game", "outsider", "--bots", bots, "--games", "12", "--output", "run").code == 0
    assert shell("report", "run").code == 0
    report = shell.folder / "run" / "report"
    listed = data(report, "games")
    chrome.open(report / "games.html")
    names = {name for row in listed for name in (row["winner"] or "").split(" and ")} - {""}
    assert any(" and " in (row["winner"] or "") for row in listed)
    for name in names:
        choose(chrome, "is", name)
        assert search(chrome, "") == [row["game"] for row in listed if name in (row["winner"] or "").split(" and ")]


def test_search_still_counts_right_after_sorting(mixed_run: Path, chrome: Chrome) -> None:
    seats = seats_of(mixed_run)
    chrome.open(mixed_run / "report" / "games.html")
    chrome.click("#games thead th:nth-child(5) button")
    (name, result), *_ = next(iter(seats.values()))
    wanted = [game for game, own in seats.items() if (name, result) in own]
    assert sorted(search(chrome, f"{name} {result}")) == sorted(wanted)


@pytest.mark.parametrize(
    ("kind", "value", "sorted_by"),
    [
        ("count", 12, None),
        ("count", 1234, 1234),
        ("dollars", 1_234_500_000_000_000, 1_234_500_000_000_000),
        ("rate", 0.25, 0.25),
        ("rate", Rate(0.5, 0.4, 0.6, 4), 0.5),
        ("points", Rate(-0.5, -0.6, -0.4), -0.5),
        ("count", None, None),
        ("text", "1,234", None),
    ],
)
def test_cells_are_sorted_by_values_not_by_texts(kind: ColumnKind, value: Value, sorted_by: float | None) -> None:
    assert Cell(Column("key", "title", kind, [value]), value).sort_key == sorted_by
