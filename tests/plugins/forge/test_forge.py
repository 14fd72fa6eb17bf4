"""`dubito forge` with the built-in models that write bots, each of which makes one mistake."""

import json
import re
import sqlite3
import subprocess
import sys
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path

import pytest

from dubito.cli.call_options import limited_call_options, settings_of_model
from dubito.experiment.progress import ModelProgress
from dubito.experiment.stored import open_recorded_run
from dubito.game.find import find_bots, find_game
from dubito.house.server import House
from dubito.house.writers import WRITERS
from dubito.plugins.forge.forge import Forged, Order, Round, Score, forge
from dubito.plugins.forge.play import REFERENCE, Bench, find_mistakes
from dubito.plugins.forge.reply import WrittenBot
from dubito.sandbox.consent import Permits
from dubito.stats.rates import Rate
from tests.cli.kit import Shell, start
from tests.conftest import in_gate
from tests.resume.killing import kill

SMALL = ("--training", "3", "--held-out", "3", "--quiet", "--workers", "1")
TINY_BOOK = ("--games", "12", "--seed", "5", "--bots", "ClaudeBot,StefaBot", "--quiet")
ALWAYS_FALSE = """import json, sys
for line in sys.stdin:
    kind = json.loads(line)["type"]
    if kind in ("hello", "decide"):
        print(json.dumps({"ready": True, "resets": True} if kind == "hello" else {"answer": False}), flush=True)
"""
DUBITO = find_game("dubito", Path.cwd())
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="programs need Linux or macOS")


def forge_with(shell: Shell, model: str, *more: str) -> tuple[int, str]:
    result = shell("forge", f"house:{model}", *SMALL, *more)
    return result.code, result.out + result.err


def test_a_rising_model_is_told_its_results_and_its_best_round_is_chosen(shell: Shell) -> None:
    code, output = forge_with(shell, "house-writer", "--rounds", "2", "--output", "out")
    assert code == 0, output
    assert "calls: 2, " in output
    assert re.search(r"chosen: round \d, the best on 3 held-out deals that no round saw, [+-]", output)
    text = (shell.folder / "out" / "feedback-1.txt").read_text()
    assert "- your bot: " in text
    assert "- RandomBoi" not in text  # the reference plays the same seats in other games
    assert "The costliest decisions:\n- game " in text
    first, second = ((shell.folder / "out" / "report" / f"round-{n}.html").read_text() for n in (1, 2))
    assert "What changed" in second
    assert "What changed" not in first
    assert "@@" in second
    for page, number in ((first, 1), (second, 2)):
        assert "Written by house:house-writer in 2 rounds" in page
        assert "class Bot:" in page
        assert f"Round {number} is over." in page
        assert "Where it gained and lost in training" in page
    assert "written_by: house:house-writer in 2 rounds" in (shell.folder / "out" / "round-2" / "bot.yaml").read_text()
    index = (shell.folder / "out" / "report" / "index.html").read_text()
    assert "Growth over the rounds" in index
    assert 'href="round-2.html"' in index


def test_a_forge_is_replayed_offline_from_the_cache(shell: Shell) -> None:
    """The file is not played, since a busy machine can make a bot too late, which changes the next request."""
    _, output = forge_with(shell, "house-writer-syntax", "--rounds", "2", "--output", "out")
    _, again = forge_with(shell, "house-writer-syntax", "--rounds", "2", "--output", "again", "--offline")
    calls = re.compile(r"calls: .*")
    assert calls.findall(output)[0].startswith("calls: 2, ")
    assert calls.findall(again) == ["calls: 0, tokens: 0, cost $0.0000"]
    assert calls.sub("", again.replace("pages: again/", "pages: out/")) == calls.sub("", output)


def read_pages(folder: Path) -> dict[str, str]:
    files = [path for path in (folder / "report").rglob("*") if path.is_file()]
    return {str(path.relative_to(folder / "report")): path.read_bytes().decode() for path in files}


