"""`dubito replay RUN` reports an identical run or the first difference, without a network."""

import os
import re
import socket
import sqlite3
import subprocess
import sys
import zipfile
import zlib
from contextlib import closing
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from shutil import copytree

import pytest

from dubito.experiment.play import ChunkPlayer
from dubito.experiment.progress import ModelProgress
from dubito.experiment.replay import replay_in_processes, useful_workers
from dubito.experiment.stored import read_replayable_run
from dubito.experiment.threads import ThreadedChunks
from dubito.games.dubito.engine import is_honest
from dubito.llm.recording import ReplayRecording
from dubito.store.model_log import ModelLog
from dubito.store.run_db import RunDb
from tests.cli.kit import REPO, Shell, run_in
from tests.llm.kit import config_file, contender, rows

PROMPT = {
    "prompt.yaml": "title: brief\nanswer: [answer]\n",
    "system.jinja": "You play Dubito. {{ answer_format }}\n",
    "user.jinja": '{% include "shared/facts.jinja" %}\n\n{{ question }}\n',
}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Set up a folder with a prompt and a finished run `r` of two model players."""
    home = tmp_path_factory.mktemp("home")
    (home / "prompts" / "brief").mkdir(parents=True)
    for name, text in PROMPT.items():
        (home / "prompts" / "brief" / name).write_text(text)
    both = (contender("one", "house-sharp", prompt="brief"), contender("two", bot="AnthropicBot", prompt="reasoned"))
    config = config_file(*both, games=8, rules={"max_turns": 9}, name=str(home / "c.yaml"))
    run_in(home, "run", config, "--output", "r", "--quiet", "--no-preflight", "--no-report")
    return home


@pytest.fixture
def run(home: Path, shell: Shell, monkeypatch: pytest.MonkeyPatch) -> Shell:
    copytree(home, shell.folder, dirs_exist_ok=True)
    monkeypatch.setattr(socket.socket, "connect", _refuse)
    return shell


def _refuse(*_: object) -> None:
    raise AssertionError("a replay needs no network")


def change(statement: str, values: tuple[object, ...] = ()) -> None:
    with closing(sqlite3.connect("r/run.db")) as connection, connection:
        assert connection.execute(statement, values).rowcount == 1


def test_an_unchanged_run_is_identical(run: Shell) -> None:
    result = run("replay", "r")
    ((decisions,),) = rows(Path("r"), "SELECT count(*) FROM decisions")
    assert result.code == 0
    assert result.out.splitlines()[0] == f"identical: 8 games, {decisions} decisions"
    assert result.out.splitlines()[1] in run("status", "r").out
    assert result.err.startswith("1 of 8 games, ")


@pytest.mark.at_length
def test_two_processes_play_the_same_as_one(run: Shell) -> None:
    """A chunk's outcomes, decisions, records, sums and first difference are the same."""
    kept = read_replayable_run(Path("r"), run.folder)
    alone, shared, progress = ReplayRecording(ModelLog(kept.db)), ReplayRecording(ModelLog(kept.db)), list[int]()
    models = kept.replay_models(alone)
    assert models is not None
    player = ChunkPlayer(kept.resolved)
    one = ThreadedChunks(player, models, 1, ModelProgress(), lambda games: None).play(range(4), lambda: False)
    (together,) = replay_in_processes(kept, 2, shared, progress.append)
    assert replace(together, tally=one.tally) == one
    assert together.tally.to_json() == one.tally.to_json()
    assert (alone.decisions, progress) == (shared.decisions, [2, 4, 6, 8])
    change("UPDATE decisions SET answer = 1 - answer WHERE (game, seat, decision) = "
           "(SELECT game, seat, decision FROM decisions WHERE game > 4 ORDER BY 1, 2, 3 LIMIT 1)")  # fmt: skip
    (damaged,) = replay_in_processes(kept, 2, shared, progress.append)
    assert str(damaged.error).endswith("the decision differs")
    assert damaged.deals < one.deals
    kept.db.__exit__()


@pytest.mark.parametrize(("games", "workers", "most"), [(8, 4, 1), (250, 4, 2), (100_000, 4, 4), (100_000, 1, 1)])
def test_processes_are_started_only_for_enough_games(games: int, workers: int, most: int) -> None:
    assert useful_workers(games, workers) == most


