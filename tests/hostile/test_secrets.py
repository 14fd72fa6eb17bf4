"""Keys, cookies and organisation ids that a hostile server echoes are neither stored nor shown."""

import html
import json
import re
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from itertools import cycle, product
from pathlib import Path
from typing import Final
from urllib.parse import quote

import diskcache
import pytest

from dubito.llm.redaction import key_pattern
from dubito.model_settings import Api
from dubito.store.model_log import ModelLog
from dubito.store.run_db import RunDb
from tests.cli.kit import Shell
from tests.conftest import in_gate
from tests.llm.kit import PROTOCOLS, Incoming, Response, Server, error_body, player_at, respond, rows, run_cli

KEY: Final = r"""sk-proj-0a1b/2c"3d\\4e'5f\Zz"""
COOKIE: Final = "__cf_bm=planted-cookie-7d6e5f"
ORGANISATION: Final = "org-Pl4ntedPl4ntedPl4nted99"
PROJECT: Final = "proj_Pl4ntedPl4ntedPl4nted98"
UUID: Final = "5ec2e7a0-1111-4222-8333-0123456789ab"
SECRETS: Final = (KEY, COOKIE, ORGANISATION, PROJECT, UUID)


pytestmark = pytest.mark.usefixtures("unhurried")


@pytest.fixture(autouse=True)
def _planted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", KEY)
    for name in ("OPENAI_ORG_ID", "OPENAI_PROJECT_ID", "ANTHROPIC_AUTH_TOKEN"):
        monkeypatch.setenv(name, ORGANISATION)


def escaped(text: str) -> str:
    return '"' + "".join(f"\\u{ord(char):04X}" for char in text) + '"'


def headers() -> dict[str, str]:
    """Return all headers that a server could add to a response."""
    message = f"{KEY} {ORGANISATION} {PROJECT}"
    return {
        "content-type": "application/json",
        "set-cookie": f"{COOKIE}; Path=/",
        "openai-organization": ORGANISATION,
        "openai-project": PROJECT,
        "anthropic-organization-id": UUID,
        "x-request-id": f"req-{message}",
        "anthropic-ratelimit-x": message,
        "retry-after": "0",
        "www-authenticate": f"Bearer {KEY}",
    }


def plain(request: Incoming) -> Response:
    body = respond(
        request.protocol, f"I doubt it, {KEY} of {ORGANISATION}", metadata={"key": KEY, "project": PROJECT}
    ).body
    return Response(body=body, headers=headers())


def hidden(request: Incoming) -> Response:
    body = str(respond(request.protocol, "@").body).replace('"@"', escaped(f"I say {KEY}"))
    return Response(body=body, headers=headers())


def slashed(request: Incoming) -> Response:
    body = str(respond(request.protocol, f"I say {KEY}").body).replace("/", "\\/")
    return Response(body=body, headers=headers())


def limited(request: Incoming) -> Response:
    message = f"Rate limit reached in organization {ORGANISATION} ({UUID}) for key {KEY}, project {PROJECT}"
    body = error_body(request.protocol, "rate_limit_error", message)
    return Response(
        429, body.replace(json.dumps(KEY)[1:-1], escaped(KEY)[1:-1]) if len(request.raw) % 2 else body, headers()
    )


def broken(request: Incoming) -> Response:
    return Response(200, f"<html>{KEY} {COOKIE[:3]}{ORGANISATION}", headers(), lost=10)


def elsewhere(request: Incoming) -> Response:
    if "?" in request.path:
        return Response(404, error_body(request.protocol, "not_found", f"no {request.path}"), headers())
    return Response(307, "", {**headers(), "location": f"{request.path}?key={KEY}&org={ORGANISATION}"})


def refusing(request: Incoming) -> Response:
    return Response(
        401, error_body(request.protocol, "auth", f"Incorrect key {KEY} of {ORGANISATION} {UUID}"), headers()
    )


SERVERS: Final[Mapping[str, Callable[[Incoming], Response]]] = {
    answer.__name__: answer for answer in (plain, hidden, slashed, limited, broken, elsewhere, refusing)
}
CHECKED: Final = (("refusing", "messages"), ("limited", "chat"))  # these are the preflight's responses


