"""A player at a server that speaks another protocol: stopped by the preflight, or counted, and never read wrongly."""

from pathlib import Path

import pytest

from dubito.house.server import House
from dubito.llm.wire import Api
from tests.cli.kit import Shell
from tests.llm.kit import BOT_OF, PROTOCOLS, Said, Server, asker, contender, outcomes_of, played, rows, says

PAIRS = [(asked, spoken) for asked in PROTOCOLS for spoken in PROTOCOLS if asked != spoken]


@pytest.mark.parametrize("asked", PROTOCOLS)
def test_the_house_at_another_protocols_address(shell: Shell, asked: Api) -> None:
    with House() as house:
        address = house.base_url("responses" if asked == "messages" else "messages")
        ended = played(shell, contender("Asker", bot=BOT_OF[asked], api=asked, base_url=address))
    assert ended.code == 3
    assert f"{address} (no key) has no model 'house-random', or `api` or `base_url` is wrong: " in ended.err
    assert "; change `model` in the entry of 'Asker'; 0 of 2 games are kept" in ended.err
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
    assert "has no model 'some-model', or `api` or `base_url` is wrong: " in last
    assert len(server.heard) == 1


@pytest.mark.parametrize(("asked", "spoken"), PAIRS)
def test_a_reply_of_another_protocol_is_malformed(shell: Shell, asked: Api, spoken: Api) -> None:
    """Even if there is an answer in it; its tokens count at the worst where they cannot be read."""
    with Server(lambda _: says(spoken)) as server:
        ended = played(shell, asker(server, asked, max_output=99), games=1, rules={"max_turns": 5})
    assert ended.code == 0
    assert set(outcomes_of(Path("r"))) == {"fallback:malformed"}
    unread = {asked, spoken} != {"responses", "messages"}  # these two count in the same words
    assert rows(Path("r"), "SELECT DISTINCT assumed, usage IS NULL FROM tries") == [(unread, unread)]


def test_a_web_page_passes_the_preflight_and_is_malformed(shell: Shell) -> None:
    page = Said(body="<html>Welcome to nginx!</html>", headers={"content-type": "text/html"})
    with Server(lambda _: page) as server:
        ended = played(shell, asker(server, "chat"), games=1)
    assert ended.code == 0
    assert set(outcomes_of(Path("r"))) == {"fallback:malformed"}
    assert f"Assumed: {len(server.heard)} calls of asker reported no cost" in ended.out