def test_replay_is_identical_in_another_folder_and_hash_seed(run: Shell, tmp_path: Path) -> None:
    """The prompt is not in the other working directory, so it is read from the run."""
    assert run("export", "r", "run.zip").code == 0
    (tmp_path / "elsewhere").mkdir()
    words = (sys.executable, "-m", "dubito", "replay", str(tmp_path / "run.zip"))
    environment = os.environ | {"PYTHONHASHSEED": "77", "PYTHONPATH": str(REPO)}
    done = subprocess.run(
        words, cwd=tmp_path / "elsewhere", env=environment, text=True, capture_output=True, check=False
    )
    assert (done.returncode, done.stdout.splitlines()[0]) == (0, run("replay", "r").out.splitlines()[0])


def test_changed_template_differs_at_the_first_question(run: Shell) -> None:
    (run.folder / "prompts" / "brief" / "user.jinja").write_text(
        PROMPT["user.jinja"].replace("question }}", "question }}!")
    )
    result = run("replay", "r")
    ((game, decision),) = rows(
        Path("r"), "SELECT game, decision FROM attempts WHERE player = 'one' ORDER BY game, decision LIMIT 1"
    )
    assert result.code == 1
    first, kind, recorded, replayed = result.out.splitlines()[:4]
    assert first.startswith(f"differs: one, game {game}, node ")
    assert f"(decision {decision}): the request differs from the recorded one" in first
    assert kind.startswith("the prompt's text: its template")
    assert recorded.strip().removeprefix("recorded: ") + "!" == replayed.strip().removeprefix("replayed: ")
    assert "manifest mismatch: one's prompt has changed: user.jinja" in result.err


def test_change_without_effect_on_requests_is_only_a_mismatch(run: Shell) -> None:
    (run.folder / "prompts" / "brief" / "prompt.yaml").write_text("title: briefer\nanswer: [answer]\n")
    result = run("replay", "r")
    assert result.code == 0
    assert "identical: 8 games" in result.out
    assert "manifest mismatch: one's prompt has changed: prompt.yaml" in result.err


def text_of(digest: str) -> bytes:
    with RunDb.open(Path("r/run.db")) as db:
        return ModelLog(db).text(digest).encode()


def test_changed_reply_is_reported_at_its_decision(run: Shell) -> None:
    place = rows(
        Path("r"), "SELECT game, seat, decision, raw FROM attempts WHERE game = 5 ORDER BY decision DESC LIMIT 1"
    )
    ((game, _, decision, raw),) = place
    changed = zlib.compress(text_of(raw).replace(b'"id"', b'"Id"', 1))
    change("UPDATE texts SET text = ? WHERE digest = ?", (changed, raw))
    result = run("replay", "r")
    assert result.code == 1
    assert result.out.splitlines()[0].startswith(f"differs: two, game {game}, node ")
    assert f"(decision {decision}): the recorded reply was changed or is damaged" in result.out


def test_replaced_reply_with_digest_is_detected(run: Shell) -> None:
    ((game, decision, raw),) = rows(
        Path("r"), "SELECT game, decision, raw FROM attempts WHERE player = 'one' ORDER BY game, decision LIMIT 1"
    )
    other = text_of(raw)
    swapped = other.replace(b"true", b"FALSE").replace(b"false", b"true").replace(b"FALSE", b"false")
    digest = sha256(swapped).hexdigest()
    change("INSERT INTO texts VALUES (?, ?)", (digest, zlib.compress(swapped)))
    change("UPDATE attempts SET raw = ? WHERE player = 'one' AND game = ? AND decision = ?", (digest, game, decision))
    result = run("replay", "r")
    assert result.code == 1
    assert f"(decision {decision}): the recorded reply is now parsed differently" in result.out


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("UPDATE decisions SET answer = 1 - answer WHERE (game, decision) = (6, 0)", "game 6, seat "),
        (
            "UPDATE games SET outcome = (SELECT outcome FROM games WHERE game = 1) WHERE game = 4",
            "game 4: its replay differs",
        ),
        ("UPDATE games SET record = '{}' WHERE game = 2", "game 2: its replay differs from the recorded game"),
        ("UPDATE chunks SET digest = x'00'", "games 0 to 7: their digest differs"),
        ("DELETE FROM attempts WHERE (game, decision) = (3, 1)", "game 3, node "),
    ],
)
def test_changed_record_is_detected_and_named(run: Shell, statement: str, words: str) -> None:
    change(statement)
    result = run("replay", "r")
    assert result.code == 1
    assert words in result.out


def test_inconsistent_counts_are_a_difference(run: Shell) -> None:
    results = run.folder / "r" / "all_games.yaml"
    results.write_text(results.read_text().replace("games: 8", "games: 9", 1))
    result = run("replay", "r")
    assert (result.code, "its counts do not match its games" in result.out) == (1, True)


