"""Agents over MCP, with the SDK's client."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.cli.kit import Shell
from tests.seats.kit import Connection, honest_answer, serve_agent
from tests.seats.test_remote import GAMES

pytest.importorskip("mcp", reason="the MCP SDK is not installed, so no agent played over MCP: '.[mcp]'")

import httpx2
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client

MODES = ("auto", "legacy")  # a client without a handshake, and an older one


def run_client(connection: Connection, mode: str, use: Callable[[Any], Awaitable[None]]) -> None:
    """Connect with the token, and use the client."""

    async def connect() -> None:
        headers = {"Authorization": f"Bearer {connection.tokens['agent']}"}
        async with httpx2.AsyncClient(headers=headers, timeout=60) as http:
            transport = streamable_http_client(f"{connection.url}mcp", http_client=http)
            async with Client(transport, mode=mode) as client:
                await use(client)

    asyncio.run(connect())


async def call(client: Any, tool: str, arguments: dict[str, Any]) -> Any:
    """Return a tool's result, which is sent only once."""
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result
    assert result.structured_content is None
    return json.loads(result.content[0].text)


async def play_games(client: Any) -> None:
    while (seen := await call(client, "observe", {"wait": 30}))["state"] != "over":
        if seen["state"] == "decide":
            message = seen["messages"][-1]
            moves = await call(client, "legal_moves", {})
            assert (moves["node"], moves["legal"]) == (message["node"], message["legal"])
            await call(client, "act", {"question": seen["question"], "answer": honest_answer(message)})


async def play_games_in_text(client: Any) -> None:
    """Play with every parameter as a string, as some clients send them."""
    while (seen := await call(client, "observe", {"wait": "30", "all": "true"}))["state"] != "over":
        if seen["state"] == "decide":
            answer = honest_answer(seen["messages"][-1])
            text = answer if isinstance(answer, str) else json.dumps(answer)
            await call(client, "act", {"question": str(seen["question"]), "answer": text})


@pytest.mark.parametrize("mode", MODES)
def test_client_plays_five_games(shell: Shell, monkeypatch: pytest.MonkeyPatch, mode: str) -> None:
    ended = list[Any]()

    async def play(client: Any) -> None:
        assert [tool.name for tool in (await client.list_tools()).tools] == ["observe", "legal_moves", "act", "result"]
        await play_games(client)
        ended.extend((await call(client, "result", {}))["ended"])

    words = ("--games", "5", "--output", "run", *GAMES)
    result, _ = serve_agent(shell, monkeypatch, lambda connection: run_client(connection, mode, play), *words)
    assert result.code == 0, result.err
    assert [end["game"] for end in ended] == [*range(5)]
    assert shell("replay", "run").out.startswith("identical: 5 games")


def test_wrong_use_of_tools_is_explained(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    async def misuse(client: Any) -> None:
        async def refused(tool: str, arguments: dict[str, Any]) -> str:
            answer = await client.call_tool(tool, arguments)
            assert answer.is_error
            return str(answer.content[0].text)

        assert "wait: Input should be less than or equal to 60" in await refused("observe", {"wait": 1000})
        assert "no tool is named 'acts'; choose from observe, legal_moves, act, result" in await refused("acts", {})
        await client.call_tool("observe", {})
        assert "question 7 is not open, but question 1 is" in await refused("act", {"question": 7, "answer": True})
        illegal = await refused("act", {"question": "1", "answer": "perhaps"})
        assert illegal == "`answer` is neither true nor false (without quotes); the question is still open"
        await play_games(client)
        assert "the run is over (finished)" in await refused("legal_moves", {})

    def use_client(connection: Connection) -> None:
        assert connection.request("mcp", {}, token="x")[0] == 401  # noqa: S106, a wrong one
        run_client(connection, "auto", misuse)

    result, _ = serve_agent(shell, monkeypatch, use_client, "--games", "1", *GAMES)
    assert result.code == 0, result.err
    assert "Traceback" not in result.err


TYPES = {"dubito": ["boolean"], "bs": ["array", "boolean"], "defuse": ["string", "integer"]}


@pytest.mark.parametrize("game", TYPES)
def test_client_that_sends_only_strings_plays(shell: Shell, monkeypatch: pytest.MonkeyPatch, game: str) -> None:
    async def play(client: Any) -> None:
        (act,) = [tool for tool in (await client.list_tools()).tools if tool.name == "act"]
        types = act.input_schema["properties"]["answer"]["type"]
        assert ([types] if isinstance(types, str) else types) == TYPES[game]
        await play_games_in_text(client)

    words = ("--game", game, "--games", str(games := 2 if game == "defuse" else 1), "--output", "run", "--quiet")
    result, _ = serve_agent(shell, monkeypatch, lambda connection: run_client(connection, "auto", play), *words)
    assert result.code == 0, result.err
    assert shell("replay", "run").out.startswith(f"identical: {games} game")


@pytest.mark.parametrize(
    ("text", "readings"),
    [
        ("true", ["true", True]),
        ("[1, 2]", ["[1, 2]", [1, 2]]),
        ('{"a": 0.5}', ['{"a": 0.5}', {"a": 0.5}]),
        ('"draw"', ['"draw"', "draw"]),
        ("draw", ["draw"]),
        ('{"a": 1, "a": 2}', ['{"a": 1, "a": 2}']),
        ("[" * 9999, ["[" * 9999]),
        (True, [True]),
    ],
)
def test_text_is_read_as_itself_first(text: Any, readings: list[Any]) -> None:
    # Imported late: another test imports the module without the SDK.
    from dubito.plugins.mcp.server import ToolAnswer

    assert ToolAnswer(question=1, answer=text).readings == readings
