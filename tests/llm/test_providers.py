"""One call through the real SDKs to a scripted server: the request, the reply, and the headers."""

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Any

import pytest

from dubito.games.dubito.game import GAME
from dubito.llm.answers import build_form
from dubito.llm.client import Provider
from dubito.llm.protocols import build_request
from dubito.llm.protocols.wire import Exchange
from dubito.llm.request import AccountFault, Attempt, RawReply, TryFailed, canonical_json
from dubito.model_settings import Account, Api
from tests.conftest import in_gate
from tests.llm.kit import (
    KEY,
    PATH_OF,
    PLACE,
    PROTOCOLS,
    Incoming,
    Line,
    Response,
    Server,
    reply_body,
    respond,
    settings,
)

PARAMETERS = {
    "reasoning": {"effort": "low", "summary": None},
    "temperature": 0,
    "top_p": 0.25,
    "metadata": {"ünicode": "日本 \U0001f0cf \u2028", "empty": {}, "list": [1, [2, {}], None, True, 1e-9]},
    "tools": [],
    "nothing": None,
    "timeout": 3,
    "extra_body": {"x": 1},
}
SCHEMA = build_form(("reasoning", "p_bluff", "answer"), GAME.node("C")).schema


def provider(server: Server, protocol: Api, key: str = KEY) -> Provider:
    address = server.base_url(protocol)
    return Provider(Account(protocol, address, "SOME_KEY"), address, key, 4)


def build_attempt(protocol: Api, **changes: Any) -> Attempt:
    exchange = Exchange("Du spielst „Dubito“.", "C?\n\ttrue: ♠\x7f", SCHEMA, (("I\x00 doubt", "Only JSON."),))
    return Attempt(build_request(settings(protocol, **changes), exchange, "dubito-1"), "a-draw", PLACE)


@contextmanager
def sent(protocol: Api, answer: Response | None = None) -> Iterator[tuple[Server, RawReply]]:
    """Make one try, and return the server's request and the provider's result."""
    with Server(lambda _: respond(protocol) if answer is None else answer) as server:
        with closing(provider(server, protocol)) as call:
            received = call.send(build_attempt(protocol), 1, 20.0)
        yield server, received


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("parameters", [{}, PARAMETERS])
def test_request_is_sent_unchanged(protocol: Api, parameters: dict[str, Any]) -> None:
    ask = build_attempt(protocol, parameters=parameters)
    before = canonical_json(ask.request.body)
    with Server(lambda _: respond(protocol)) as server, closing(provider(server, protocol)) as call:
        call.send(ask, 1, 20.0)
        call.send(ask, 2, 20.0)
    for request in server.requests:
        assert canonical_json(request.body) == before
        assert request.path == f"{'' if protocol == 'messages' else '/v1'}{PATH_OF[protocol]}"
    assert canonical_json(ask.request.body) == before, "the request itself is left as it was"
    assert len(server.requests) == 2


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_answer_fields_are_sent_in_order(protocol: Api) -> None:
    """Models write fields in the schema's order, and what comes after the answer cannot influence it."""
    with sent(protocol) as (server, _):
        (request,) = server.requests
    properties = request.raw.decode().partition('"properties"')[2]
    places = [properties.index(f'"{field}"') for field in ("reasoning", "p_bluff", "answer")]
    assert places == sorted(places)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_key_is_sent_once_in_the_providers_header(protocol: Api) -> None:
    with sent(protocol) as (server, _):
        (request,) = server.requests
    holding = {name: value for name, value in request.headers.items() if KEY in value}
    assert holding in ({"authorization": f"Bearer {KEY}"}, {"x-api-key": KEY})
    assert KEY.encode() not in request.raw