@pytest.mark.at_length
def test_a_forge_in_another_folder_differs_only_in_what_was_bought(shell: Shell) -> None:
    """The cache answers everything, so the games and the pages are the same, and nothing is counted."""
    words = ("forge", "house:house-follower", *SMALL, "--rounds", "2", "--compare", "2", "--output", "out", "--json")
    first = json.loads(shell(*words).out)
    (shell.folder / "out").rename(shell.folder / "first")
    again = json.loads(shell(*words, "--offline").out)
    assert first["calls"] == 2
    bought = ("calls", "tokens", "usd", "seconds")
    for one in (first, again, *first["compared"], *again["compared"]):
        for key in bought:
            one.pop(key, None)
    assert again == first
    pages, others = (read_pages(shell.folder / name) for name in ("first", "out"))
    differing = {name for name in pages if pages[name] != others[name]}
    assert differing == {"index.html", "data/contestants.csv", "data/contestants.json"}


def test_a_leaderboard_names_the_model_that_wrote_a_bot(shell: Shell) -> None:
    bot = shell.folder / "bots" / "manual" / "Forged"
    bot.mkdir(parents=True)
    (bot / "bot.yaml").write_text("process: [python3, bot.py]\nwritten_by: 'house:house-writer in 2 rounds'\n")
    (bot / "bot.py").write_text(ALWAYS_FALSE)
    for name in ("Forged", "StefaBot"):
        played = shell("run", *TINY_BOOK, "--contenders", name, "--output", f"runs/{name}", "--trust")
        assert played.code == 0, played.err
        (shell.folder / "submissions").mkdir(exist_ok=True)
        assert shell("export", f"runs/{name}", f"submissions/{name}.zip").code == 0
    made = shell("leaderboard", "submissions", "--output", "site", "--workers", "1")
    assert made.code == 0, made.err
    page = (shell.folder / "site" / "index.html").read_text()
    assert ">written by house:house-writer in 2 rounds<" in page
    assert ">hand-written<" in page


def test_a_model_is_compared_as_player_programmer_and_advised_player(shell: Shell) -> None:
    words = ("forge", "house:house-follower", *SMALL, "--rounds", "2", "--compare", "2", "--output", "out", "--json")
    first = shell(*words)
    assert first.code == 0, first.err
    pages = read_pages(shell.folder / "out")
    again = shell(*words, "--offline")
    result = json.loads(first.out)
    names = {row["name"] for row in result["compared"]}
    model = "house:house-follower"
    advised = {f"{model}, advised by {name}" for name in (f"its round-{result['chosen']}", "Sherlock")}
    assert names >= {
        f"{model}, plain",
        f"{model}, plan",
        *advised,
        "round-1",
        "round-2",
        "Sherlock",
        "ClaudeBot",
        REFERENCE,
    }
    for row in result["compared"]:
        is_model = row["name"].startswith("house:")
        assert (row["gain"] is None) == (row["name"] == REFERENCE)
        assert [row[key] is not None for key in ("calls", "tokens", "usd", "seconds")] == [is_model] * 4
        assert row["calls"] != 0
    by_name = {row["name"]: row["rate"] for row in result["compared"]}
    chosen = f"round-{result['chosen']}"
    assert by_name[f"{model}, advised by its {chosen}"] == by_name[chosen], "this model does what its adviser says"
    gains = [set(one["gains"]) for one in result["rounds"]]
    assert gains[0] == gains[1] > {"training", "on held-out deals", "with 8 players"}
    assert {one["nash_conv"] for one in result["rounds"]} == {0, 2}  # the second never doubts, so it loses as any seat
    assert (again.out, read_pages(shell.folder / "out")) == (first.out, pages), "nothing was bought or played again"
    assert "nash_conv in a small duel" in pages["index.html"]
    assert "As player, programmer and advised player" in (shell.folder / "out" / "report" / "index.html").read_text()


