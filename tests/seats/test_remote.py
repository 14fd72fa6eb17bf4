"""Agents over HTTP: their answers, what is rejected, and how a run with them ends."""

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest

from dubito.seats.program import ProgramError
from dubito.seats.remote import AgentAnswer, AgentSeat, NotOpen
from dubito.serve import listen, serve_in_thread
from dubito.web.agent import build_openapi, make_agent_app
from tests.cli.kit import REPO, Shell
from tests.conftest import in_gate
from tests.seats.kit import Connection, play_agent, serve_agent
from tests.seats.test_program import HONEST, digest_of

PAGE = REPO / "docs" / "seat.md"
GAMES = ("--opponents", "StefaBot,ClaudeBot", "--table-sizes", "3", "--seed", "7", "--quiet")


@pytest.fixture
def honest_digest(shell: Shell) -> str:
    shell.bot("honest_bot.py", HONEST)
    words = ("--bots", "StefaBot,ClaudeBot", "--contenders", "HonestBot", "--table-sizes", "3", "--seed", "7")
    return digest_of(shell("run", "--games", "2", *words, "--output", "in-process"))


def digest_of_replay(shell: Shell, run: str) -> str:
    return digest_of(shell("replay", run))


def test_agent_gives_same_results_as_bot_in_process(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, honest_digest: str
) -> None:
    messages = list[dict[str, Any]]()
    result, connection = serve_agent(
        shell,
        monkeypatch,
        lambda connection: messages.extend(play_agent(connection)),
        *("--games", "2", "--output", "run", *GAMES),
    )
    assert result.code == 0, result.err
    assert digest_of_replay(shell, "run") == honest_digest
    assert [message["type"] for message in messages].count("hello") == 2
    assert len([message for message in messages if message["type"] == "end" and message["results"]]) == 2
    assert (result.out + result.err).count(connection.tokens["agent"]) == 1
    token = connection.tokens["agent"].encode()
    assert not any(token in path.read_bytes() for path in shell.folder.rglob("*") if path.is_file())
    assert shell("report", "run").code == 0
    again = shell("seat", *("--games", "2", "--output", "run", *GAMES))
    assert (again.code, "this run is already finished in run" in again.err) == (0, True)


def refused(status: int, answer: tuple[int, Any], *parts: str) -> None:
    assert answer[0] == status, answer
    assert [part for part in parts if part not in answer[1]["error"]] == []


def try_refused_requests(connection: Connection) -> None:
    ask = connection.request
    schemas = ask("openapi.json", token="")[1]["components"]["schemas"]
    assert schemas["AgentAnswer"]["properties"]["answer"]["type"] == "boolean"
    refused(401, ask("observe", token=""), "Authorization: Bearer TOKEN")
    refused(401, ask("observe", token="x" * 32), "The token is missing or invalid")
    (token,) = connection.tokens.values()
    refused(401, ask("observe", token="", headers={"Authorization": f"Basic {token}"}))
    refused(401, ask("observe", token="", headers={"Authorization": f"Bearer {token[:-1]}"}))
    refused(401, ask("nothing", token=""))
    refused(421, ask("observe", headers={"Host": "evil.example"}), "--allow-host")
    refused(404, ask("nothing"), "/openapi.json describes")
    refused(405, ask("observe", {}), "/openapi.json describes")
    refused(422, ask("observe?wait=1e9"), "wait: Input should be less than or equal to 60")
    refused(422, ask("observe?all=maybe"), "all: Input should be a valid boolean")
    seen = ask("observe")[1]
    assert (seen["state"], seen["question"]) == ("decide", 1)
    assert ask("observe")[1]["messages"] == seen["messages"], "observing changes nothing"
    moves = ask("legal_moves")[1]
    assert (moves["question"], moves["legal"]) == (1, [True, False])
    refused(415, ask("act", {"question": 1, "answer": True}, headers={"Content-Type": "text/plain"}))
    refused(413, ask("act", {"question": 1, "answer": "x" * 5000}))
    refused(422, ask("act", '{"question": 1, "question": 1, "answer": true}'), "a key appears twice")
    for body in (
        "",
        "{",
        "[]",
        '{"question": 1}',
        '{"answer": true}',
        '{"question": "1", "answer": true}',
        r'{"question": 1, "answer": "\ud800"}',
    ):
        refused(422, ask("act", body), "invalid input")
    refused(409, ask("act", {"question": 2, "answer": True}), "question 2 is not open, but question 1 is")
    answers: tuple[Any, ...] = ("yes", "true", 1, None, [], {"answer": True})
    for answer in answers:
        refused(
            422,
            ask("act", {"question": 1, "answer": answer}),
            "`answer` is neither true nor false",
            "the question is still open",
        )
    assert ask("act", {"question": 1, "answer": False})[0] == 200
    refused(409, ask("act", {"question": 1, "answer": False}), "question 1 is not open")
    play_agent(connection)
    refused(409, ask("act", {"question": 1, "answer": False}), "the run is over (finished)")
    refused(409, ask("legal_moves"), "the run is over (finished)")
    assert ask("result")[1].items() >= {"state": "over", "reason": "finished", "games": 1}.items()


