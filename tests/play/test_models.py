"""Model players at a table with a person in the terminal."""

import itertools
import subprocess
import threading
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import yaml

from dubito.cli.opponents import TableOrder, open_game
from dubito.errors import RunStopped
from dubito.show.session import Session
from tests.cli.kit import Shell, start
from tests.conftest import in_gate
from tests.engine.golden import RECORDS
from tests.llm.kit import KEY, Incoming, Response, Server, contender, error_body, player_at, respond, rows
from tests.play.conftest import Play

WHATEVER = "d\n" + "\n".join(f"{card}" for card in ("*", *range(1, 14))) + "\n"


def config(*players: Mapping[str, Any]) -> str:
    Path("c.yaml").write_text(yaml.safe_dump({"bots": list(players), "preflight": False}))
    return "c.yaml"


def test_a_game_with_a_configs_players_is_played_and_kept(play: Play) -> None:
    file = config(contender("sharp", "house-sharp"), {"bot": "MrDoubt", "name": "doubter"})
    result = play(
        "sharp", "doubter", "--config", file, "--seed", "4", "--seat", "0", "--save", "g.json", typed=WHATEVER * 200
    )
    assert result.code == 0
    assert result.out.splitlines()[0] == "Players, in playing order: you, sharp, doubter."
    assert result.err.startswith("These are fake models: a built-in server on this machine answers for sharp.\n")
    assert f"dubito play sharp doubter --seed 4 --deal 0 --seat 0 --config {file}" in result.out
    record = RECORDS.load(Path("g.json").read_text())
    taken = rows(Path("games"), "SELECT DISTINCT game, seat, outcome FROM decisions")
    assert taken == [(record.number, 1, "model")]


SILENCE = 20  # failures in a row


def test_obstacle_is_reported_and_retried(play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_KEY", KEY)
    answers = iter([True, False] + [False] * SILENCE)  # fails during a turn, for a long time

    def sometimes(request: Incoming) -> Response:
        if next(answers, True):
            return respond(request.protocol)
        return Response(503, error_body(request.protocol, "overloaded", "try again later"))

    with Server(sometimes) as model:
        file = config(player_at(model, name="asker", api_key_env="SOME_KEY", tries=1))
        result = play("asker", "MrDoubt", "--config", file, "--seed", "1", "--seat", "0", typed=WHATEVER * 3)
    assert result.code == 0
    assert result.out.count("which cannot be reached") == SILENCE + 1
    assert result.out.count("   1. You play") == result.out.count("   2. asker ") == 1
    assert KEY not in result.out + result.err
    assert rows(Path("games"), "SELECT DISTINCT outcome FROM decisions") == [("model",)]
    ((asked, last),) = rows(Path("games"), "SELECT count(*), max(decision) FROM decisions")
    assert asked == last + 1  # each question is sent once


def test_a_model_by_its_short_name_needs_no_config(play: Play) -> None:
    result = play("openai:gpt@plain", "MrDoubt")
    assert (result.code, result.out) == (2, "")
    assert result.err.startswith("dubito: openai:gpt@plain needs a key for https://api.openai.com/v1; ")


def test_watch_plays_beside_running_web(shell: Shell) -> None:
    file = config(contender("sharp", "house-sharp"))
    with start(shell.folder, "web", file, "--port", "0") as web:
        assert web.stdout is not None
        while "Press Ctrl-C to stop" not in (line := web.stdout.readline()):
            assert line, web.stderr and web.stderr.read()
        result = shell("watch", "sharp", "MrDoubt", "StefaBot", "--config", file)
        assert web.poll() is None
    assert result.code == 0, result.err
    assert rows(Path("games"), "SELECT DISTINCT outcome FROM decisions") == [("model",)]


def order(file: str, deal: int) -> TableOrder:
    return TableOrder(
        names=["asker", "MrDoubt", "StefaBot"],
        game="dubito",
        seed=1,
        deal=deal,
        on_bot_error="stop",
        bot_deadline=None,
        save=None,
        config=Path(file),
        games=Path("games"),
        server={},
        rules={},
    )


def move_in_turn(sessions: Sequence[Session]) -> None:
    for session in itertools.cycle(sessions):
        session.move()


def test_processes_in_one_games_folder_keep_one_budget(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with Server(lambda request: respond(request.protocol)) as model, ExitStack() as tables:
        players = [player_at(model), {"bot": "MrDoubt"}]
        Path("c.yaml").write_text(yaml.safe_dump({"bots": players, "preflight": False, "budget": {"calls": 5}}))
        games = [tables.enter_context(open_game(order("c.yaml", deal))) for deal in (0, 1)]
        sessions = [game.start(lambda thought: None, lambda seat, text: None) for game in games]
        with pytest.raises(RunStopped, match="other processes have used up the budget"):
            move_in_turn(sessions)
        assert len(model.requests) == 5
    assert rows(Path("games"), "SELECT count(*), count(DISTINCT game) FROM tries") == [(5, 2)]


class AnswersAfter:
    """A server that answers once the event is set."""

    def __init__(self, event: threading.Event) -> None:
        self._event = event

    def __call__(self, request: Incoming) -> Response:
        assert self._event.wait(60)
        return respond(request.protocol)


COMMANDS: dict[str, tuple[str, ...]] = {
    "watch": ("watch", "asker", "MrDoubt", "StefaBot", "--config", "c.yaml"),
    "watch --web": ("watch", "asker", "MrDoubt", "StefaBot", "--config", "c.yaml", "--web", "--port", "0"),
    "play": ("play", "asker", "MrDoubt", "--config", "c.yaml"),
    "web": ("web", "c.yaml", "--port", "0"),
}


@pytest.mark.parametrize("name", in_gate(COMMANDS, ["web"]))
def test_command_reports_that_it_waits_for_preflight(tmp_path: Path, name: str) -> None:
    noted = threading.Event()
    with Server(AnswersAfter(noted)) as model:
        (tmp_path / "c.yaml").write_text(yaml.safe_dump({"bots": [player_at(model)]}))
        with start(tmp_path, *COMMANDS[name], stdin=subprocess.DEVNULL) as process:
            assert process.stderr is not None
            assert process.stdout is not None
            assert process.stderr.readline() == ("waiting: sending a test question to each model player\n")
            noted.set()
            assert process.stdout.readline()
