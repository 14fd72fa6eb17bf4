"""Unusable answers: counted by cause, replaced by the fallback and shown; outages stop the run."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dubito.experiment.run import RunResult
from dubito.llm.price_list import read_prices
from dubito.model_settings import Api
from tests.cli.kit import REPO, Shell
from tests.conftest import in_gate
from tests.llm.kit import (
    AFTER_A_REFUSAL,
    PROBE,
    PROTOCOLS,
    YES,
    Incoming,
    Response,
    Server,
    contender,
    error_body,
    outcomes_of,
    player_at,
    respond,
    rows,
    run_cli,
    run_games,
    small,
)

Answer = Callable[[Incoming], Response]


def run_at(server: Server, protocol: Api, folder: Path, games: int = 1, turns: int = 5, **more: Any) -> RunResult:
    """Play a short run of one contender that uses this server."""
    patience = more.pop("patience", 1e9)
    player = player_at(server, protocol, **more)
    calls = {"in_flight": 1, "patience": patience, "on_unusable": "fallback"}
    return run_games(small(player, games=games, turns=turns), folder, **calls)


def always(text: str | None = YES, finish: str = "stop") -> Answer:
    return lambda request: respond(request.protocol, text, finish)


def failing(status: int, kind: str = "some_error", message: str = "no") -> Answer:
    return lambda request: (
        respond(request.protocol)
        if PROBE in request.raw
        else Response(status, error_body(request.protocol, kind, message))
    )


CAUSES: dict[str, tuple[Answer, str, int]] = {  # the server, the cause, requests per decision
    "prose": (always("Yes, I doubt it."), "malformed", 2),
    "fences": (always(f"```json\n{YES}\n```"), "malformed", 2),
    "thoughts": (always(f"<think>He lies.</think>{YES}"), "malformed", 2),
    "a refusal": (always("I cannot.", "refusal"), "refused", 2),
    "a filter": (always(None, "filter"), "refused", 2),
    "cut off": (always('{"ans', "length"), "truncated", 2),
    "all thought": (always(None, "length"), "truncated", 2),
    "no text": (always(None), "malformed", 2),
    "too long": (failing(400, "context_length_exceeded", "prompt is too long"), "too_long", 1),
    "an error": (failing(503), "unreachable", 14),
}


TWINS = {"fences", "thoughts", "no text", "a filter", "all thought"}  # parsed like other cases


@pytest.mark.parametrize("name", in_gate(CAUSES, CAUSES.keys() - TWINS))
def test_each_cause_is_counted(tmp_path: Path, name: str) -> None:
    """One contender per protocol plays the same deal."""
    answer, cause, requests = CAUSES[name]
    with Server(answer) as server:
        players = [player_at(server, protocol, protocol, tries=3) for protocol in PROTOCOLS]
        run = run_games(small(*players, games=3, turns=3), tmp_path / "run", in_flight=1)
    assert run.failure is None
    assert run.tally.games == 3, "games with a fallback are counted"
    for protocol, log in run.models.items():
        assert set(log.outcomes) == {f"fallback:{cause}"}
        assert log.decisions > 1
        request = [request for request in server.requests if request.protocol == protocol and PROBE not in request.raw]
        probes = sum(request.protocol == protocol and PROBE in request.raw for request in server.requests)
        assert len(request) == requests * log.decisions == log.calls - probes
        assert log.reasks == (log.decisions if requests == 2 else 0)
        assert sum(each.re_asked for each in request) == log.reasks
        query = "SELECT count(*) FROM attempts WHERE player = ? AND reply IS NULL AND cause = ?"
        unanswered = rows(run.folder, query, (protocol, cause))
        assert unanswered == [(log.decisions if cause in ("too_long", "unreachable") else 0,)]


REFUSED = always("I cannot.", "refusal")


@pytest.mark.parametrize(
    ("first", "asked_again"),
    in_gate(
        [
            (always(None, "length"), "Your last reply was cut off before the answer."),
            (REFUSED, 'Please reply with nothing but the JSON object, {"answer": true} or {"answer": false}.'),
            (always("I doubt it."), "Your last reply could not be read: it is not JSON."),
        ],
        2,
    ),
)
def test_usable_answer_to_a_re_ask_counts_as_the_models(tmp_path: Path, first: Answer, asked_again: str) -> None:
    """After a refusal the model does not see that it refused, so it refuses again."""
    with Server(lambda request: respond(request.protocol) if request.re_asked else first(request)) as server:
        players = [player_at(server, protocol, protocol) for protocol in PROTOCOLS]
        run = run_games(small(*players, games=3, turns=6), tmp_path / "run", in_flight=1)
    assert set(outcomes_of(run.folder)) == {"model_after_reask"}
    again = [request for request in server.requests if request.re_asked]
    assert {request.protocol for request in again} == set(PROTOCOLS)
    for request in again:
        if first is REFUSED:
            roles = [message["role"] for message in request.conversation]
            assert roles in (["user"], ["system", "user"], ["developer", "user"])
            asked, _, words = request.last.partition(AFTER_A_REFUSAL)
            assert any(other.last == asked for other in server.requests)
            assert words == asked_again
        else:
            last, again_asked = request.conversation[-2:]
            assert last["role"] == "assistant"
            assert last["content"], "providers reject empty messages"
            assert again_asked["content"].startswith(asked_again)
    assert rows(run.folder, "SELECT DISTINCT answer FROM decisions") == [(1,)]


def test_re_asks_after_a_refusal_build_on_the_new_conversation(tmp_path: Path) -> None:
    def answer(request: Incoming) -> Response:
        return respond(request.protocol, "prose") if request.re_asked else respond(request.protocol, "No.", "refusal")

    with Server(answer) as server:
        run_at(server, "chat", tmp_path / "run", reasks=2)
    last = [request.conversation for request in server.requests if len(request.conversation) == 4]
    assert [message["role"] for message in last[0]] == ["system", "user", "assistant", "user"]
    assert AFTER_A_REFUSAL in last[0][1]["content"]
    assert last[0][2]["content"] == "prose"


@pytest.mark.parametrize(("reasks", "requests"), in_gate([(0, 1), (1, 2), (3, 4)], [(3, 4)]))
def test_number_of_re_asks_is_a_player_setting(tmp_path: Path, reasks: int, requests: int) -> None:
    with Server(always("prose")) as server:
        run = run_at(server, "responses", tmp_path / "run", reasks=reasks)
    log = run.models["asker"]
    assert len(server.requests) == requests * log.decisions
    drawn = {request.headers["x-dubito-draw"] for request in server.requests}
    assert len(drawn) == len(server.requests), "each attempt has its own draw"


WATCHER = '''
from bots.base import BotBase
from dubito.game_data import CardsPlayedEvent, GameStartEvent
class Watcher(BotBase):
    """Doubts if it saw the game from its start to the play that it may doubt; never bluffs."""
    def __init__(self, id):
        super().__init__(id)
        self.seen = []
    def observe(self, event): self.seen.append(event)
    def bluff_first_hand(self, p): return False
    def maximize_first_hand(self, p): return False
    def should_doubt(self, p):
        last = [event for event in self.seen if isinstance(event, CardsPlayedEvent)][-1]
        return isinstance(self.seen[0], GameStartEvent) and last.player_id == p.last_player_id
    def bluff_regular(self, p): return False
    def maximize_regular(self, p): return False
'''


def test_the_fallback_decides_and_has_seen_the_game(shell: Shell) -> None:
    shell.bot("watcher.py", WATCHER)
    with Server(always("prose")) as server:
        who = contender("asker", base_url=server.base_url("responses"), reasks=0, fallback="Watcher")
        assert run_cli(shell, who, on_unusable="fallback").code == 0
    answers = dict(rows(Path("r"), "SELECT node, group_concat(DISTINCT answer) FROM decisions GROUP BY node"))
    assert answers.pop("C") == "1"
    assert set(answers.values()) == {"0"}


def test_paid_replies_are_stored_even_if_unreadable(tmp_path: Path) -> None:
    with Server(always("prose")) as server:
        first = run_at(server, "responses", tmp_path / "first")
        calls = len(server.requests)
        second = run_at(server, "responses", tmp_path / "second")
        assert len(server.requests) == calls
    assert first.results_digest == second.results_digest
    assert rows(first.folder, "SELECT DISTINCT state FROM tries") == [("received",)]


def test_unreachable_requests_are_repeated_by_the_next_run(tmp_path: Path) -> None:
    answers: list[Answer] = [failing(503)]

    with Server(lambda request: answers[0](request)) as server:
        first = run_at(server, "responses", tmp_path / "first", tries=2)
        answers[0] = always()
        second = run_at(server, "responses", tmp_path / "second", tries=2)
    assert set(outcomes_of(first.folder)) == {"fallback:unreachable"}
    assert set(outcomes_of(second.folder)) == {"model"}


@pytest.mark.parametrize("count", [2**24, 10**400])
def test_absurd_token_count_does_not_stop_the_run(tmp_path: Path, count: int) -> None:
    usage = {"input_tokens": count, "output_tokens": count}
    prices = read_prices(
        {"some-model": dict.fromkeys(["input", "cached_input", "cache_write", "output"], 5000)}, "", REPO
    )
    with Server(lambda request: respond(request.protocol, usage=usage)) as server:
        run = run_games(small(player_at(server), games=1, turns=4), tmp_path / "run", prices=prices)
    log = run.models["asker"]
    assert set(outcomes_of(run.folder)) == {"model"}
    assert log.assumed == (0 if count == 2**24 else log.calls)