@pytest.mark.parametrize(
    ("server", "protocol"), in_gate(product(SERVERS, PROTOCOLS), [*zip(SERVERS, cycle(PROTOCOLS)), *CHECKED])
)
def test_secrets_echoed_by_a_server_are_not_stored(shell: Shell, protocol: Api, server: str) -> None:
    with Server(SERVERS[server]) as hostile:
        player = player_at(hostile, protocol, api_key_env="MY_KEY", tries=2)
        check = "--preflight" if (server, protocol) in CHECKED else "--no-preflight"
        ended = run_cli(shell, player, flags=[check], games=1, rules={"max_turns": 5})
    assert KEY in " ".join(hostile.requests[0].headers.values()), "the key must have been sent"
    exported = shell("export", "r", "run.zip")
    result = shell("replay", "r", "--game", "0")
    texts = list(collect_texts(shell.folder))
    if server in ("plain", "hidden", "slashed"):
        assert exported.code == result.code == 0
        assert "***" in "".join(texts), "some text must have been redacted"
    for output in (ended, exported, result):
        texts += [output.out, output.err]
    for text in texts:
        assert leaks(text) == []
    for path in shell.folder.rglob("*"):
        assert not path.is_file() or leaks(path.read_bytes().decode("latin-1")) == []


def leaks(text: str) -> list[str]:
    bare = text.replace("\\", "")
    return [secret for secret in SECRETS if secret.replace("\\", "") in bare]


def in_json(text: str) -> str:
    return json.dumps(text)[1:-1]


ECHOES: Final[Mapping[str, Callable[[str], str]]] = {
    "plain": str,
    "in JSON": in_json,
    "in JSON in JSON": lambda key: in_json(in_json(key)),
    "in JSON in JSON in JSON": lambda key: in_json(in_json(in_json(key))),
    "as PHP writes it": lambda key: in_json(key).replace("/", "\\/"),
    "as PHP writes it, in JSON": lambda key: in_json(in_json(key).replace("/", "\\/")),
    "every character escaped": lambda key: escaped(key)[1:-1],
    "every character escaped, in JSON": lambda key: in_json(escaped(key)[1:-1]),
    "in JSON with backslashes escaped": lambda key: in_json(in_json(key)).replace("\\\\", "\\u005c"),
    "in HTML": html.escape,
    "in HTML by numbers": lambda key: "".join(f"&#{ord(char)};" for char in key),
    "in an address": quote,
}
KEYS: Final = (
    'ab"c\\d-12345',
    'sk-\\\\two\\three""',
    '\\"begins-with-both',
    "a/b/c'd&e<f>g h%i",
    "plain-key-0123",
    "u0061\\u0061-9",
)


@pytest.mark.parametrize("way", ECHOES)
def test_a_key_is_found_however_it_is_echoed(way: str) -> None:
    for key in KEYS:
        message = f"the key <{ECHOES[way](key)}> is wrong"
        assert re.sub(key_pattern(key), "***", message) == "the key <***> is wrong", key


def test_long_row_of_backslashes_is_searched_quickly() -> None:
    assert re.search(key_pattern("\\" * 40 + '"' * 10 + "x"), "\\" * 20_000) is None


def collect_texts(folder: Path) -> Iterator[str]:
    """Return all texts of a run, its cache and its export, decompressed, and JSON also decoded."""
    for text in (*_of_run(folder / "r"), *_of_cache(folder / "cache"), *_of_export(folder / "run.zip", folder)):
        yield text
        try:
            yield json.dumps(json.loads(text), ensure_ascii=False).replace("\\", "")
        except ValueError:
            yield text.encode().decode("unicode_escape", "replace")


def _of_run(folder: Path) -> Iterator[str]:
    with RunDb.open(folder / "run.db") as db:
        for (digest,) in db.read("SELECT digest FROM texts"):
            yield ModelLog(db).text(digest)
    for table in ("tries", "attempts", "decisions"):
        yield str(rows(folder, f"SELECT * FROM {table}"))  # noqa: S608
    yield from (path.read_text() for path in folder.iterdir() if path.suffix in (".log", ".yaml"))


def _of_cache(folder: Path) -> Iterator[str]:
    with diskcache.Cache(str(folder)) as cache:
        for key in cache:
            kept = cache[key]
            yield zlib.decompress(kept).decode() if isinstance(kept, bytes) else str(kept)


def _of_export(file: Path, folder: Path) -> Iterator[str]:
    if file.exists():
        with zipfile.ZipFile(file) as archive:
            archive.extractall(folder / "unpacked")
        yield from _of_run(folder / "unpacked")
