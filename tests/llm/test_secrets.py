"""Successful runs write no key. For failing runs see tests/hostile/test_secrets.py."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import diskcache
import pytest

from dubito.model_settings import Api
from dubito.store.model_log import ModelLog
from dubito.store.run_db import RunDb
from tests.cli.kit import Result as Ended
from tests.cli.kit import Shell
from tests.conftest import in_gate
from tests.llm.kit import PROTOCOLS, Incoming, Response, Server, outcomes_of, player_at, respond, run_cli

KEYS: Mapping[str, str] = {
    "OPENAI_API_KEY": "sk-proj-openai-0a1b2c3d4e5f",
    "ANTHROPIC_API_KEY": "sk-ant-api03-9z8y7x6w5v4u",
    "KEY_OF_MINE": "mine-6e7f8a9b-not-for-disk",
}


pytestmark = pytest.mark.usefixtures("unhurried")


@pytest.fixture(autouse=True)
def _planted(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)


def texts_of(folder: Path) -> Iterator[str]:
    """Return the decompressed texts in the files of a run and its cache."""
    with RunDb.open(folder / "r" / "run.db") as db:
        for (digest,) in db.read("SELECT digest FROM texts"):
            yield ModelLog(db).text(digest)
    with diskcache.Cache(str(folder / "cache")) as cache:
        for key in cache:
            yield str(cache[key])


def search(folder: Path, ended: Ended) -> None:
    """Search every file, both as stored and decompressed, and everything that was printed."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert {"manifest.yaml", "run.db", "all_games.yaml", "cache.db"} <= {path.name for path in files}
    texts = [*texts_of(folder), ended.out, ended.err]
    for key in KEYS.values():
        holding = [path for path in files if key.encode() in path.read_bytes()]
        assert holding == []
        assert [text for text in texts if key in text] == []


def run_at(
    shell: Shell, protocol: Api, answer: Callable[[Incoming], Response], flags: Sequence[str] = (), **more: Any
) -> tuple[Ended, list[Incoming]]:
    """Play a run whose player sends its key to this server."""
    variable = "ANTHROPIC_API_KEY" if protocol == "messages" else "OPENAI_API_KEY"
    settings = {"api_key_env": variable} | more
    with Server(answer) as server:
        ended = run_cli(shell, player_at(server, protocol, **settings), flags=flags, games=1)
    for request in server.requests:
        assert KEYS[settings["api_key_env"]] in str(request.headers), "the key must have been sent"
    assert server.requests
    return ended, server.requests


@pytest.mark.parametrize(
    ("protocol", "variable"),
    in_gate(
        [*((protocol, None) for protocol in PROTOCOLS), ("responses", "KEY_OF_MINE")],
        [("messages", None), ("responses", "KEY_OF_MINE")],
    ),
)
def test_successful_run_stores_no_key(shell: Shell, protocol: Api, variable: str | None) -> None:
    more = {"api_key_env": variable} if variable else {}
    ended, _ = run_at(shell, protocol, lambda _: respond(protocol), **more)
    assert ended.code == 0
    search(shell.folder, ended)


def test_commands_that_read_a_run_print_no_key(shell: Shell) -> None:
    def answer(request: Incoming) -> Response:
        return respond("responses", '{"answer": true}', metadata={"key": KEYS["OPENAI_API_KEY"]})

    ended, _ = run_at(shell, "responses", answer)
    assert ended.code == 0
    with diskcache.Cache("cache") as cache:
        entry = next(key for key in cache if key != "written")
    for words in (("status", "r"), ("cache", "stats"), ("cache", "show", entry)):
        result = shell(*words)
        assert result.code == 0
        assert result.out
        assert [key for key in KEYS.values() if key in result.out + result.err] == []


def test_key_is_sent_only_to_its_own_server(shell: Shell) -> None:
    """A player that uses a loopback server without `api_key_env` sends no key."""
    with Server(lambda _: respond("responses")) as server:
        ended = run_cli(shell, player_at(server))
    assert ended.code == 0
    assert server.requests
    for request in server.requests:
        assert [key for key in KEYS.values() if key in str(request.headers)] == []


@pytest.mark.parametrize("word", in_gate(["null", "1", "x"], 1))
def test_short_key_is_not_redacted_in_replies(shell: Shell, word: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Users give such keys to their own servers."""
    monkeypatch.setenv("KEY_OF_MINE", word)
    with Server(lambda _: respond("chat")) as server:
        ended = run_cli(shell, player_at(server, "chat", api_key_env="KEY_OF_MINE"), games=1)
    assert ended.code == 0
    assert set(outcomes_of(Path("r"))) == {"model"}