PLANTED = {
    "OPENAI_API_KEY": "planted-openai-key",
    "OPENAI_ORG_ID": "planted-organisation",
    "OPENAI_PROJECT_ID": "planted-project",
    "OPENAI_ADMIN_KEY": "planted-admin",
    "ANTHROPIC_API_KEY": "planted-anthropic-key",
    "ANTHROPIC_AUTH_TOKEN": "planted-token",
    "ANTHROPIC_PROFILE": "planted-profile",
    "ANTHROPIC_WORKSPACE_ID": "planted-workspace",
    "ANTHROPIC_ORGANIZATION_ID": "planted-organisation",
    "ANTHROPIC_CUSTOM_HEADERS": "x-planted: planted",
    "OPENAI_CUSTOM_HEADERS": "x-planted: planted",
}
PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy")


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_environment_variables_are_ignored(protocol: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    with Server(lambda _: Response(500)) as other:
        for name, value in PLANTED.items():
            monkeypatch.setenv(name, value)
        for name in ("OPENAI_BASE_URL", "ANTHROPIC_BASE_URL"):
            monkeypatch.setenv(name, other.base_url(protocol))
        with sent(protocol) as (server, _):
            (request,) = server.requests
    assert other.requests == []
    assert "planted" not in str(request.headers)
    assert {"openai-organization", "openai-project"}.isdisjoint(request.headers)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_loopback_bypasses_proxies(protocol: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    with Server(lambda _: Response(502)) as proxy:
        for name in PROXIES:
            monkeypatch.setenv(name, proxy.address)
        with sent(protocol) as (server, _):
            assert len(server.requests) == 1
    assert proxy.requests == []


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_loopback_receives_draw_and_try(protocol: Api) -> None:
    with Server(lambda _: respond(protocol)) as server, closing(provider(server, protocol)) as call:
        call.send(build_attempt(protocol), 3, 20.0)
    (request,) = server.requests
    assert (request.headers["x-dubito-draw"], request.headers["x-dubito-try"]) == ("a-draw", "3")


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_other_servers_do_not_receive_draw_and_try(protocol: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    """The server has a name other than loopback's, and is reached through the test's proxy."""
    with Server(lambda _: respond(protocol)) as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.address)
        monkeypatch.setenv("http_proxy", proxy.address)
        address = "http://models.example" if protocol == "messages" else "http://models.example/v1"
        with closing(Provider(Account(protocol, address, "SOME_KEY"), address, KEY, 4)) as call:
            call.send(build_attempt(protocol), 1, 20.0)
    (request,) = proxy.requests
    assert request.path.startswith("http://models.example/v1/")
    assert [name for name in request.headers if "dubito" in name] == []
    assert canonical_json(request.body) == canonical_json(build_attempt(protocol).request.body)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_reply_keeps_only_allowed_headers(protocol: Api) -> None:
    headers = {
        "Content-Type": "application/json",
        "Request-Id": "req_1",
        "X-Request-Id": "req_2",
        "Retry-After": "3",
        "X-RateLimit-Remaining-Tokens": "9",
        "Anthropic-RateLimit-Requests-Limit": "8",
        "Set-Cookie": "secret=1",
        "Openai-Organization": "somebody",
    }
    body = json.dumps(reply_body(protocol))
    with sent(protocol, Response(body=body, headers=headers)) as (_, received):
        assert (received.status, received.raw) == (200, body)
        assert received.headers == {
            "request-id": "req_1",
            "x-request-id": "req_2",
            "retry-after": "3",
            "x-ratelimit-remaining-tokens": "9",
            "anthropic-ratelimit-requests-limit": "8",
        }


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_invalid_utf8_is_replaced(line: Line, protocol: Api) -> None:
    assert line(Response(body=b"\xff{\x80}"), build_attempt(protocol)).raw == "\ufffd{\ufffd}"


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_badly_compressed_reply_is_a_failed_try(line: Line, protocol: Api) -> None:
    broken = Response(body=b"no gzip", headers={"content-type": "application/json", "content-encoding": "gzip"})
    with pytest.raises(TryFailed) as failed:
        line(broken, build_attempt(protocol))
    assert failed.value.kind == "connection"


@pytest.mark.parametrize(
    ("protocol", "key"),
    [
        *(("responses", "schlüssel"), ("chat", "schlüssel"), ("responses", "ключ"), ("chat", "ключ")),
        *((protocol, "two\nlines") for protocol in PROTOCOLS),
    ],
)
def test_key_invalid_in_a_header_is_a_named_failure(protocol: Api, key: str) -> None:
    with (
        Server(lambda _: respond(protocol)) as server,
        closing(provider(server, protocol, key)) as call,
        pytest.raises((TryFailed, AccountFault)) as failed,
    ):
        call.send(build_attempt(protocol), 1, 20.0)
    assert key not in str(failed.value)
    assert repr(key)[1:-1] not in str(failed.value)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_one_client_serves_many_tries_and_closes(protocol: Api) -> None:
    def answer(request: Incoming) -> Response:
        return respond(protocol, changed=request.headers["x-dubito-try"])

    with Server(answer) as server:
        call = provider(server, protocol)
        for number in range(1, 6):
            received = call.send(build_attempt(protocol), number, 20.0)
            assert re.search(rf'"changed": "{number}"', received.raw)
        call.close()
        with pytest.raises((TryFailed, RuntimeError), match=r"closed|Connection"):
            call.send(build_attempt(protocol), 6, 20.0)
    provider(server, protocol).close()  # it was never used, so there is nothing to close


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_long_output_does_not_need_a_stream(protocol: Api) -> None:
    with Server(lambda _: respond(protocol)) as server, closing(provider(server, protocol)) as call:
        assert call.send(build_attempt(protocol, max_output=200_000), 1, 20.0).status == 200
    assert len(server.requests) == 1


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_query_of_the_base_url_is_sent_with_each_request(protocol: Api) -> None:
    """Azure's addresses have a query."""
    with Server(lambda _: respond(protocol)) as server:
        address = f"{server.base_url(protocol)}?api-version=2026-10-01"
        with closing(Provider(Account(protocol, address, None), address, KEY, 4)) as call:
            call.send(build_attempt(protocol), 1, 20.0)
    (request,) = server.requests
    path, _, query = request.path.partition("?")
    assert path.endswith(("/responses", "/chat/completions", "/messages"))
    assert query == "api-version=2026-10-01"


PROXY_NAMES = [PROXIES, ("ALL_PROXY",), ("all_proxy",), ("HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY")]


@pytest.mark.parametrize("protocol", in_gate(PROTOCOLS, 1))
@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize("names", PROXY_NAMES)
def test_missing_proxy_is_named_with_its_variable_and_without_its_password(
    protocol: Api, scheme: str, names: Sequence[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with Server(lambda _: respond(protocol)) as gone:
        port = gone.address.rpartition(":")[2]
    for name in PROXIES:
        monkeypatch.delenv(name, raising=False)
    for name in names:
        monkeypatch.setenv(name, f"http://me:hidden-word@127.0.0.1:{port}")
    in_order = (f"{scheme}_proxy", f"{scheme.upper()}_PROXY", "all_proxy", "ALL_PROXY")
    used = next(name for name in in_order if name in names)
    address = f"{scheme}://models.example/v1"
    with (
        closing(Provider(Account(protocol, address, "SOME_KEY"), address, KEY, 4)) as call,
        pytest.raises(TryFailed, match=f"^nothing answers at the proxy 127.0.0.1:{port}, which {used} sets$"),
    ):
        call.send(build_attempt(protocol), 1, 20.0)
