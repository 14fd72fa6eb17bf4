"""Cassettes detect changes, need no network, and contain no secrets."""

import json
import re
import socket
from pathlib import Path
from typing import Any, Final

import pytest
import vcr as vcrpy
import yaml

from dubito.errors import UsageError
from dubito.model_settings import Api
from tests.cassettes.kit import CASSETTES, INDEX, Readable, kept_request, kept_response, played_whole
from tests.cassettes.test_recorded import SCENES, game
from tests.llm.kit import PROTOCOLS, Response, Server, player_at, reply_body, run_games, small

CHANGED: Final = {
    "prompt.yaml": "title: changed\nanswer: [answer]\n",
    "system.jinja": "You play Dubito. {{ answer_format }}\n",
    "user.jinja": '{% include "shared/facts.jinja" %}\n\n{{ question }}\n',
}


def index() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(INDEX.read_text(encoding="utf-8"))
    return found


def test_each_scene_has_exactly_one_cassette() -> None:
    names = {f"{protocol}-{prompt}" for protocol, prompt in SCENES}
    assert {path.stem for path in CASSETTES.glob("*.yaml")} - {"index"} == names == set(index()["results"])
    ends = {end for result in index()["results"].values() for end in result["outcomes"]}
    assert "model" in ends
    assert index()["against"] == "providers" or "model_after_reask" in ends, "the games must include a re-ask"


@pytest.mark.vcr
@pytest.mark.block_network
@pytest.mark.parametrize("protocol", [pytest.param(p, id=f"{p}-plain") for p in PROTOCOLS])
def test_changed_prompt_fails_with_its_location(tmp_path: Path, protocol: Api, vcr: Any) -> None:
    folder = tmp_path / "changed"
    folder.mkdir()
    for name, text in CHANGED.items():
        (folder / name).write_text(text)
    with pytest.raises(pytest.fail.Exception) as failed, played_whole(vcr):
        run_games(game(protocol, str(folder), index()), tmp_path / "run", in_flight=1)
    first, *lines = str(failed.value).splitlines()
    assert first.startswith(
        "a request differs from the recording; record again with `python -m tests.cassettes.record`."
    )
    assert [
        line for line in lines if re.match(r"- body\.(input\.0\.content|messages\.0\.content|system\.0\.text)", line)
    ]
    assert [line for line in lines if re.match(r"  now:      You play Dubito\. Reply with a JSON object", line)]
    assert [line for line in lines if line.startswith("  recorded: You ")]


@pytest.mark.vcr("chat-reasoned.yaml")
@pytest.mark.block_network
@pytest.mark.default_cassette("chat-plain")
def test_unused_recording_fails(tmp_path: Path, vcr: Any) -> None:
    """The cassette of another game is added to the one of this game."""
    with (
        pytest.raises(pytest.fail.Exception, match=r"\d of \d+ recorded interactions were not used"),
        played_whole(vcr),
    ):
        run_games(game("chat", "plain", index()), tmp_path / "run", in_flight=1)


@pytest.mark.vcr
@pytest.mark.block_network
@pytest.mark.default_cassette("messages-plain")
def test_unrecorded_request_fails(tmp_path: Path, vcr: Any) -> None:
    def twice() -> None:
        for name in ("one", "two"):
            run_games(game("messages", "plain", index()), tmp_path / name / "run", in_flight=1)

    with pytest.raises(pytest.fail.Exception, match="one request more than the "), played_whole(vcr):
        twice()


@pytest.mark.block_network
def test_connecting_to_a_server_is_refused() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket() as client:
        address = server.getsockname()
        with pytest.raises(RuntimeError, match="Network is disabled"):
            client.connect(address)


SECRETS: Final = re.compile(
    r"sk-[A-Za-z0-9]|bearer|authorization|x-api-key|cookie|cf-ray|organization-id|request-id|stainless|user-agent"
    r"|127\.0\.0\.1|localhost|\b(?:org-|proj_|req_|resp_|msg_|chatcmpl-|rs_)[A-Za-z0-9]{8}|no-key-needed",
    re.IGNORECASE,
)


@pytest.mark.parametrize("path", sorted(CASSETTES.glob("*.yaml")))
def test_cassettes_contain_no_secrets(path: Path) -> None:
    assert SECRETS.findall(path.read_text(encoding="utf-8")) == []


def test_cassette_of_another_format_is_refused() -> None:
    with pytest.raises(UsageError, match=r"^this cassette was written by another version of Dubito \(format 2; "):
        Readable.deserialize("interactions: []\nversion: 2\n")


KEY: Final = "sk-planted-0a1b2c3d4e5f"
ORGANISATION: Final = "org-Pl4ntedPl4ntedPl4nted99"
UUID: Final = "5ec2e7a0-1111-4222-8333-0123456789ab"
COOKIE: Final = "__cf_bm=planted"


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_planted_secrets_are_removed(tmp_path: Path, protocol: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    """The server puts the key, a cookie and ids wherever it can. It is recorded like the cassettes."""
    variable = "ANTHROPIC_API_KEY" if protocol == "messages" else "OPENAI_API_KEY"
    monkeypatch.setenv(variable, KEY)
    more = {"id": "resp_planted0planted0", "user": ORGANISATION, "request_id": "req_0123456789abcdef0123", "note": UUID}
    body = reply_body(protocol, f"no answer of {ORGANISATION} with {KEY}", **more)
    headers = {"set-cookie": COOKIE, "openai-organization": ORGANISATION, "anthropic-organization-id": UUID}
    headers |= {"request-id": "req_planted", "x-request-id": "req_planted", "cf-ray": "planted", "x-echo": KEY}
    file = tmp_path / "cassette.yaml"
    hooks = {"before_record_request": kept_request, "before_record_response": kept_response}
    with Server(lambda _: Response(body=json.dumps(body), headers=headers)) as server:
        player = player_at(server, protocol, api_key_env=variable)
        with vcrpy.use_cassette(str(file), decode_compressed_response=True, **hooks):
            run_games(small(player, games=1, turns=3), tmp_path / "run", in_flight=1)
        assert KEY in str(server.requests[0].headers), "the key must have been sent"
    text = file.read_text()
    for planted in (KEY, COOKIE, ORGANISATION, UUID, "planted", "req_0123", server.address):
        assert planted not in text
    assert "no answer of" in re.sub(r"[\s\\]+", " ", text), "the rest of the text must be kept"
