"""Bots that advise models: the advice in the prompt, and that nothing else changes."""

import json
import sys
from pathlib import Path

import pytest

from dubito.experiment.stored import open_recorded_run
from tests.cli.kit import Shell
from tests.llm.kit import contender, rows, run_cli

PROGRAM = """import json, sys
for line in sys.stdin:
    message = json.loads(line)
    if message["type"] == "hello":
        print('{"ready": true, "resets": true}', flush=True)
    elif message["type"] == "decide":
        answer = {"answer": message["node"] != "C", "reason": f"this is {message['node']}"}
        print(json.dumps(answer), flush=True)
"""
needs_programs = pytest.mark.skipif(sys.platform == "win32", reason="programs need Linux or macOS")


def requests_of(folder: Path, player: str) -> list[tuple[str, str]]:
    """Return the node and the text of a player's requests."""
    with open_recorded_run(folder) as run:
        asked = run.db.read(
            "SELECT node, request FROM attempts JOIN decisions USING (game, seat, decision) "
            "WHERE player = ? AND attempt = 0 ORDER BY game, seat, decision", (player,),
        )  # fmt: skip
        return [(node, run.model_log.text(request)) for node, request in asked]


def test_a_model_that_follows_sherlock_plays_as_sherlock_would(shell: Shell) -> None:
    advised = contender("Advised", "house-follower") | {"adviser": "Sherlock"}
    ended = run_cli(shell, advised, contender("Alone", "house-follower"), games=8)
    assert ended.code == 0, ended.err
    text = requests_of(shell.folder / "r", "Advised")
    advice = "Your adviser, Sherlock, would answer "
    assert all(advice in text or "has no advice" in text for _, text in text)
    assert all(advice in text for node, text in text if node in "ABC")
    assert "Its reason: Remembers every card seen, learns how each opponent plays, and" in text[0][1]
    assert not any("adviser" in text for _, text in requests_of(shell.folder / "r", "Alone"))
    assert shell("replay", "r").code == 0


def test_advice_shifts_no_random_number(shell: Shell) -> None:
    """Both contenders ignore advice, so their games are the same."""
    advised = contender("Advised", "house-sharp") | {"adviser": "StefaBot"}
    assert run_cli(shell, advised, contender("Alone", "house-sharp"), games=8).code == 0
    answers = [
        rows(shell.folder / "r", "SELECT game / 2, seat, node, answer, outcome FROM decisions WHERE game % 2 = ? "
             "ORDER BY game, seat, decision", (which,))
        for which in (0, 1)
    ]  # fmt: skip
    assert answers[0] == answers[1]


@needs_programs
def test_a_program_advises_with_reasons_and_is_replayed_without_being_started(shell: Shell) -> None:
    file = shell.folder / "advise.py"
    file.write_text(PROGRAM)
    advised = contender("Advised", "house-follower") | {"adviser": {"process": [sys.executable, "advise.py"]}}
    ended = run_cli(shell, advised, contender("Alone", "house-follower"), games=4, flags=("--trust",))
    assert ended.code == 0, ended.err
    for node, text in requests_of(shell.folder / "r", "Advised"):
        answer = "false" if node == "C" else "true"
        assert f"Your adviser, a program, would answer {answer}. Its reason: this is {node}" in text
    file.unlink()
    replayed = shell("replay", "r")
    assert replayed.code == 0
    assert "kind, command and files of Advised's adviser" in replayed.err


@needs_programs
def test_a_program_that_fails_gives_no_advice(shell: Shell) -> None:
    (shell.folder / "advise.py").write_text(PROGRAM.replace('"answer": message', '"answer": 3 if True else message'))
    advised = contender("Advised", "house-follower") | {"adviser": {"process": [sys.executable, "advise.py"]}}
    assert run_cli(shell, advised, games=2, flags=("--trust",)).code == 0
    text = requests_of(shell.folder / "r", "Advised")
    assert text
    assert all("Your adviser, a program, has no advice on this." in text for _, text in text)
    assert shell("replay", "r").code == 0


def test_a_turn_that_is_asked_at_once_has_advice_on_each_question(shell: Shell) -> None:
    advised = contender("Advised", "house-follower") | {"adviser": "Sherlock", "prompt": "plan"}
    assert run_cli(shell, advised, games=4).code == 0
    first = next(text for node, text in requests_of(shell.folder / "r", "Advised") if node == "A")
    assert "Your adviser, Sherlock, would answer A: " in first
    assert ", B: " in first


def test_each_move_of_a_game_without_turns_has_its_own_advice(shell: Shell) -> None:
    advised = contender("Advised", "house-follower") | {"adviser": "Medium"}
    config = {"game": "defuse", "games": 20, "bots": ["Medium"], "contenders": [advised]}
    (shell.folder / "c.yaml").write_text(json.dumps(config))
    assert shell("run", "c.yaml", "--output", "r", "--quiet").code == 0
    shown = requests_of(shell.folder / "r", "Advised")
    assert {node for node, _ in shown} == {"turn", "place"}
    for node, text in shown:
        answer = text.partition("Your adviser, Medium, would answer ")[2].partition(".")[0]
        assert answer.isdecimal() == (node == "place")


DUELIST = """
from bots.manual.usual_bot import UsualBot


class Duelist(UsualBot):
    @classmethod
    def rules_incompatibility(cls, rules):
        return None if rules.duel else "plays only duels"
"""


def test_an_adviser_must_fit_the_rules_of_the_run(shell: Shell) -> None:
    folder = shell.folder / "bots" / "manual"
    folder.mkdir(parents=True)
    (folder / "duelist.py").write_text(DUELIST)
    model = contender("Advised", "house-follower") | {"adviser": "Duelist"}
    duel = {"bots": ["UsualBot"], "contenders": [model], "table_sizes": [2], "games": 2, "rules": {"duel": True}}
    (shell.folder / "duel.yaml").write_text(json.dumps(duel))
    assert shell("run", "duel.yaml", "--output", "duel", "--quiet", "--no-report").code == 0
    refused = run_cli(shell, model)
    assert refused.code == 2
    assert "Advised: adviser: Duelist plays only duels" in refused.err


@pytest.mark.parametrize(
    ("adviser", "why"),
    [
        ("Sherlok", "no bot is named 'Sherlok'"),
        ("OpenAIBot", "Asker: adviser: models and agents give no advice"),
        ({"remote": True}, "Asker: adviser: models and agents give no advice"),
        (7, "Asker: adviser: must be the name of a bot"),
        ({"proces": ["x"]}, "Asker's adviser: unknown setting 'proces'"),
    ],
)
def test_a_wrong_adviser_is_refused(shell: Shell, adviser: object, why: str) -> None:
    ended = run_cli(shell, contender("Asker", "house-sharp") | {"adviser": adviser})
    assert ended.code == 2
    assert why in ended.err
