"""The games of a report: selection, correct display, and refusals."""

import sqlite3
from contextlib import closing
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest
import yaml

from dubito.cli.report import report as command
from dubito.errors import UsageError
from dubito.files import read_yaml
from dubito.game.find import find_bots
from dubito.games.dubito.engine import RESULTS
from dubito.report.site import write_report
from dubito.stats.tally import Outcome, unpack_outcome
from tests.experiment.kit import REPO, registry
from tests.llm.kit import rows
from tests.report.kit import Page, data, hand_written, hands, pile, played, report_of, states

LATER = "SELECT outcome FROM games WHERE game >= 4"


def len_of(outcome: Outcome) -> int:
    return sum(outcome.game_counts)


def game_data(report: Path, number: int) -> Any:
    (game,) = Page(report / "games" / f"{number}.html").json
    return game


def test_filters_match_the_games(bots_run: Path) -> None:
    """Bluffs, doubts, and a seat's mistakes about the previous play."""
    for page in range(10):
        game = game_data(bots_run / "report", page)
        turns = game["turns"]
        for number, (before, turn) in enumerate(zip([None, *turns], turns, strict=False)):
            is_bluff = any(text.endswith("a bluff") for text, _ in turn["truth"])
            assert turn["marks"] == (["bluff"] * is_bluff if played(turn) else ["doubt"])
            mistakes, let_pass = [*turn["mistakes"].values()], [*turn["let_pass"].values()]
            met_bluff = bool(before) and before["marks"] == ["bluff"]
            if not played(turn):
                assert mistakes == ([] if met_bluff else ["doubted an honest play"])
                assert turn.get("caught", False) == met_bluff
            else:
                # A player who has left cannot be doubted (R4).
                can_doubt = met_bluff and "out of cards" not in game["story"][number - 1]
                assert let_pass == (["let a bluff pass"] if can_doubt else [])
            assert not (mistakes and let_pass)


def test_stated_probability_is_next_to_the_truth(stating_run: Path) -> None:
    stated = 0
    for page in (stating_run / "report" / "games").glob("*.html"):
        (game,) = Page(page).json
        for decision in game["decisions"]:
            if decision["p_bluff"] is not None:
                assert decision["truth"] == ("bluff" in game["turns"][decision["turn"] - 2]["marks"])
                stated += 1
    assert stated > 10


def test_title_names_the_winner(bots_run: Path) -> None:
    for number in range(5):
        page = Page(bots_run / "report" / "games" / f"{number}.html")
        (game,) = page.json
        seats = [panel for panel in states(game)[-1] if "seat" in panel]
        (winner,) = [name for name, panel in zip(game["names"], seats, strict=True) if panel.get("badge") == "place 1"]
        assert f"Game {number}: {winner} wins" in page.words


@pytest.mark.parametrize("which", ["bots_run", "models_run"])
def test_small_run_shows_every_game(which: str, request: pytest.FixtureRequest) -> None:
    run: Path = request.getfixturevalue(which)
    listed = data(run / "report", "games")
    assert [row["game"] for row in listed] == [str(game) for game in range(len(listed))]
    for row in listed:
        game = game_data(run / "report", int(row["game"]))
        assert len(game["turns"]) == row["turns"] + row["free_turns"]
        assert len(game["names"]) == row["size"]


def test_states_are_complete(bots_run: Path) -> None:
    """Between two turns no card is lost except by discards and jokers of wrong doubts."""
    game = game_data(bots_run / "report", 0)
    held, panels = hands(game), states(game)
    assert sum(map(len, held[0])) == 54
    for number, turn in enumerate(game["turns"], 1):
        (before, now), seat, plays = held[number - 1 : number + 1], turn["seat"], pile(game, panels[number])
        assert plays
        if played(turn):
            own = [game["faces"][card][0] for card in played(turn)]
            assert sorted(before[seat]) == sorted(now[seat] + own)
            assert plays[-1][::2] == [seat, played(turn), False]
            assert len({claim.partition(" as ")[2] for _, claim, *_ in plays}) == 1
        else:
            assert [shown for *_, shown in plays] == [False] * (len(plays) - 1) + [True]
            assert pile(game, panels[number - 1])[-1][:4] == plays[-1][:4]


