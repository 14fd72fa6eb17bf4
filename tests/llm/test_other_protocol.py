"""If a server uses another protocol or none, the preflight stops the run and explains it."""

from pathlib import Path

import pytest

from dubito.model_settings import Api
from tests.cli.kit import Shell
from tests.conftest import in_gate
from tests.llm.kit import PROTOCOLS, Response, Server, player_at, respond, rows, run_cli

WRONG_PATH = {  # messages about a path that the server does not know
    "responses": (" has no /responses (status 40", "uses the Responses API: set `api: chat` in the entry of"),
    "chat": (" has no /chat/completions (status 40", "uses Chat Completions: set `api: responses` in the entry of"),
    "messages": (" has no /v1/messages (status 40", "uses the Messages API: set `api: chat` in the entry of"),
}
PAIRS = [(asked, spoken) for asked in PROTOCOLS for spoken in PROTOCOLS if asked != spoken]


@pytest.mark.parametrize(
    ("protocol", "answer"),
    [
        ("responses", Response(404, "404 page not found", {"content-type": "text/plain"})),
        ("chat", Response(404, "<html><h1>Not Found</h1></html>", {"content-type": "text/html"})),
        ("messages", Response(405, '{"detail": "Method Not Allowed"}')),
        ("responses", Response(404)),
    ],
    ids=["text", "html", "405", "nothing"],
)
def test_server_without_the_path_gets_a_hint(shell: Shell, protocol: Api, answer: Response) -> None:
    with Server(lambda _: answer) as server:
        ended = run_cli(shell, player_at(server, protocol))
    assert ended.code == 3
    first, last = ended.err.splitlines()
    assert first == "No results yet: no games are finished."
    assert all(words in last for words in WRONG_PATH[protocol])
    assert len(server.requests) == 1


def test_address_without_a_path_gets_a_hint(shell: Shell) -> None:
    with Server(lambda _: Response(404)) as server:
        ended = run_cli(shell, player_at(server, "chat") | {"base_url": server.base_url("messages")})
    assert (
        "; most servers need /v1 at the end of `base_url`; otherwise, set `api: responses` in the entry of 'asker': "
        "asker uses Chat Completions" in ended.err
    )


@pytest.mark.parametrize(("asked", "spoken"), in_gate(PAIRS, [("responses", "messages"), ("chat", "responses")]))
def test_reply_of_another_protocol_is_rejected(shell: Shell, asked: Api, spoken: Api) -> None:
    """The reply contains an answer but is rejected. Its tokens count if they can be parsed."""
    with Server(lambda _: respond(spoken)) as server:
        ended = run_cli(shell, player_at(server, asked, max_output=99, tries=2))
    assert ended.code == 3
    apis = {"responses": "the Responses API", "chat": "Chat Completions", "messages": "the Messages API"}
    message = (
        f"{server.base_url(asked)} answers in {apis[spoken]}, but asker uses {apis[asked]}; set `api: {spoken}` in"
    )
    assert message in ended.err
    assert rows(Path("r"), "SELECT count(*) FROM decisions") == [(0,)]
    assert len(server.requests) == 1
    read = {asked, spoken} == {"responses", "messages"}  # these two name token counts the same
    assert rows(Path("r"), "SELECT DISTINCT assumed, tokens FROM tries") == [(0, 120 if read else 0)]
