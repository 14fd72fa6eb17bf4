"""A run's dataset agrees with the run."""

import json
import re
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest
import yaml

import dubito
from dubito.experiment.stored import open_recorded_run
from dubito.game.find import find_game
from dubito.games.dubito import sentences
from dubito.games.dubito.events import DiscardEvent
from dubito.llm.prompts import load_prompt
from dubito.plugins.study.dataset import EVENTS
from dubito.plugins.study.event_fields import EventFields
from dubito.store.run_db import RunDb
from tests.cli.kit import REPO, Shell, run_in
from tests.llm.kit import config_file, contender

LICENCE = "--license is the id of a dataset's licence, such as cc-by-4.0, and needs --dataset FOLDER"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Set up a folder with a run `r` of two models, one of which sometimes fails."""
    pytest.importorskip("pyarrow", reason="the extra dubito[parquet] is not installed")
    home = tmp_path_factory.mktemp("home")
    failing = contender("failing", bot="AnthropicBot", base_url="house?faults=prose:0.5")
    config_file(contender("one", model="house-sharp", prompt="reasoned"), failing, name=str(home / "c.yaml"), games=4)
    run_in(home, "run", "c.yaml", "--output", "r", "--quiet", "--no-report")
    return home


@pytest.fixture
def shell(home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Shell:
    copytree(home, tmp_path, dirs_exist_ok=True)
    return Shell(tmp_path, capsys, monkeypatch)


def rows(name: str, folder: str = "d") -> list[dict[str, Any]]:
    """Return the rows of a table of the dataset."""
    from pyarrow import parquet  # slow, so imported only here

    found: list[dict[str, Any]] = parquet.read_table(f"{folder}/{name}.parquet").to_pylist()
    return found


def test_decision_is_next_to_its_request_and_reply(shell: Shell) -> None:
    assert shell("export", "r", "--dataset", "d", "--quiet").out == "written: d\n"
    decisions = rows("decisions")
    with RunDb.open(Path("r/run.db")) as db:
        kept = db.read("SELECT game, seat, decision, node, outcome, answer FROM decisions ORDER BY 1, 2, 3")
    assert [
        (row["game"], row["seat"], row["decision"], row["node"], row["outcome"], json.loads(row["answer"]))
        for row in decisions
    ] == kept
    assert {row["outcome"] for row in decisions} == {"model", "model_after_reask", "fallback:malformed"}
    for row in decisions:
        facts = json.loads(row["facts"])
        assert (facts["seat"], facts["node"], row["deal"]) == (row["seat"], row["node"], row["game"] // 2)
        assert (row["truth"] is None) == (row["node"] != "C")
        if row["outcome"].startswith("model"):
            assert json.loads(row["reply"])["answer"] is json.loads(row["answer"])
        if row["player"] == "one":
            assert (row["p_bluff"] is not None) == (row["node"] == "C")
            assert row["prompt"] == load_prompt("reasoned", REPO).digest
            assert row["tokens_input"] > 0 == row["usd"]


def test_game_has_players_and_results(shell: Shell) -> None:
    shell("export", "r", "--dataset", "d", "--quiet")
    games = rows("games")
    assert [game["game"] for game in games] == list(range(4))
    names = {"one", "failing", "StefaBot", "UsualBot"}
    for game in games:
        assert len(game["players"]) == len(game["buckets"]) == len(game["measures"]) == 3
        assert set(game["players"]) <= names
        assert game["players"][game["contender_seat"]] in ("one", "failing")
        for bucket, measured in zip(game["buckets"], game["measures"], strict=True):
            assert (bucket == "hard_wins") == (measured["hard_wins"] == 1)


def test_card_states_licence_provenance_and_players(shell: Shell) -> None:
    assert shell("export", "r", "--dataset", "d", "--license", "cc-by-4.0", "--quiet").code == 0
    card = Path("d/README.md").read_text()
    front = yaml.safe_load(card.split("---\n")[1])
    assert [one["config_name"] for one in front["configs"]] == ["decisions", "games", "events"]
    assert front["license"] == "cc-by-4.0"
    with open_recorded_run(Path("r")) as run:
        digest, players = run.results_digest, run.planned.players
    assert f"| results digest | {digest} |" in card
    assert "| seed | 0 (was known) |" in card
    for player in players:
        row = next(line for line in card.splitlines() if line.startswith(f"| {player.name} | "))
        assert row.endswith(f"| {player.prompt[:16]} |")
    assert shell("export", "r", "--dataset", "e", "--quiet").code == 0
    assert yaml.safe_load(Path("e/README.md").read_text().split("---\n")[1])["license"] == "unknown"


def test_decision_has_its_condition_language_and_stated_chance_to_win(shell: Shell) -> None:
    models = [
        contender("asked", model="house-sharp", prompt="beliefs+must-not-lie"),
        contender("german", prompt="plain-de"),
    ]
    config = config_file(*models, name="c2.yaml", games=4)
    assert shell("run", config, "--output", "c", "--quiet", "--no-report").code == 0
    assert shell("export", "c", "--dataset", "d", "--quiet").code == 0
    decisions = rows("decisions")
    played = {(row["player"], row["condition"], row["language"]) for row in decisions}
    assert played == {("asked", "must-not-lie", "en"), ("german", "silent", "de")}
    by_name = {"asked": "must-not-lie", "german": "silent"}
    for game in rows("games"):
        assert game["conditions"] == [by_name.get(name) for name in game["players"]]
    for row in decisions:
        stated = json.loads(row["reply"]).get("p_win")
        assert row["p_win"] == stated
        assert (stated is not None) == (row["player"] == "asked")


def test_columns_by_seat_are_typed(shell: Shell) -> None:
    from pyarrow import parquet  # slow, so imported only here

    assert shell("export", "r", "--dataset", "d", "--quiet").code == 0
    schema = parquet.read_schema("d/games.parquet")
    kinds = {name: str(schema.field(name).type) for name in ("measures", "counts", "lies")}
    assert kinds["lies"] == "list<element: struct<chosen: int64, forced: int64, could_be_honest: int64>>"
    assert kinds["measures"].startswith("list<element: struct<score: double, ")
    assert ", bluffs: int64, " in kinds["counts"]


def test_citation_of_the_card_is_that_of_the_project(shell: Shell) -> None:
    assert shell("export", "r", "--dataset", "d", "--quiet").code == 0
    card, stated = Path("d/README.md").read_text(), yaml.safe_load((REPO / "CITATION.cff").read_text())
    entry = card.split("```bibtex\n")[1].split("```")[0]
    for value in (stated["title"], stated["authors"][0]["name"], stated["version"]):
        assert f"{{{value}}}" in entry
    with open_recorded_run(Path("r")) as run:
        assert run.results_digest in entry


@pytest.mark.at_length
@pytest.mark.parametrize("library", ["pandas", "polars", "datasets"])
def test_examples_of_the_card_read_the_dataset(
    library: str, shell: Shell, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pytest.importorskip(library, reason=f"{library} is not installed")
    monkeypatch.setenv("HF_HOME", str(tmp_path / "huggingface"))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert shell("export", "r", "--dataset", "d", "--quiet").code == 0
    expected = [row["request"] for row in rows("decisions")]
    card = Path("d/README.md").read_text().replace("/path/to/this/folder", str(Path("d").resolve()))
    code = card.split("```python\n")[1].split("```")[0]
    (example,) = [part for part in re.split(r"\n(?=import|from)", code) if library in part.partition("\n")[0]]
    monkeypatch.chdir("d")
    found: dict[str, Any] = {}
    exec(example, found)  # noqa: S102
    assert [*found["decisions"]["request"]] == expected
    if "lies" in found:
        counts = Counter[str]()
        for game in rows("games", "."):
            for player, condition, lies in zip(game["players"], game["conditions"], game["lies"], strict=True):
                for kind in ("chosen", "could_be_honest"):
                    counts[f"{kind} {player} {condition}"] += lies[kind]
        counted = {
            f"{kind} {row['players']} {row['conditions']}": row[kind]
            for row in found["lies"].to_dicts()
            for kind in ("chosen", "could_be_honest")
        }
        assert counted == counts
    if "games" in found:
        first = rows("games", ".")[0]
        assert found["games"]["counts"][0][2]["bluffs"] == first["counts"][2]["bluffs"]
        assert found["games"]["buckets"][0][2] == first["buckets"][2]


def test_every_column_is_explained(shell: Shell) -> None:
    """Somebody who reads only the card knows all columns."""
    assert shell("export", "r", "--dataset", "d", "--quiet").code == 0
    card = Path("d/README.md").read_text()
    for table in ("decisions", "games", "events"):
        section = card.split(f"## {table}.parquet\n")[1].split("\n## ")[0]
        explained = [line.split(" | ")[0].removeprefix("| ") for line in section.splitlines() if line.startswith("| ")]
        assert {name for names in explained[2:] for name in names.split(", ")} == {*rows(table)[0]}


def test_voluntary_and_forced_lies_are_in_games_and_decisions(shell: Shell) -> None:
    """A game has all of a seat's bluffs. A decision to bluff leads to a voluntary one, or turns out honest."""
    assert shell("export", "r", "--dataset", "d", "--quiet").code == 0
    games = {row["game"]: row for row in rows("games")}
    counted = Counter[tuple[int, int, str]]()
    for row in games.values():
        for seat, (lies, counts) in enumerate(zip(row["lies"], row["counts"], strict=True)):
            assert lies["chosen"] + lies["forced"] == counts["bluffs"]
            assert lies.pop("could_be_honest") == counts["play_turns"] - lies["forced"]
            counted.update({(row["game"], seat, lie): count for lie, count in lies.items()})
    assert {"chosen", "forced"} == {lie for _, _, lie in +counted}
    turns = {}
    for row in rows("decisions"):
        turns[row["game"], row["seat"], row["turn"]] = row["lie"]
        if row["node"] in ("A", "D"):
            assert row["lie"] in (("chosen", None) if json.loads(row["answer"]) else (None,))
    models = {(game, seat) for game, seat, _ in turns}
    of_turns = Counter((game, seat, lie) for (game, seat, _), lie in turns.items() if lie)
    assert of_turns == Counter({place: n for place, n in counted.items() if n and place[:2] in models})


