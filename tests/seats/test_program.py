"""Players that are programs: their answers, their errors, and their remains after a run."""

import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from time import monotonic
from typing import Any

import pytest

from dubito.cli.opponents import open_opponents
from dubito.sandbox.consent import Permits, require_consent
from dubito.sandbox.programs import BotProgram
from dubito.sandbox.warden import MARK
from dubito.seats.program import ProgramPool, RunningProgram
from dubito.store.run_db import RunDb
from tests.cli.kit import REPO, Result, Shell, start
from tests.conftest import in_gate
from tests.play.test_play import WHATEVER
from tests.web.kit import a_move, serve

EXAMPLES = REPO / "examples" / "programs"
LANGUAGES = {
    "python": [sys.executable, "honest.py"],
    "node": ["node", "honest.js"],
    "java": ["java", "Honest.java"],
}
HONEST = """from bots.base import BotBase


class HonestBot(BotBase):
    def bluff_first_hand(self, p):
        return False

    def should_doubt(self, p):
        return p.prev.n_cards == 0

    def bluff_regular(self, p):
        return False
"""
# Answers hello, then plays honestly until the fault in its last line.
FAULTY = """import json, os, socket, sys, time
def say(value): print(json.dumps(value), flush=True)
for line in sys.stdin:
    message = json.loads(line)
    if message["type"] == "hello":
        say({"ready": True, "resets": True})
    elif message["type"] == "decide":
        """
FAULTS = {
    "raise RuntimeError('boom\\x1b[31m')": r"it ended (exit code 1): ",
    "print('hi', flush=True)": "it answered 'hi': it is not JSON",
    "sys.stdout.write('{\"answer\"'); sys.stdout.flush(); os._exit(3)": "it ended (exit code 3)",
    "print('x' * 1_000_000, flush=True)": "it printed a line of more than 4,095 bytes",
    "time.sleep(60)": "it did not answer within 0.5 s",
    "say({'answer': 'yes'})": "`answer` is neither true nor false",
    "say({'answer': 1})": "`answer` is neither true nor false",
    "say([])": "it is not a JSON object",
    "say({'answer': True, 'answers': True})": "it has fields other than `answer`",
    "[os.fork() for _ in range(3)]; time.sleep(60)": "it did not answer within 0.5 s",
    "[os.fork() for _ in range(6)]; [1 for _ in iter(int, 1)]": "it did not answer within 0.5 s",
    "os.close(1); time.sleep(60)": "it closed its standard output",
    "[print('y' * 50) for _ in iter(int, 1)]": "it answered 'yyy",
    "[sys.stderr.write('y') for _ in iter(int, 1)]": "it did not answer within 0.5 s",
    "open('evil', 'w')": "Read-only file system",
    "assert len(os.sched_getaffinity(0)) == 1; os.sched_setaffinity(0, range(99))": "Operation not permitted",
    "socket.create_connection(('192.0.2.1', 80), 2)": "it ended (exit code 1)",
    "os.kill(os.getpid(), 9)": "it ended (SIGKILL)",
    "os.kill(os.getppid(), 9); time.sleep(60)": "it did not answer within 0.5 s",
}
GATE_FAULTS = (*list(FAULTS)[:3], "say({'answer': 'yes'})", "os.close(1); time.sleep(60)", "open('evil', 'w')")


def write_config(folder: Path, *process: str, **settings: Any) -> None:
    """Write a config in which a program plays against two bots."""
    player = {"name": "mine", "process": [*process]}
    player |= {key: settings.pop(key) for key in ("deadline", "bot", "prompt", "reads") if key in settings}
    if "bot" in player:
        del player["process"]
    config = {"games": 12, "seed": 7, "table_sizes": [3], "bots": ["StefaBot", "ClaudeBot", player], **settings}
    (folder / "config.yaml").write_text(json.dumps(config))


def digest_of(result: Result) -> str:
    assert result.code == 0, result.err
    return next(line for line in result.out.splitlines() if line.startswith("results digest:"))