def test_other_games_are_described_and_played(shell: Shell) -> None:
    code, output = forge_with(shell, "house-writer", "--rounds", "1", "--game", "defuse", "--output", "out")
    assert code == 0, output
    assert "round 1: played 3 training deals" in output
    assert "- your bot: " in (shell.folder / "out" / "feedback-1.txt").read_text()


SENTENCES = {
    "syntax": "the file is not valid Python: line 8",
    "loop": "it did not answer within 2 s",
    "huge": "cut off at the limit of output tokens",
    "copy": "the file is a copy of UsualBot",
    "classes": "the file has the classes One and Two, but none that is called Bot",
}
REMARKS = {
    "spy": "it uses open, os and socket, but a bot has no network and sees no other files, hands or settings",
    "print": "it calls print, which nobody reads: leave it out",
    "same": "round 2: the file is the same as in round 1, so it was not played again",
    "prose": "played 3 training deals",
    "overfit": "played 3 training deals",
}


def test_every_mistake_is_tested() -> None:
    assert {f"house-writer-{name}" for name in SENTENCES | REMARKS} == WRITERS.keys() - {"house-writer"}


@pytest.mark.parametrize("mistake", SENTENCES)
def test_a_file_that_cannot_be_played_counts_as_a_round(shell: Shell, mistake: str) -> None:
    code, output = forge_with(shell, f"house-writer-{mistake}", "--rounds", "1", "--output", "out")
    assert code == 1
    assert SENTENCES[mistake] in output
    assert "no round wrote a bot that can play" in output
    assert SENTENCES[mistake] in (shell.folder / "out" / "feedback-1.txt").read_text()
    assert not (shell.folder / "out" / "training-1").exists()


@pytest.mark.parametrize("mistake", in_gate(REMARKS, ["spy"]))
def test_a_file_with_a_remark_plays(shell: Shell, mistake: str) -> None:
    code, output = forge_with(shell, f"house-writer-{mistake}", "--rounds", "2" if mistake == "same" else "1")
    assert code == 0, output
    assert REMARKS[mistake] in output
    assert "chosen: round 1" in output
    # The spy ends if it can read a file of the forge, or use the network.
    assert "SystemExit" not in output


def test_a_file_of_five_megabytes_is_refused(shell: Shell) -> None:
    code, output = forge_with(shell, "house-writer-huge", "--rounds", "1", "--max-output", "3000000")
    assert code == 1
    assert "the file has 5,400,286 bytes" in output
    assert "at most 100,000 are allowed" in output


@pytest.mark.at_length
def test_more_rounds_continue_a_forge(shell: Shell) -> None:
    assert "calls: 1, " in forge_with(shell, "house-writer", "--rounds", "1", "--output", "out")[1]
    assert "calls: 2, " in forge_with(shell, "house-writer", "--rounds", "2", "--output", "out")[1]


@pytest.mark.at_length
def test_a_budget_stops_the_forge_and_the_same_command_resumes(shell: Shell) -> None:
    code, output = forge_with(shell, "house-writer", "--rounds", "2", "--budget", "calls=1", "--output", "out")
    assert code != 0
    assert "resumes" in output
    code, output = forge_with(shell, "house-writer", "--rounds", "2", "--output", "out")
    assert code == 0
    assert "calls: 2, " in output


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("forge", "writer"), "does not start with a provider"),
        (("forge", "house:nobody"), "has no model 'nobody'"),
        (("forge", "house:house-writer", "--rounds", "0"), "--rounds"),
        (("forge", "house:house-writer", "--api", "decisions"), "this API returns decisions"),
        (("forge", "openai:gpt-5"), "OPENAI_API_KEY"),
    ],
)
def test_bad_input_is_refused_before_a_call(shell: Shell, words: tuple[str, ...], why: str) -> None:
    result = shell(*words)
    assert result.code == 2
    assert why in result.err
    assert not (shell.folder / "runs").exists()


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    monkeypatch.chdir(tmp_path)
    calls = replace(limited_call_options({}), permits=Permits(trust=True))
    return Bench(find_bots(tmp_path, "dubito"), calls, 1, True)