def test_events_of_all_games_are_in_order(shell: Shell) -> None:
    """Games of hand-written bots also have events, unless a bot has changed."""
    config_file(name="bots.yaml", bots=["StefaBot", "Mine"], games=3)
    bot = Path("bots/manual/mine.py")
    bot.parent.mkdir(parents=True)
    bot.write_text("from bots.manual.usual_bot import UsualBot\n\n\nclass Mine(UsualBot):\n    pass\n")
    shell("run", "bots.yaml", "--output", "b", "--quiet", "--no-report")
    for run in ("r", "b"):
        assert shell("export", run, "--dataset", f"d{run}", "--quiet").code == 0
        with dubito.load(run) as played:
            expected = [
                (game.number, number, type(event).__name__, event.only, sentences.sentence(event))
                for game in played.games()
                for number, event in enumerate(game.events)
            ]
        found = rows("events", f"d{run}")
        assert [tuple(row[key] for key in ("game", "number", "event", "only", "sentence")) for row in found] == expected
    bot.write_text(bot.read_text() + "# changed\n")
    assert shell("export", "b", "--dataset", "changed", "--quiet").code == 0
    assert rows("events", "changed") == []
    with (
        dubito.load("b") as changed,
        pytest.raises(dubito.UsageError, match="games of b may play differently now: Mine"),
    ):
        _ = next(changed.games()).events