def marked_processes(folder: Path) -> Iterator[int]:
    """Yield the processes of the programs of all runs in a folder."""
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            environment = (entry / "environ").read_bytes()
        except OSError:
            continue
        if f"{MARK}={folder}".encode() in environment:
            yield int(entry.name)


@pytest.fixture
def honest_digest(shell: Shell) -> str:
    shell.bot("honest_bot.py", HONEST)
    write_config(shell.folder, bot="HonestBot")
    return digest_of(shell("run", "config.yaml", "--output", "in-process"))


@pytest.mark.parametrize("language", in_gate(LANGUAGES, 1))
def test_program_gives_same_results_as_bot_in_process(shell: Shell, honest_digest: str, language: str) -> None:
    program, *rest = LANGUAGES[language]
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed")
    shutil.copytree(EXAMPLES, shell.folder / "programs")
    write_config(shell.folder, program, f"programs/{rest[0]}", deadline=30)
    assert digest_of(shell("run", "config.yaml", "--output", "run")) == honest_digest
    shutil.rmtree(shell.folder / "programs")
    replayed = shell("replay", "run")
    assert replayed.out.startswith("identical: 12 games"), "a replay needs no program"
    assert honest_digest in replayed.out
    assert [*marked_processes(shell.folder / "run")] == []


def test_folder_of_bot_is_found_by_name(shell: Shell, honest_digest: str) -> None:
    write_bot_folder(shell.folder)
    folder = shell.folder / "bots" / "manual" / "Mine"
    write_config(shell.folder, bot="Mine")
    assert digest_of(shell("run", "config.yaml", "--output", "run")) == honest_digest
    assert "The program python3 honest.py. (plays only if named)" in shell("bots").out
    (folder / "honest.py").write_text((folder / "honest.py").read_text() + "# edited\n")
    edited = shell("run", "config.yaml", "--output", "run")
    assert edited.code == 2
    assert "files" in edited.err


@pytest.mark.parametrize("fault", in_gate(FAULTS, GATE_FAULTS))
def test_fault_stops_run_and_names_program(shell: Shell, fault: str) -> None:
    (shell.folder / "faulty.py").write_text(FAULTY + fault)
    write_config(shell.folder, sys.executable, "faulty.py", deadline=0.5)
    result = shell("run", "config.yaml", "--output", "run")
    assert result.code == 3
    assert "dubito: mine (seat 1) failed in game 1, deal 1, turn 2: it" in result.err
    assert FAULTS[fault] in result.err
    assert "\x1b" not in result.err
    assert not (shell.folder / "evil").exists()
    assert [*marked_processes(shell.folder / "run")] == []
    assert shell("replay", "run").code == 0


@pytest.mark.parametrize("fault", in_gate(FAULTS, ["raise RuntimeError('boom\\x1b[31m')", "say({'answer': 'yes'})"]))
def test_fallback_plays_for_faulty_program_and_replay_repeats_it(shell: Shell, fault: str) -> None:
    (shell.folder / "faulty.py").write_text(FAULTY + fault)
    write_config(shell.folder, sys.executable, "faulty.py", deadline=0.5, on_bot_error="fallback", games=4)
    result = shell("run", "config.yaml", "--output", "run")
    digest = digest_of(result)
    assert FAULTS[fault] in result.err + result.out
    (shell.folder / "faulty.py").unlink()
    assert digest in shell("replay", "run").out


JAVA_POOL = ["ConMan", "CalculatingLiar", "Player4", "Player3", "Player2", "Hoarder"]