def test_requests_that_cannot_be_used_are_refused_and_the_game_goes_on(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    result, _ = serve_agent(shell, monkeypatch, try_refused_requests, "--games", "1", *GAMES)
    assert result.code == 0, result.err
    assert "Traceback" not in result.err


def answer_questions(connection: Connection, count: int) -> None:
    for _ in range(count):
        seen = connection.request("observe")[1]
        connection.request("act", {"question": seen["question"], "answer": seen["messages"][-1]["node"] in ("B", "E")})


def test_silent_agent_stops_run_which_resumes_without_earlier_questions(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, honest_digest: str
) -> None:
    words = ("--games", "2", "--output", "run", *GAMES)
    silent = ("--deadline", "2", *words)
    result, _ = serve_agent(shell, monkeypatch, lambda connection: answer_questions(connection, 3), *silent)
    assert result.code == 3
    assert "dubito: agent (seat" in result.err
    assert "it did not answer within 2 s" in result.err
    assert "`dubito seat run` resumes the run" in result.err
    first = list[dict[str, Any]]()

    def resume(connection: Connection) -> None:
        first.extend(connection.request("observe?all=true")[1]["messages"])
        play_agent(connection)

    assert serve_agent(shell, monkeypatch, resume, *silent)[0].code == 0
    assert digest_of_replay(shell, "run") == honest_digest
    assert [message["type"] for message in first].count("decide") == 4


@pytest.mark.parametrize("on_error", in_gate(["fallback", "forfeit"], 1))
def test_game_of_silent_agent_ends_and_next_one_begins(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, on_error: str
) -> None:
    ended = list[Any]()

    def leave_first_game(connection: Connection) -> None:
        assert connection.request("observe")[1]["game"] == 0
        while connection.request("observe")[1]["game"] == 0:
            pass
        play_agent(connection)
        ended.extend(connection.request("result")[1]["ended"])

    game = (
        ()
        if on_error == "fallback"
        else ("--game", "bs", "--opponents", "Player1,Player2,Player3,Player4", "--table-sizes", "4")
    )
    words = ("--games", "2", "--deadline", "0.5", "--on-bot-error", on_error, "--output", "run", *GAMES, *game)
    result, _ = serve_agent(shell, monkeypatch, leave_first_game, *words)
    assert result.code == 0, result.err
    assert "it did not answer within 0.5 s" in result.out
    assert [(end["game"], end["results"] is None) for end in ended] == [(0, True), (1, False)]
    assert shell("replay", "run").out.startswith("identical: 2 games")


def test_ctrl_c_tells_agent_that_run_is_over(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    reasons = list[str]()

    def interrupt(connection: Connection) -> None:
        answer_questions(connection, 2)
        os.kill(os.getpid(), signal.SIGINT)
        while connection.request("observe")[1]["state"] != "over":
            pass
        reasons.append(connection.request("result")[1]["reason"])

    result, _ = serve_agent(shell, monkeypatch, interrupt, "--games", "2", *GAMES)
    assert result.code == 130, result.err
    assert reasons == ["Ctrl-C"]


def test_agents_and_models_are_contenders_on_the_same_deals(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    agents = [{"name": name, "remote": True, "deadline": 60} for name in ("one", "two")]
    config = {"games": 3, "seed": 7, "table_sizes": [3], "bots": ["StefaBot"]}
    config["contenders"] = [*agents, "house:house-sharp"]
    (shell.folder / "c.yaml").write_text(json.dumps(config))

    def play_both(connection: Connection) -> None:
        threads = [Thread(target=play_agent, args=(connection, token)) for token in connection.tokens.values()]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    words = ("c.yaml", "--output", "run", "--quiet")
    result, _ = serve_agent(shell, monkeypatch, play_both, *words, tokens=2)
    assert result.code == 0, result.err
    kinds = {tuple(re.split(r"  +", line.strip())[:2]) for line in result.out.splitlines()}
    assert kinds >= {("one", "agent"), ("two", "agent"), ("house:house-sharp", "fake model")}
    both = json.loads(shell("run", "c.yaml", "--output", "run", "--json").out)["contenders"]
    scores = [row for row in both if row["name"] in ("one", "two")]
    assert scores[0] | {"name": ""} == scores[1] | {"name": ""}, "equal agents on equal deals have equal scores"


def test_poll_returns_once_run_is_over() -> None:
    seat, seen = AgentSeat("agent", 1, 5), list[Any]()
    with listen("127.0.0.1", 0) as listener, serve_in_thread(make_agent_app([seat], "127.0.0.1", (), {}), listener):
        connection = Connection(f"http://127.0.0.1:{listener.getsockname()[1]}/", {"agent": seat.token})
        assert connection.request("observe?wait=0")[1]["state"] == "wait"
        refused(409, connection.request("legal_moves"), "no question is open: call observe until one is")
        poll = Thread(target=lambda: seen.append(connection.request("observe?wait=60")[1]["state"]))
        poll.start()
        seat.end_run("finished")
        poll.join()
    assert seen == ["over"]


ASKED: list[Mapping[str, Any]] = [{"type": "hello", "seat": 0}, {"type": "decide", "node": "C"}]


def a_question(history: list[str], **more: Any) -> dict[str, Any]:
    facts = {"history": history, "own_moves": [0], "hand": {"7": 2}, "chance": 1 / 3, "long": "x" * 999, **more}
    return {"type": "decide", "node": "C", "facts": facts, "legal": [True, False], "schema": {}, "seconds": 5}


def test_agent_sees_only_what_is_new() -> None:
    seat = AgentSeat("agent", 2, 60, brief={"hand", "chance"})
    event, end = {"type": "event", "event": "Play", "data": {"seat": 1}}, {"type": "end", "results": ["won"]}
    steady: dict[str, Any] = {"rule_text": ["Play."], "seat": 0}
    hello: dict[str, Any] = {"type": "hello", "seat": 0, "facts": steady}
    seen = list[Any]()

    def play() -> None:
        for game in (0, 1):
            player = seat.take(game)
            first = {**hello, "facts": {**steady, "seat": game}}
            player.answer([first, event, a_question(["dealt", "b"])], lambda line: None)
            player.answer([event, a_question(["dealt", "b", "c"])], lambda line: None)
            player.send(event)
            player.send(end)
            player.give_back(player)

    def observe(whole: bool = False) -> Any:
        asyncio.run(seat.wait(60))
        observed = seat.observe(whole).messages
        assert seat.observe(whole).messages == observed, "observing changes nothing"
        return observed

    def act() -> None:
        asked = seat.observe(whole=False).question
        assert asked is not None
        seat.submit(AgentAnswer(question=asked, answer=True)).result(60)

    game = Thread(target=play)
    game.start()
    seat.connect()
    for _ in range(4):
        seen.append(observe())
        act()
    game.join()
    seat.end_run("finished")
    shown: dict[str, Any] = {"hand": {"7": 2}, "chance": 0.333}
    asks: dict[str, Any] = {"type": "decide", "node": "C", "legal": [True, False]}
    assert seen[0] == [hello, {**asks, "facts": {**shown, "history": ["dealt", "b"]}}]
    assert seen[1] == [{**asks, "facts": {**shown, "history": ["c"]}}]
    again = {"type": "hello", "seat": 0, "facts": {"seat": 1}}
    assert seen[2] == [event, end, again, {**asks, "facts": {**shown, "history": ["dealt", "b"]}}]
    assert observe(whole=True)[-3:] == [a_question(["dealt", "b", "c"]), event, end]
    assert {**hello, "facts": {**steady, "seat": 1}} in observe(whole=True)
    assert {"type": "decide", "node": "C"} in observe(whole=True)


def test_late_answer_receives_what_happened() -> None:
    seat, errors = AgentSeat("agent", 1, 0.01), list[Exception]()

    def play() -> None:
        try:
            seat.take(0).answer(ASKED, lambda line: None)
        except ProgramError as error:
            errors.append(error)

    seat.connect()
    game = Thread(target=play)
    game.start()
    game.join()
    answer = AgentAnswer(question=1, answer=True)
    with pytest.raises(NotOpen, match=r"^question 1 is no longer open: your agent failed: it did not answer within"):
        seat.submit(answer)
    seat.end_run("agent: it failed")
    with pytest.raises(NotOpen, match=r"^the run is over: your agent failed: it did not answer within 0.01 s$"):
        seat.submit(answer)


def test_client_that_disconnects_cannot_cancel_its_answer() -> None:
    seat, checked, lines = AgentSeat("agent", 1, 60), Event(), list[str]()

    def check(line: str) -> None:
        checked.wait()

    game = Thread(target=lambda: lines.append(seat.take(0).answer(ASKED, check)))
    game.start()
    seat.connect()
    asyncio.run(seat.wait(60))
    assert not seat.submit(AgentAnswer(question=1, answer=True)).cancel()
    checked.set()
    game.join()
    assert lines == ['{"answer": true}']


def test_error_of_game_ends_the_request_of_its_agent() -> None:
    seat, errors = AgentSeat("agent", 1, 60), list[BaseException]()

    def fail(line: str) -> None:
        raise ZeroDivisionError

    def play() -> None:
        try:
            seat.take(0).answer(ASKED, fail)
        except ZeroDivisionError as error:
            errors.append(error)

    game = Thread(target=play)
    game.start()
    asyncio.run(seat.wait(60))
    with pytest.raises(NotOpen, match="the game failed"):
        seat.submit(AgentAnswer(question=1, answer=True)).result(60)
    game.join()
    assert len(errors) == 1


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("--listen", "here"), "--listen: not an address: here; use one like 127.0.0.1:8765"),
        (("--listen", ":80a"), "--listen: not an address"),
        (("--listen", "127.0.0.1:66000"), "port must be a number from 0 to 65535"),
        (("--opponents", "NoBot"), "no bot is named 'NoBot'"),
        (("--deadline", "0"), "agent: deadline: must be"),
        (("--games", "three"), "--games: must be a whole number"),
        (("--name", "StefaBot"), "has the same name as a different opponent"),
        (("c.yaml", "--name", "other"), "--name and --deadline are for a config without an agent"),
    ],
)
def test_wrong_flags_are_reported_in_one_sentence(shell: Shell, words: tuple[str, ...], problem: str) -> None:
    Path("c.yaml").write_text("contenders: [{name: mine, remote: true}]\n")
    result = shell("seat", *words)
    assert (result.code, result.out) == (2, "")
    assert problem in result.err