def test_an_event_has_its_turn_and_fields(shell: Shell) -> None:
    shell("export", "r", "--dataset", "d", "--quiet")
    turn, played = 0, dict[tuple[int, int, str], int]()
    for row in rows("events"):
        fields = row["fields"]
        assert "only" not in fields
        if row["number"] == 0:
            turn = 0
            assert (row["event"], fields["player_ids"], row["only"]) == ("GameStartEvent", [0, 1, 2], None)
        if row["event"] == "AnswerEvent":
            played[row["game"], row["only"], f"{row['turn']} {fields['node']}"] = json.loads(fields["answer"])
            assert {name for name, value in fields.items() if value is not None} == {"node", "answer"}
        turn += row["event"] in ("CardsPlayedEvent", "DoubtResolvedEvent")
        # answers come before their move
        assert row["turn"] == turn + (row["event"] == "AnswerEvent")
    for row in rows("decisions"):  # a decision has the turn of its answer
        assert played[row["game"], row["seat"], f"{row['game_turn']} {row['node']}"] is json.loads(row["answer"])


@pytest.mark.parametrize(
    ("game", "types"),
    [
        ("dubito", {"board_cards": "list of int64", "correct": "bool", "answer": "JSON"}),
        ("bs", {"cards": "list of list of int64", "lie": "bool"}),
        ("defuse", {"cards": "list of string", "bomb": "bool", "end": "string"}),
    ],
)
def test_fields_of_events_are_typed(shell: Shell, game: str, types: dict[str, str]) -> None:
    known = EventFields(find_game(game, Path()))
    assert {name: str(known.types[name]) for name in types} == types
    assert {name for name, found in known.types.items() if str(found) == "JSON"} == {"answer"}
    assert shell("run", "--game", game, "--games", "2", "--output", "b", "--quiet", "--no-report").code == 0
    assert shell("export", "b", "--dataset", "d", "--quiet").code == 0
    card = Path("d/README.md").read_text()
    with dubito.load("b") as played:
        expected = [event for one in played.games() for event in one.events]
    for row, event in zip(rows("events"), expected, strict=True):
        kept = {name: value for name, value in row["fields"].items() if value is not None}
        values = json.loads(json.dumps(asdict(event)))  # type: ignore[call-overload]
        values |= {"answer": json.dumps(values["answer"])} if "answer" in values else {}
        assert kept == {name: value for name, value in values.items() if name != "only" and value is not None}
        line = next(line for line in card.splitlines() if line.startswith(f"| {row['event']} | "))
        assert [name for name in kept if f"{name} ({known.types[name]})" not in line] == []


