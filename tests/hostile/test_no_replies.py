"""Bodies with status 200 that are not replies: each is a failed try with a cause, retried and never used."""

import gzip
import json
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import pytest

from dubito.llm.cache import ReplyCache
from dubito.llm.request import RawReply, Request
from dubito.model_settings import Api
from tests.cli.kit import Shell
from tests.hostile.kit import Scene, first
from tests.llm.kit import (
    PROTOCOLS,
    YES,
    Response,
    Server,
    outcomes_of,
    player_at,
    reply_body,
    respond,
    run_cli,
)

HTML: Final = {"content-type": "text/html"}
PACKED: Final = {"content-type": "application/json", "content-encoding": "gzip"}
PAGE: Final = Response(body="<!DOCTYPE html><html><body>502 Bad Gateway</body></html>", headers=HTML)


def whole(protocol: Api) -> str:
    return json.dumps(reply_body(protocol))


def streamed(protocol: Api) -> str:
    """Return the reply as a stream of events, although no stream was requested."""
    if protocol == "chat":
        delta = {"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": {"content": YES}}]}
        return f": PROCESSING\n\ndata: {json.dumps(delta)}\n\ndata: [DONE]\n\n"
    kind = "response.completed" if protocol == "responses" else "message_start"
    return f"event: {kind}\ndata: {whole(protocol)}\n\n"