@pytest.mark.parametrize(
    ("players", "problem"),
    [
        ("contenders: [{name: mine, remote: true}]", "mine is an agent; play this config with `dubito seat`"),
        ("bots: [StefaBot, {name: mine, remote: true}]", "mine: an agent can only be a contender"),
        ("contenders: [{name: mine, remote: false}]", "mine: process: is needed"),
        ("contenders: [{name: mine, remote: true, process: [cat]}]", "is not possible with `remote: true`"),
    ],
)
def test_config_with_agent_is_refused_by_run(shell: Shell, players: str, problem: str) -> None:
    Path("c.yaml").write_text(f"games: 2\n{players}\n")
    result = shell("run", "c.yaml", "--output", "run")
    assert (result.code, problem in result.err) == (2, True), result.err
    assert not Path("run").exists()


def test_openapi_and_page_describe_every_path() -> None:
    document = build_openapi()
    references = {part.partition('"')[0] for part in json.dumps(document).split('"#/components/schemas/')[1:]}
    assert references == document["components"]["schemas"].keys()
    described = re.findall(r"^\| `(?:GET|POST) (/\w+)` \|", PAGE.read_text(), re.MULTILINE)
    assert described == [*document["paths"]]
    assert document["paths"]["/act"]["post"]["summary"] == "Answer the open question."


def test_agent_of_page_plays(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    (program,) = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    Path("my_agent.py").write_text(program)
    printed = list[str]()

    def start_program(connection: Connection) -> None:
        words = (sys.executable, "my_agent.py", connection.url, connection.tokens["agent"])
        printed.append(subprocess.run(words, check=True, capture_output=True, text=True).stdout)

    result, _ = serve_agent(shell, monkeypatch, start_program, "--games", "2", *GAMES)
    assert result.code == 0, result.err
    assert printed[0].count("'results': [") == 2


GAMES_OF_OTHERS = ("defuse", "bs", "openspiel:kuhn_poker")


@pytest.mark.parametrize("game", in_gate(GAMES_OF_OTHERS, 1))
def test_agent_plays_other_games(shell: Shell, monkeypatch: pytest.MonkeyPatch, game: str) -> None:
    words = ("--game", game, "--games", "2", "--output", "run", "--quiet")
    assert serve_agent(shell, monkeypatch, play_agent, *words)[0].code == 0
    assert shell("replay", "run").out.startswith("identical: 2 games")