def test_event_that_its_game_does_not_list_is_named() -> None:
    class Unlisted(DiscardEvent):
        """A class that the game has forgotten."""

    with pytest.raises(dubito.UsageError, match=r"game\.py of dubito does not list Unlisted in `events`.*; add it"):
        EventFields(find_game("dubito", Path())).row(Unlisted(0, 1))


def test_the_guide_describes_the_columns_of_events() -> None:
    described = re.findall(r"^\| (\S.*?) +\| (\S.*?) +\|$", (REPO / "docs" / "runs.md").read_text(), re.MULTILINE)
    assert {(name, meaning) for name, (_, meaning) in EVENTS.items()} <= {*described}


def test_impossible_export_is_reported_in_one_sentence(shell: Shell) -> None:
    Path("d").mkdir()
    for words, sentence in (
        (("r",), "give a FILE for `dubito replay`, or --dataset FOLDER for a dataset"),
        (
            ("r", "x.zip", "--dataset", "e"),
            "give a FILE for `dubito replay`, or --dataset FOLDER for a dataset",
        ),
        (("r", "--dataset", "e", "--license", "CC BY"), LICENCE),
        (("r", "x.zip", "--license", "mit"), LICENCE),
        (("r", "--dataset", "d"), "d already exists; choose another folder"),
        (("r", "--dataset", "/proc/x"), "cannot write /proc/x: No such file or directory; choose another folder"),
    ):
        result = shell("export", *words)
        assert (result.code, result.err) == (2, f"dubito: {sentence}\n")
    assert sorted(path.name for path in Path().iterdir()) == ["c.yaml", "cache", "d", "r"]