def test_decisions_are_at_their_turn(models_run: Path) -> None:
    asked = dict(rows(models_run, "SELECT game, count(*) FROM decisions GROUP BY game"))
    for number, count in asked.items():
        game = game_data(models_run / "report", number)
        assert len(game["decisions"]) == count
        for decision in game["decisions"]:
            turn = game["turns"][decision["turn"] - 1]
            assert turn["seat"] == decision["seat"]
            if decision["node"] == "C":
                assert (not played(turn)) == decision["answer"]


def test_game_of_a_changed_bot_is_not_shown(tmp_path: Path) -> None:
    own = tmp_path / "bots" / "manual"
    own.mkdir(parents=True)
    text = (REPO / "bots" / "manual" / "always_truthful.py").read_text().replace("AlwaysTruthful", "MyBot")
    (own / "my_bot.py").write_text(text)
    from dubito.experiment.config import parse_config
    from dubito.experiment.resolve import resolve
    from dubito.experiment.run import play
    from tests.experiment.kit import means

    found = find_bots(tmp_path)
    config = {"games": 20, "table_sizes": [3], "bots": ["MyBot", "StefaBot", "RandomBoi"]}
    how = means(tmp_path / "run")
    play(
        resolve(parse_config(config, "x"), found),
        tmp_path / "run",
        how.__class__(1, how.calls, how.stop, how.progress),
    )
    (own / "my_bot.py").write_text(text + "\n# changed\n")
    report = write_report(tmp_path / "run", tmp_path).parent
    links = {row["game"] for row in data(report, "games")}
    there = {path.stem for path in (report / "games").glob("*.html")}
    with_it = {row["game"] for row in data(report, "games") if "MyBot" in row["seats"]}
    assert there == links - with_it
    assert with_it
    assert there
    assert "MyBot's file has changed" in Page(report / "games.html").words


def test_game_with_a_different_ending_is_not_shown(tmp_path: Path) -> None:
    hand_written(tmp_path / "run", games=4)
    with closing(sqlite3.connect(tmp_path / "run" / "run.db")) as connection, connection:
        ((row,),) = connection.execute("SELECT outcome FROM games WHERE game = 2").fetchall()
        changed = row[:4] + bytes([row[4] ^ 1]) + row[5:]
        connection.execute("UPDATE games SET outcome = ? WHERE game = 2", (changed,))
    report = reported_unscanned(tmp_path / "run")
    assert {path.stem for path in (report / "games").glob("*.html")} == {"0", "1", "3"}
    assert "1 game is not shown (2): its replay has a different result" in Page(report / "games.html").words


def reported_unscanned(run: Path) -> Path:
    return report_of(run, scanned=0)


def test_a_long_run_shows_the_first_games_and_the_longest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hand_written(tmp_path / "run", games=20)
    for name in ("DEFAULT_REPLAYS", "SHOW_ALL_UP_TO", "_LONGEST_GAMES"):
        monkeypatch.setattr(f"dubito.report.games.{name}", 4)
    report = report_of(tmp_path / "run")
    listed = data(report, "games")
    assert [row["game"] for row in listed[:4]] == [str(game) for game in range(4)]
    lengths = sorted((len_of(unpack_outcome(row, RESULTS)) for (row,) in rows(tmp_path / "run", LATER)), reverse=True)
    assert sorted((row["turns"] + row["free_turns"] for row in listed[4:]), reverse=True) == lengths[:4]
    assert "8 of 20 games: the first 4, and the 4 longest of the others" in Page(report / "games.html").words


