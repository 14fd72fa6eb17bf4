"""A player at a server that speaks another protocol, or none: the preflight stops the run and says what came."""

from pathlib import Path

import pytest

from dubito.house.server import House
from dubito.llm.request import Api
from tests.cli.kit import Said as Ended
from tests.cli.kit import Shell
from tests.llm.kit import BOT_OF, PROTOCOLS, Said, Server, asker, contender, played, rows, says

WRONG_PATH = {  # what is said of a path that the server does not know
    "responses": (" has no /responses (status 40", "asks in the Responses API: add `api: chat` in the entry of"),
    "chat": (" has no /chat/completions (status 40", "asks in Chat Completions: add `api: responses` in the entry of"),
    "messages": ("or `api` or `base_url` is wrong: ", "; change `model` in the entry of"),
}
PAIRS = [(asked, spoken) for asked in PROTOCOLS for spoken in PROTOCOLS if asked != spoken]


@pytest.mark.parametrize("asked", PROTOCOLS)
def test_the_house_at_another_protocols_address(shell: Shell, asked: Api) -> None:
    with House() as house:
        address = house.base_url("responses" if asked == "messages" else "messages")
        ended = played(shell, contender("Asker", bot=BOT_OF[asked], api=asked, base_url=address))
    assert ended.code == 3
    assert f"{address} (no key) has no " in ended.err
    assert all(words in ended.err for words in WRONG_PATH[asked])
    assert "; 0 of 2 games are kept" in ended.err
    assert [call.status for call in house.calls] == [404]


@pytest.mark.parametrize(
    ("protocol", "answer"),
    [
        ("responses", Said(404, "404 page not found", {"content-type": "text/plain"})),
        ("chat", Said(404, "<html><h1>Not Found</h1></html>", {"content-type": "text/html"})),
        ("messages", Said(405, '{"detail": "Method Not Allowed"}')),
        ("responses", Said(404)),
    ],
    ids=["text", "html", "405", "nothing"],
)
def test_a_server_that_does_not_know_the_path(shell: Shell, protocol: Api, answer: Said) -> None:
    with Server(lambda _: answer) as server:
        ended = played(shell, asker(server, protocol))
    assert ended.code == 3
    first, last = ended.err.splitlines()
    assert first == "no game was finished"
    assert all(words in last for words in WRONG_PATH[protocol])
    assert len(server.heard) == 1


def stopped(ended: Ended, server: Server, words: str) -> None:
    """The preflight stopped the run: no game was begun."""
    assert ended.code == 3
    assert words in ended.err
    assert "check `base_url`" in ended.err
    assert rows(Path("r"), "SELECT count(*) FROM decisions") == [(0,)]
    assert len(server.heard) == 2, "it was tried again"


@pytest.mark.parametrize(("asked", "spoken"), PAIRS)
def test_a_reply_of_another_protocol_is_none(shell: Shell, asked: Api, spoken: Api) -> None:
    """Even if there is an answer in it; its tokens count where they can be read."""
    with Server(lambda _: says(spoken)) as server:
        ended = played(shell, asker(server, asked, max_output=99, tries=2))
    assert ended.code == 3
    apis = {"responses": "the Responses API", "chat": "Chat Completions", "messages": "the Messages API"}
    said = (
        f"{server.base_url(asked)} answers in {apis[spoken]}, but asker asks in {apis[asked]}: add `api: {spoken}` in"
    )
    assert said in ended.err
    assert rows(Path("r"), "SELECT count(*) FROM decisions") == [(0,)]
    assert len(server.heard) == 1
    read = {asked, spoken} == {"responses", "messages"}  # these two count in the same words
    assert rows(Path("r"), "SELECT DISTINCT assumed, tokens FROM tries") == [(0, 120 if read else 0)]


def test_a_web_page_is_no_reply(shell: Shell) -> None:
    page = Said(body="<html>Welcome to nginx!</html>", headers={"content-type": "text/html"})
    with Server(lambda _: page) as server:
        ended = played(shell, asker(server, "chat", tries=2))
    stopped(ended, server, "a web page with status 200: <html>Welcome to nginx!</html>")