@pytest.mark.skipif(shutil.which("javac") is None, reason="no Java compiler is installed")
@pytest.mark.at_length
def test_java_player_of_source_project_wins_as_often_as_ours(shell: Shell) -> None:
    sources = [*map(str, (EXAMPLES / "bs").rglob("*.java"))]
    subprocess.run([str(shutil.which("javac")), "-d", "out", *sources], cwd=shell.folder, check=True)
    java = {"name": "java", "process": ["java", "-cp", "out", "controller.Controller", "players.Player1"]}
    config = {
        "game": "bs",
        "games": 600,
        "seed": 5,
        "bots": JAVA_POOL,
        "contenders": ["Player1", {**java, "deadline": 60}],
    }
    (shell.folder / "config.yaml").write_text(json.dumps(config))
    result = shell("run", "config.yaml", "--output", "run", "--json")
    assert result.code == 0, result.err
    document = json.loads(result.out)
    assert document["verdict"].startswith("No significant difference")
    # Player1 wins 15 % of its games against copies of itself in this pool.
    won = [row["rates"]["wins"] for row in document["contenders"]]
    assert all(rate["low"] < 0.15 < rate["high"] for rate in won), won


def write_bot_folder(folder: Path) -> None:
    mine = folder / "bots" / "manual" / "Mine"
    mine.mkdir(parents=True)
    shutil.copy(EXAMPLES / "honest.py", mine)
    (mine / "bot.yaml").write_text("process: [python3, honest.py]\ndeadline: 30\n")


@pytest.mark.parametrize("named", in_gate(["folder", "config"], 1))
def test_person_plays_against_program(shell: Shell, monkeypatch: pytest.MonkeyPatch, named: str) -> None:
    write_bot_folder(shell.folder)
    write_config(shell.folder, bot="Mine")
    opponent = ("Mine",) if named == "folder" else ("mine", "--config", "config.yaml")
    monkeypatch.setattr("sys.stdin", io.StringIO(WHATEVER))
    played = shell("play", "StefaBot", *opponent, "--seed", "4", "--pace", "0", "--save", "game.json")
    assert (played.code, "failed" in played.out) == (0, False), played.err
    assert "To play the same cards again" in played.out
    assert [*marked_processes(shell.folder / "games")] == []
    watched = shell("watch", "StefaBot", "ClaudeBot", *opponent, "--seed", "4", "--pace", "0")
    assert watched.code == 0, watched.err


def test_web_table_stops_programs_while_person_thinks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_bot_folder(tmp_path)
    folder = tmp_path / "bots" / "manual" / "Mine"
    program = BotProgram("Mine", ("python3", "honest.py"), folder, owns_home=True)
    require_consent([program], Permits(trust=True))
    with open_opponents(None, ["Mine", "StefaBot"], tmp_path / "games", 1, lambda: False) as opponents:
        (mine, _) = opponents.choices()
        assert (mine.kind, mine.summary) == ("program", "The program python3 honest.py.")
        with serve(tmp_path / "games", opponents=opponents) as server:
            browser = server.browser()
            assert "Programs" in browser("GET", "/").text
            view = browser.sit(["Mine", "StefaBot"], seat=0)
            while not view["over"]:
                assert len([*marked_processes(tmp_path / "games")]) <= 2, "only its empty sandbox may remain"
                view = browser.play(a_move(view["frames"][-1]))
            assert view["errors"] == []
    assert view["kinds"] == ["person", "program", "hand-written"]


@pytest.mark.at_length
def test_sixty_hostile_programs_change_no_result_of_another_player(shell: Shell) -> None:
    shutil.copy(EXAMPLES / "honest.py", shell.folder)
    honest = {"name": "honest", "process": ["python3", "honest.py"], "deadline": 60}
    hostile = list[dict[str, Any]]()
    for number in range(60):
        fault = list(FAULTS)[number % len(FAULTS)]
        (shell.folder / f"faulty{number}.py").write_text(FAULTY + fault)
        hostile.append({"name": f"h{number}", "process": ["python3", f"faulty{number}.py"], "deadline": 0.5})
    found = list[Any]()
    for name, contenders in (("alone", [honest]), ("together", [honest, *hostile])):
        config = {"games": 2 * len(contenders), "seed": 7, "table_sizes": [3], "bots": ["StefaBot", "ClaudeBot"]}
        config |= {"contenders": contenders, "on_bot_error": "fallback"}
        (shell.folder / "config.yaml").write_text(json.dumps(config))
        result = shell("run", "config.yaml", "--output", name, "--json", "--workers", "4")
        assert result.code == 0, result.err
        rows = {row["name"]: row for row in json.loads(result.out)["contenders"]}
        assert len(rows) == len(contenders)
        found.append((rows["honest"]["deals"], rows["honest"]["rates"]["score"]["value"]))
        assert [*marked_processes(shell.folder / name)] == []
    assert found[0] == found[1]