def test_named_games_are_shown(tmp_path: Path) -> None:
    hand_written(tmp_path / "run", games=12)
    assert [row["game"] for row in data(report_of(tmp_path / "run", games="5, 0,11"), "games")] == ["0", "5", "11"]
    assert len(data(report_of(tmp_path / "run", games="all"), "games")) == 12


@pytest.mark.parametrize(
    ("games", "sentence"),
    [
        ("60", "has games 0 to 59"),
        ("-1", "numbers such as 0,5,17"),
        ("a", "'a' is not valid"),
        ("", "'' is not valid"),
    ],
)
def test_missing_games_are_refused(bots_run: Path, tmp_path: Path, games: str, sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        report_of(bots_run, games=games, output=tmp_path / "report")
    assert not (tmp_path / "report").exists()


def test_too_large_pages_are_omitted_with_a_note(
    models_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dubito.report.games._MAX_PAGES_BYTES", 60_000)
    report = report_of(models_run, output=tmp_path / "report")
    assert 0 < len(list((report / "games").glob("*.html"))) < 12
    assert "would be too large" in Page(report / "games.html").words


def test_other_files_are_not_overwritten(bots_run: Path, tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(UsageError, match="is not a report; choose another --output"):
        report_of(bots_run, output=tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_other_files_at_the_drafts_path_are_not_overwritten(bots_run: Path, tmp_path: Path) -> None:
    (tmp_path / "r.part").mkdir()
    (tmp_path / "r.part" / "mine.txt").write_text("mine")
    with pytest.raises(UsageError, match=r"r\.part exists and is not a report; choose another --output"):
        report_of(bots_run, output=tmp_path / "r")
    assert (tmp_path / "r.part" / "mine.txt").read_text() == "mine"


def test_symlink_to_a_folder_is_followed(stating_run: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "there")
    for _ in range(2):
        assert report_of(stating_run, output=tmp_path / "link", games="0") == tmp_path / "link"
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "there" / "index.html").exists()


def test_report_is_rewritten_with_the_same_bytes(stating_run: Path, tmp_path: Path) -> None:
    def bytes_of(report: Path) -> dict[str, bytes]:
        return {str(path.relative_to(report)): path.read_bytes() for path in report.rglob("*") if path.is_file()}

    first = bytes_of(stating_run / "report")
    copytree(stating_run / "report", tmp_path / "r")
    (tmp_path / "r" / "games" / "999.html").write_text("old")
    assert bytes_of(report_of(stating_run, output=tmp_path / "r")) == first


def test_run_without_finished_games_has_no_report(tmp_path: Path) -> None:
    hand_written(tmp_path / "run", games=4)
    with closing(sqlite3.connect(tmp_path / "run" / "run.db")) as connection, connection:
        for table in ("games", "chunks", "tally"):
            connection.execute(f"DELETE FROM {table}")  # noqa: S608
    with pytest.raises(UsageError, match="has no counted games"):
        report_of(tmp_path / "run")
    with pytest.raises(UsageError, match="is not a run folder"):
        report_of(tmp_path)


def test_report_of_an_unfinished_run_is_labelled(tmp_path: Path) -> None:
    hand_written(tmp_path / "run", games=4)
    manifest = read_yaml(tmp_path / "run" / "manifest.yaml")
    (tmp_path / "run" / "manifest.yaml").write_text(yaml.safe_dump(manifest | {"games": 10}))
    assert "Unfinished: 4 of 10 games" in Page(report_of(tmp_path / "run") / "index.html").words


def test_command_prints_the_reports_path(bots_run: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    command.main([str(bots_run), "--output", str(tmp_path / "r"), "--games", "1"], standalone_mode=False)
    assert capsys.readouterr().out == f"report: {tmp_path / 'r' / 'index.html'}\n"
    assert [row["game"] for row in data(tmp_path / "r", "games")] == ["1"]
    assert registry()