def bodies(protocol: Api) -> Mapping[str, tuple[Response, str, bool]]:
    """Yield non-replies with their name, and whether the call may have been billed."""
    text = whole(protocol)
    return {
        "a page": (PAGE, "a web page", False),
        "a page with the answer in it": (Response(body=f"<html><script>{YES}</script></html>"), "a web page", False),
        "an answer of XML": (
            Response(body='<?xml version="1.0"?><Error><Code>Busy</Code></Error>'),
            "a web page",
            False,
        ),
        "no content": (Response(204), "an empty body", False),
        "an empty body": (Response(), "an empty body", True),
        "keep-alive blanks": (Response(body="\n   \n \n"), "an empty body", True),
        "a stream": (
            Response(body=streamed(protocol), headers={"content-type": "text/event-stream"}),
            "event stream",
            True,
        ),
        "half of it": (Response(body=text[: len(text) // 2]), "truncated or unreadable JSON", True),
        "without its last byte": (Response(body=text[:-1]), "truncated or unreadable JSON", True),
        "packed, without its end": (
            Response(body=gzip.compress(text.encode())[:-8], headers=PACKED),
            "truncated",
            True,
        ),
        "too large": (Response(body=text[:-1] + f', "x": "{"x" * 9_000_000}"}}'), "more than 8 MB", True),
        "the answer alone": (Response(body=YES), "JSON that is not a", False),
        "a good word": (Response(body='{"message": "ok"}'), "JSON that is not a", False),
        "a list of it": (Response(body=f"[{text}]"), "JSON that is not a", False),
        "a string": (Response(body='"ok"'), "JSON that is not a", False),
        "null": (Response(body="null"), "JSON that is not a", False),
        "a text": (Response(body="OK"), "text that is not JSON", False),
        "a health check": (Response(201, '{"status": "healthy"}'), "JSON that is not a", False),
        "another protocol": (
            Response(body=json.dumps(reply_body(PROTOCOLS[PROTOCOLS.index(protocol) - 1], usage=None))),
            "JSON that is not a",
            False,
        ),
        "parts of the wrong kind": (
            Response(body='{"choices": ["x"], "content": ["x"], "output": ["x"]}'),
            "JSON that is not a",
            False,
        ),
    }


def test_non_reply_is_retried(scene: Scene, at_length: bool, subtests: pytest.Subtests) -> None:
    """The gate tests each with one of the protocols in turn."""
    for number, name in enumerate(bodies("chat")):
        with subtests.test(number=number, name=name):
            for protocol in PROTOCOLS if at_length else [PROTOCOLS[number % 3]]:
                message, words, lost = bodies(protocol)[name]
                made = scene(protocol, first(message))
                assert (made.outcome, made.answer, made.tries) == ("model", True, ("server", "received"))
                assert words in made.errors[0]
                assert f"with status {message.status}" in made.errors[0]
                assert made.assumed == (lost, False), (
                    "replies that may be billed are counted, but a proxy's page is not"
                )


def test_first_line_describes_the_game(scene: Scene) -> None:
    made = scene("chat", first(PAGE, Response(body=whole("messages"))))
    assert made.errors[0] == f"a web page with status 200: {PAGE.body!s}"
    assert made.errors[1].startswith("JSON that is not a chat completion with status 200: {")


@pytest.mark.parametrize("kind", ["a page", "a list of it"])
def test_cached_non_reply_is_not_served(shell: Shell, kind: str) -> None:
    with Server(lambda request: respond(request.protocol)) as server:
        who = player_at(server, "chat", base_url=server.base_url("chat"))
        flags = ["--no-preflight"]
        assert run_cli(shell, who, games=1, flags=flags).code == 0
        calls = len(server.requests)
        spoil(Path("cache"), bodies("chat")[kind][0].body, entries=2)
        offline = run_cli(shell, who, games=1, flags=[*flags, "--offline", "--output", "off"])
        assert offline.code == 3
        assert "the cache has" in offline.err
        assert "`dubito cache drop --cause malformed" in offline.err
        assert run_cli(shell, who, games=1, flags=[*flags, "--output", "s"]).code == 0
        assert len(server.requests) == calls + 2
    assert outcomes_of(Path("s")).keys() == {"model"}
    with closing(ReplyCache(Path("cache"))) as cache:
        assert all("choices" in entry.received.raw for key in cache if (entry := cache.entry(key)))


ENDED: Final = {
    "refused": json.dumps(reply_body("chat", "No.", "refusal")),
    "truncated": json.dumps(reply_body("chat", "{", "length")),
}
PROSE: Final = json.dumps(reply_body("chat", "Yes, I doubt it."))
CAUSES: Final = {"malformed": ["OK", PROSE], **{end: [body] for end, body in ENDED.items()}}


@pytest.mark.parametrize("cause", CAUSES)
def test_entries_can_be_dropped_by_kind(shell: Shell, cause: str) -> None:
    held = ["OK", PROSE, *ENDED.values(), whole("chat")]
    with closing(ReplyCache(Path("cache"))) as cache:
        for number, raw in enumerate(held):
            keep(cache, "s", Request("chat", "/chat/completions", {"n": number}), "d", raw)
    result = shell("cache", "drop", "--cause", cause)
    dropped = CAUSES[cause]
    size = sum(len(raw.encode()) for raw in dropped)
    assert (result.code, result.err) == (0, "")
    assert result.out.startswith(f"removed {len(dropped)} of {len(held)} replies, {size:,} bytes; copies are in ")
    with closing(ReplyCache(Path("cache"))) as cache:
        assert len(cache) == len(held) - len(dropped)
    assert len([*Path("cache/dropped").iterdir()]) == len(dropped)


def test_drop_needs_a_key_or_a_cause(shell: Shell) -> None:
    with closing(ReplyCache(Path("cache"))):
        pass
    for flags in ([], ["abc", "--cause", "refused"]):
        result = shell("cache", "drop", *flags)
        assert result.code == 2
        assert "a KEY, or use --cause" in result.err
    assert shell("cache", "drop", "--cause", "page").code == 2


def spoil(folder: Path, body: str | bytes, entries: int) -> None:
    """Replace some replies with this body."""
    with closing(ReplyCache(folder)) as cache:
        for key in [*cache][:entries]:
            entry = cache.entry(key)
            assert entry is not None
            sent: dict[str, Any] = json.loads(entry.request)
            cache.drop(key)
            keep(cache, entry.server, Request(**sent), entry.draw, str(body))


def keep(cache: ReplyCache, server: str, request: Request, draw: str, raw: str) -> None:
    cache.get_or_ask(server, request, draw, lambda: RawReply(200, raw))