# At the 60th question it notifies the test through a named pipe and waits, or exits if there is no file.
WAITS = """
import os, time
asked = 0
def wait():
    global asked
    asked += 1
    if asked == 60 and os.path.exists("signals/pipe"):
        open("signals/pipe", "w").close()
        time.sleep(60)
    if asked == 60 and not os.path.exists("signals/gate"):
        raise SystemExit("no gate")
"""


def write_waiting_program(folder: Path) -> None:
    source = (
        (EXAMPLES / "honest.py")
        .read_text()
        .replace('        reply = {"answer"', '        wait()\n        reply = {"answer"')
    )
    (folder / "signals").mkdir()
    (folder / "waiting.py").write_text(WAITS + source)
    write_config(folder, sys.executable, "waiting.py", deadline=60, reads=["signals"])


def test_resumed_game_sends_program_all_earlier_messages(shell: Shell, honest_digest: str) -> None:
    write_waiting_program(shell.folder)
    stopped = shell("run", "config.yaml", "--output", "run").err
    assert "no gate" in stopped
    assert "pay" not in stopped
    with RunDb.open(shell.folder / "run" / "run.db") as db:
        ((recorded,),) = db.read(
            "SELECT count(*) FROM attempts WHERE reply IS NOT NULL AND game > (SELECT max(game) FROM ended)"
        )
    assert recorded > 0, "the unfinished game has recorded answers"
    (shell.folder / "signals" / "gate").touch()
    assert digest_of(shell("run", "config.yaml", "--output", "run")) == honest_digest
    assert honest_digest in shell("replay", "run").out


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="named pipes are not available")
@pytest.mark.at_length
def test_killed_run_leaves_no_process_and_resumes(shell: Shell, honest_digest: str) -> None:
    write_waiting_program(shell.folder)
    os.mkfifo(shell.folder / "signals" / "pipe")
    with start(shell.folder, "run", "config.yaml", "--output", "run", "--no-report") as killed:
        (shell.folder / "signals" / "pipe").read_bytes()
        assert [*marked_processes(shell.folder / "run")] != []
        killed.send_signal(signal.SIGKILL)
    until = monotonic() + 30
    while [*marked_processes(shell.folder / "run")]:
        assert monotonic() < until
    (shell.folder / "signals" / "pipe").unlink()
    (shell.folder / "signals" / "gate").touch()
    assert digest_of(shell("run", "config.yaml", "--output", "run")) == honest_digest


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"process": ["no-such-program"]}, "the program no-such-program is not installed"),
        ({"process": ["python3", "missing.py"]}, "missing.py does not exist"),
        ({"process": []}, "mine: process: must be a list of words; write it as"),
        ({"process": "python3 bot.py"}, "mine: process: must be a list"),
        ({"process": ["python3", "honest.py"], "prompt": "plain"}, "mine: prompt: is a setting of model players"),
        (
            {"process": ["python3", "honest.py"], "deadlin": 3},
            "mine: unknown setting 'deadlin': did you mean 'deadline'?",
        ),
        ({"process": ["python3", "honest.py"], "deadline": 0}, "mine: deadline: must be"),
        ({"bot": "ProgramBot"}, "mine: process: is needed"),
    ],
)
def test_invalid_program_is_refused_before_the_run(shell: Shell, settings: dict[str, Any], problem: str) -> None:
    shutil.copy(EXAMPLES / "honest.py", shell.folder)
    config = {"games": 12, "bots": ["StefaBot", {"name": "mine", **settings}]}
    (shell.folder / "config.yaml").write_text(json.dumps(config))
    result = shell("run", "config.yaml", "--output", "run")
    assert result.code == 2
    assert problem in result.err
    assert not (shell.folder / "run").exists()