def run_forge(bench: Bench, folder: Path, model: str = "house-writer", rounds: int = 2, deals: int = 2) -> Forged:
    settings = settings_of_model(f"house:{model}", {}, DUBITO)
    return forge(Order(model, settings, rounds, deals, deals), bench, folder, ModelProgress(), lambda line: None)


KILLS = ("round-1/bot.py", "training-1/manifest.yaml", "feedback-1.txt", "round-2/bot.py", "held-out-*/manifest.yaml")


def wait_for_file(process: "subprocess.Popen[str]", folder: Path, pattern: str) -> None:
    while not any(folder.glob(pattern)):
        with suppress(subprocess.TimeoutExpired):
            pytest.fail(f"it ended with {process.wait(0.01)} before {pattern} was written")


def count_open_calls(folder: Path) -> int:
    """Return how many calls had no reply when the forge was killed."""
    if not (folder / "run.db").exists():
        return 0
    with closing(sqlite3.connect(folder / "run.db")) as db:
        return int(db.execute("SELECT count(*) FROM tries WHERE state = 'open'").fetchone()[0])


@pytest.mark.at_length
@pytest.mark.parametrize("point", KILLS)
def test_a_killed_forge_buys_each_request_once(shell: Shell, point: str) -> None:
    with House() as house:
        address = house.openai_base_url
        words = ("forge", "openai:house-writer", "--base-url", address, *SMALL, "--rounds", "2", "--json")
        with start(shell.folder, *words, "--output", "killed") as process:
            wait_for_file(process, shell.folder / "killed", point)
            kill(process)
        lost = count_open_calls(shell.folder / "killed")
        resumed = shell(*words, "--output", "killed")
        assert resumed.code == 0, resumed.err
        bought = [(call.request, call.draw) for call in house.calls if call.path.endswith("/responses")]
        assert len({*bought}) == 2
        assert len(bought) <= 2 + lost, "only a call without a reply is repeated"
        whole = shell(*words, "--output", "whole")
        assert len([call for call in house.calls if call.path.endswith("/responses")]) == len(bought), (
            "the cache answered"
        )
    results = [json.loads(ended.out) for ended in (resumed, whole)]
    assert results[0]["calls"] == 2 + lost
    for one in results:
        for key in ("folder", "calls", "tokens", "usd"):
            del one[key]
        for each in one["rounds"]:
            del each["file"]
    assert results[0] == results[1]


def test_mistakes_are_wrong_by_the_hidden_cards(bench: Bench, tmp_path: Path) -> None:
    forged = run_forge(bench, tmp_path / "out", rounds=1, deals=6)
    (score,) = forged.scores
    assert score.round.training is not None
    folder = score.round.training.folder
    mistakes = find_mistakes(folder, "round-1", 50)
    piles = [one.pile for one in mistakes]
    assert piles == sorted(piles, reverse=True)
    wrong = [one for one in mistakes if one.what == "your doubt was wrong"]
    assert wrong
    for one in wrong:
        assert one.facts["question"].endswith("Do you doubt?")  # type: ignore[attr-defined]
        assert one.facts["sure_bluff"] is not True
    with open_recorded_run(folder) as run:
        assert run.names[-1] == REFERENCE


def score_of(training: tuple[float, float], held_out: tuple[float, float]) -> Score:
    one, other = (Rate(value, value - half, value + half) for value, half in (training, held_out))
    return Score(Round(1, WrittenBot("x"), []), one, other, one, other)


def test_an_overfitted_round_is_named_only_if_chance_cannot_explain_it() -> None:
    assert score_of((0.30, 0.05), (0.10, 0.05)).is_overfitted
    assert not score_of((0.30, 0.20), (0.10, 0.20)).is_overfitted
    assert not score_of((0.10, 0.05), (0.30, 0.05)).is_overfitted