def test_changed_engine_rule_is_detected(run: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dubito.games.dubito.engine.is_honest", lambda cards, number: not is_honest(cards, number))
    result = run("replay", "r")
    assert result.code == 1
    assert result.out.startswith("differs: ")


def test_one_game_is_shown_with_requests_and_replies(run: Shell) -> None:
    result = run("replay", "r", "--game", "3")
    assert result.code == 0
    asked = rows(Path("r"), "SELECT node FROM decisions WHERE game = 3 ORDER BY decision")
    lines = result.out.splitlines()
    assert [line.split("to two (")[1][0] for line in lines if "Request to " in line] == [node for (node,) in asked]
    assert sum("Reply of two: {" in line for line in lines) == len(asked)
    assert lines[0].startswith("The cards are dealt: ")
    refused = run("replay", "r", "--game", "8")
    assert (refused.code, refused.err) == (2, "dubito: game 8 does not exist; r has games 0 to 7\n")


def test_impossible_replay_is_reported_in_one_sentence(run: Shell) -> None:
    (run.folder / "empty").mkdir()
    assert run("replay", "empty").err == "dubito: empty is not a run folder: it has no manifest.yaml\n"
    assert run("replay", "nowhere").code == 2
    (run.folder / "r" / "run.db").write_bytes(b"no database")
    result = run("replay", "r")
    assert (result.code, result.err.startswith("dubito: r/run.db is damaged")) == (2, True)
    assert run("export", "r", "x.zip").code == 2
    assert not (run.folder / "x.zip").exists()


def test_export_overwrites_nothing_and_contains_no_code(run: Shell) -> None:
    assert run("export", "r", "run.zip").out == "written: run.zip\n"
    with zipfile.ZipFile("run.zip") as archive:
        assert sorted(archive.namelist()) == ["all_games.yaml", "manifest.yaml", "run.db"]
    assert run("export", "r", "run.zip").err == "dubito: run.zip already exists: choose another name\n"


def test_an_export_that_cannot_be_written_leaves_nothing(run: Shell) -> None:
    result = run("export", "r", "nowhere/run.zip")
    assert (result.code, result.err) == (
        2, "dubito: cannot write nowhere/run.zip: No such file or directory; choose another name\n"
    )  # fmt: skip
    Path("r/all_games.yaml").unlink()
    Path("r/all_games.yaml").mkdir()
    result = run("export", "r", "run.zip")
    assert (result.code, result.err.startswith("dubito: cannot write run.zip: ")) == (3, True)
    assert not Path("run.zip").exists()


def test_export_error_names_the_file(run: Shell) -> None:
    """The user has never seen the temporary folder into which it is unpacked."""
    assert run("export", "r", "run.zip").code == 0
    result = run("replay", "run.zip", "--game", "8")
    assert (result.code, result.err) == (2, "dubito: game 8 does not exist; run.zip has games 0 to 7\n")
    with zipfile.ZipFile("odd.zip", "w") as archive:
        archive.writestr("manifest.yaml", "x: [")
    result = run("replay", "odd.zip")
    assert result.err.startswith("dubito: odd.zip/manifest.yaml is damaged: it is not valid YAML (line 1: ")


def test_run_of_bots_is_replayed_from_its_seed(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dubito.cli.output._LOG_INTERVAL", 3600.0)  # one line at the start, on any machine
    words = ("--bots", "StefaBot,RandomBoi", "--games", "1010", "--table-sizes", "3", "--max-turns", "2")
    first = shell("run", *words, "--quiet", "--output", "h")
    result = shell("replay", "h", "--workers", "2")
    assert result.code == 0
    assert result.out.splitlines()[0] == "identical: 1,010 games, 0 decisions"
    assert result.out.splitlines()[1] in first.out
    with closing(sqlite3.connect("h/run.db")) as connection, connection:
        row = connection.execute("SELECT outcome FROM games WHERE game = 1006").fetchone()
        connection.execute("UPDATE games SET outcome = ? WHERE game = 1005", row)
    assert re.fullmatch(r"1,000 of 1,010 games, [\d,.]+ games/s(, \d+ s left)?\n", result.err)
    changed = shell("replay", "h", "--workers", "1", "--quiet")
    assert changed.err == ""
    assert (changed.code, changed.out.startswith("differs: game 1005: its replay differs from the recorded game")) == (
        1,
        True,
    )
    other_game = shell("replay", "h", "--game", "7")
    assert (other_game.code, other_game.out.startswith("The cards are dealt: ")) == (0, True)