# Plays any of our games with the first legal answer, or the first card in its hand.
ANY_GAME = """import json, sys
for line in sys.stdin:
    message = json.loads(line)
    if message["type"] == "hello":
        print('{"ready": true}', flush=True)
    elif message["type"] == "decide":
        first = message["legal"][0] if message["legal"] else [int(next(iter(message["facts"]["hand"])))]
        print(json.dumps({"answer": first}), flush=True)
"""
PAGE = REPO / "docs" / "programs.md"
GAMES = ("dubito", "bs", "defuse", "openspiel:kuhn_poker")


def record_transcript(shell: Shell, monkeypatch: pytest.MonkeyPatch, game: str) -> str:
    """Return the messages of a game up to the second answer, and the last message."""
    lines, exchange, send = list[str](), RunningProgram.exchange, RunningProgram.send

    def record_exchange(self: RunningProgram, messages: Sequence[Mapping[str, Any]], seconds: float) -> str:
        answer = exchange(self, messages, seconds)
        lines.extend([*(f"> {json.dumps(message)}" for message in messages), f"< {answer}"])
        return answer

    def record_send(self: RunningProgram, message: Mapping[str, Any]) -> None:
        lines.append(f"> {json.dumps(message)}")
        send(self, message)

    monkeypatch.setattr(RunningProgram, "exchange", record_exchange)
    monkeypatch.setattr(RunningProgram, "send", record_send)
    (shell.folder / "any_game.py").write_text(ANY_GAME)
    player = {"name": "mine", "process": ["python3", "any_game.py"]}
    config = {"game": game, "games": 4, "seed": 3, "contenders": [player]}
    (shell.folder / "config.yaml").write_text(json.dumps(config))
    result = shell("run", "config.yaml", "--output", "run")
    assert result.code == 0, result.err
    answers = [place for place, line in enumerate(lines) if line.startswith('< {"answer"')]
    end = next(line for line in lines if '"type": "end"' in line)
    shown = [*lines[: answers[1] + 1], "...", end]
    left_out = r'"facts": \{.*\}(?=, "legal"|\}$)|(?<="schema": )\{.*\}(?=, "seconds")'
    return "\n".join(
        re.sub(left_out, lambda part: '"facts": {...}' if "facts" in part[0] else "{...}", line) for line in shown
    )


@pytest.mark.parametrize("game", in_gate(GAMES, 1))
def test_page_has_transcript_of_game(shell: Shell, monkeypatch: pytest.MonkeyPatch, game: str) -> None:
    assert record_transcript(shell, monkeypatch, game) in PAGE.read_text()


