"""No key in anything the project writes: runs that succeed and runs that fail, with servers that say the key aloud."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import diskcache
import pytest

from dubito.llm.wire import Protocol
from dubito.store.model_log import ModelLog
from dubito.store.run_db import RunDb
from tests.cli.kit import Said as Ended
from tests.cli.kit import Shell
from tests.llm.kit import BOT_OF, PROTOCOLS, Heard, Said, Server, contender, error_body, played, rows, says

KEYS: Mapping[str, str] = {
    "OPENAI_API_KEY": "sk-proj-openai-0a1b2c3d4e5f",
    "ANTHROPIC_API_KEY": "sk-ant-api03-9z8y7x6w5v4u",
    "KEY_OF_MINE": "mine-6e7f8a9b-not-for-disk",
}


@pytest.fixture(autouse=True)
def _planted(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)


def texts_of(folder: Path) -> Iterator[str]:
    """What lies packed in the files of a run and of its cache."""
    with RunDb.open(folder / "r" / "run.db") as db:
        for (digest,) in db.read("SELECT digest FROM texts"):
            yield ModelLog(db).text(digest)
    with diskcache.Cache(str(folder / "cache")) as cache:
        for key in cache:
            yield str(cache[key])


def search(folder: Path, ended: Ended) -> None:
    """Every file as it lies there, what is packed inside, and everything that was printed."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert {"manifest.yaml", "run.db", "all_games.yaml", "cache.db"} <= {path.name for path in files}
    texts = [*texts_of(folder), ended.out, ended.err]
    for key in KEYS.values():
        holding = [path for path in files if key.encode() in path.read_bytes()]
        assert holding == []
        assert [text for text in texts if key in text] == []


def run_at(shell: Shell, protocol: Protocol, answer: Callable[[Heard], Said], **more: Any) -> tuple[Ended, list[Heard]]:
    """A run whose player sends its key to this server."""
    variable = {"responses": "OPENAI_API_KEY", "messages": "ANTHROPIC_API_KEY"}[protocol]
    with Server(answer) as server:
        settings = {"base_url": server.base_url(protocol), "api_key_env": variable} | more
        ended = played(shell, contender("asker", "some-model", BOT_OF[protocol], **settings))
    for heard in server.heard:
        assert KEYS[settings["api_key_env"]] in str(heard.headers), "the key was really sent"
    assert server.heard
    return ended, server.heard


@pytest.mark.parametrize("variable", [None, "KEY_OF_MINE"])
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_run_that_succeeds(shell: Shell, protocol: Protocol, variable: str | None) -> None:
    more = {"api_key_env": variable} if variable else {}
    ended, _ = run_at(shell, protocol, lambda _: says(protocol), **more)
    assert ended.code == 0
    search(shell.folder, ended)


def echoing(protocol: Protocol, status: int) -> Callable[[Heard], Said]:
    """A server that says the key it was given, in the error and in headers."""

    def answer(heard: Heard) -> Said:
        key = heard.headers.get("x-api-key") or heard.headers["authorization"].removeprefix("Bearer ")
        message = f"Incorrect API key provided: {key}. {key}!"
        headers = {"content-type": "application/json", "x-echo": key, "set-cookie": key, "retry-after": "0"}
        return Said(status, error_body(protocol, "invalid_request_error", message), headers)

    return answer


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("status", [400, 401, 403, 404, 402])
def test_a_run_that_a_fault_stops(shell: Shell, protocol: Protocol, status: int) -> None:
    ended, _ = run_at(shell, protocol, echoing(protocol, status))
    assert ended.code == 3
    assert f"status {status}" in ended.err or status == 404
    search(shell.folder, ended)


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("status", [429, 500])
def test_a_run_that_is_answered_with_errors(shell: Shell, protocol: Protocol, status: int) -> None:
    ended, _ = run_at(shell, protocol, echoing(protocol, status), tries=5)
    assert ended.code == (0 if status == 429 else 3)
    search(shell.folder, ended)
    (errors,) = rows(Path("r"), "SELECT count(*) FROM tries WHERE error LIKE '%***%'")
    assert errors[0] > 0, "the server did say it"


@pytest.mark.parametrize("status", [401, 400])
def test_a_key_of_a_variable_of_ones_own(shell: Shell, status: int) -> None:
    ended, _ = run_at(shell, "responses", echoing("responses", status), api_key_env="KEY_OF_MINE")
    assert ended.code == 3
    search(shell.folder, ended)


def test_a_good_answer_that_says_the_key(shell: Shell) -> None:
    def answer(heard: Heard) -> Said:
        return says("responses", metadata={"key": heard.headers["authorization"].removeprefix("Bearer ")})

    ended, _ = run_at(shell, "responses", answer)
    assert ended.code == 0
    search(shell.folder, ended)


def test_the_keys_of_others_are_sent_to_nobody(shell: Shell) -> None:
    """A player at a loopback server without `api_key_env` sends no key at all."""
    with Server(lambda _: says("responses")) as server:
        ended = played(shell, contender("asker", "some-model", base_url=server.base_url("responses")))
    assert ended.code == 0
    assert server.heard
    for heard in server.heard:
        assert [key for key in KEYS.values() if key in str(heard.headers)] == []