def test_first_program_of_page_plays(shell: Shell) -> None:
    (program,) = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    (config,) = re.findall(r"^```yaml\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    (shell.folder / "my_bot.py").write_text(program)
    (shell.folder / "mine.yaml").write_text(config.replace("games: 100", "games: 3"))
    assert shell("run", "mine.yaml").code == 0


ODD_BOT = """import {module}
from bots.base import BotBase


class OddBot(BotBase):
    def bluff_first_hand(self, p):
        return False

    def should_doubt(self, p):
        return {doubt}

    def bluff_regular(self, p):
        return False
"""
FINDINGS = [
    ("secrets", "secrets.randbelow(2) == 0", "odd_bot.py: it uses unseeded randomness; use self.rng"),
    ("secrets", "secrets.randbelow(2) == 0", "a second game with the same seed differs"),
    ("time", "1 if p.n_players == 2 else False", "node C (should_doubt) answered a value of type int"),
    ("time", "p.my_n_cards == 1 and time.sleep(1.1) is None", "1 s, so the check stopped"),
    ("dubito.games.dubito.engine", "False", "odd_bot.py, line 1: it imports dubito.games.dubito.engine"),
    ("gc", "gc.get_objects() == []", "odd_bot.py, line 1: it imports gc"),
]


@pytest.mark.parametrize(("module", "doubt", "finding"), in_gate(FINDINGS, FINDINGS[2:3]))
def test_check_prints_line_for_problem_of_bot(shell: Shell, module: str, doubt: str, finding: str) -> None:
    shell.bot("odd_bot.py", ODD_BOT.format(module=module, doubt=doubt))
    result = shell("bots", "check", "OddBot")
    assert result.code == 1
    assert finding in result.out


def test_sound_bot_passes_check(shell: Shell) -> None:
    shell.bot("odd_bot.py", ODD_BOT.format(module="math", doubt="p.prev.n_cards == 0"))
    result = shell("bots", "check", "OddBot")
    assert result.code == 0, result.out
    assert re.fullmatch(
        r"OddBot passed all checks in \d+ turns \(duel \d+, free turn \d+, last card \d+, no doubt allowed \d+\)\.\n",
        result.out,
    )


@pytest.mark.at_length
def test_check_accepts_a_program_and_names_its_faults(shell: Shell) -> None:
    shutil.copy(EXAMPLES / "honest.py", shell.folder)
    assert shell("bots", "check", "python3 honest.py").code == 0
    (shell.folder / "faulty.py").write_text(FAULTY + "say({'answer': 'yes'})")
    faulty = shell("bots", "check", "python3 faulty.py")
    assert faulty.code == 1
    assert "`answer` is neither true nor false" in faulty.out
    assert shell("bots", "check", "no-such-program at all").code == 2
    program = shell.folder / "compiled"
    program.write_text(f"#!{sys.executable}\n{(EXAMPLES / 'honest.py').read_text()}")
    program.chmod(0o755)
    assert shell("bots", "check", "./compiled").code == 0
    assert "write ./compiled" in shell("bots", "check", "compiled").err
    assert "/missing does not exist" in shell("bots", "check", "./missing").err


def test_check_stops_at_first_late_answer_of_program(shell: Shell) -> None:
    folder = shell.folder / "bots" / "manual" / "Late"
    folder.mkdir(parents=True)
    (folder / "late.py").write_text(FAULTY + "time.sleep(60)")
    (folder / "bot.yaml").write_text("process: [python3, late.py]\ndeadline: 0.1\n")
    checked = shell("bots", "check", "Late")
    assert checked.code == 1
    assert "it did not answer within 0.1 s" in checked.out
    assert checked.out.count("so the check stopped") == 1


@pytest.mark.parametrize("workers", in_gate(["1", "4"], 1))
@pytest.mark.parametrize("resets", in_gate([True, False], 1))
def test_no_process_or_data_folder_serves_two_games_of_a_deal(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, workers: str, resets: bool
) -> None:
    taken, take = list[tuple[int, Path]](), ProgramPool.take

    def record(self: ProgramPool, game: int, deal: int, session: int, /) -> RunningProgram:
        player = take(self, game, deal, session)
        taken.append((deal, player.folder))
        return player

    monkeypatch.setattr(ProgramPool, "take", record)
    program = (EXAMPLES / "honest.py").read_text().replace('"resets": True', f'"resets": {resets}')
    assert f'"resets": {resets}' in program
    (shell.folder / "honest.py").write_text(program)
    field = {"name": "field", "process": ["python3", "honest.py"], "deadline": 30}
    config = {"games": 12, "seed": 3, "table_sizes": [3], "bots": [field], "contenders": ["StefaBot", "ClaudeBot"]}
    (shell.folder / "config.yaml").write_text(json.dumps(config))
    result = shell("run", "config.yaml", "--output", "run", "--workers", workers)
    assert result.code == 0, result.err
    assert len(taken) == len({*taken}) == 24, "two seats in each of 12 games"
    assert len({folder for _, folder in taken}) < 24, "other deals can have the same folder"
