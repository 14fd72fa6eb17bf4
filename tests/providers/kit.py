"""Fakes of the providers' real addresses: a proxy with its own certificate authority before the built-in server."""

import json
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from random import Random
from typing import Any, Final
from urllib.parse import urlsplit

import trustme

from dubito.games.dubito.game import GAME
from dubito.house.core import Policy, house_policy
from dubito.house.request import Opinion
from dubito.house.server import House
from dubito.llm.protocols import protocols
from dubito.model_settings import Api
from tests.llm.kit import Loopback

MODELS: Final[Mapping[Api, str]] = {
    "responses": "gpt-6-sol",
    "chat": "gpt-6.1-sol",
    "decisions": "gpt-6-luna",
    "messages": "claude-opus-5-5",
    "gemini": "gemini-3-flash-preview",
}
HOSTS: Final = {api: str(urlsplit(wire.address).hostname) for api, wire in protocols().items()}
KEYS: Final = {wire.key_variable: f"key-of-{wire.provider}" for wire in protocols().values()}
DEFAULT: Final = "default"
# A player's settings that change the bodies of its requests.
SETTINGS: Final[Mapping[Api, Mapping[str, dict[str, Any]]]] = {
    "responses": {
        DEFAULT: {},
        "rules as user": {"system": "user"},
        "house": {"base_url": "house"},
        "reasoning": {"parameters": {"reasoning": {"effort": "low", "summary": "auto"}}},
        "verbosity": {"parameters": {"text": {"verbosity": "low"}}},
        "sampling": {"parameters": {"temperature": 0.5, "top_p": 1}},
        "tier": {"parameters": {"service_tier": "flex", "prompt_cache_options": {"ttl": "12h"}}},
        "marks": {"parameters": {"metadata": {"study": "one"}, "safety_identifier": "me"}},
    },
    "chat": {
        DEFAULT: {},
        "rules as user": {"system": "user"},
        "house": {"base_url": "house"},
        "server": {"base_url": "http://127.0.0.1:8000/v1"},
        "object": {"response_format": "json_object"},
        "text": {"response_format": "text"},
        "limit": {"output_limit": "max_tokens"},
        "belief": {"belief": "logprobs"},
        "reasoning": {"parameters": {"reasoning_effort": "low", "verbosity": "low"}},
        "sampling": {"parameters": {"temperature": 0, "top_p": 0.9, "seed": 1, "frequency_penalty": 0.1}},
        "tier": {"parameters": {"service_tier": "flex", "prompt_cache_options": {"ttl": "30m"}}},
    },
    "decisions": {
        DEFAULT: {},
        "rules as user": {"system": "user"},
        "marks": {"parameters": {"safety_identifier": "me", "prompt_cache_options": {"ttl": "30m"}}},
    },
    "messages": {
        DEFAULT: {},
        "rules as user": {"system": "user"},
        "house": {"base_url": "house"},
        "thinking": {"parameters": {"thinking": {"type": "adaptive"}}},
        "budget": {"parameters": {"thinking": {"type": "enabled", "budget_tokens": 2048}}},
        "no thinking": {"parameters": {"thinking": {"type": "disabled"}}},
        "effort": {"parameters": {"output_config": {"effort": "low"}}},
        "tier": {"parameters": {"service_tier": "auto", "inference_geo": "us", "speed": "fast"}},
        "marks": {"parameters": {"metadata": {"user_id": "me"}, "cache_control": {"type": "ephemeral"}}},
    },
    "gemini": {DEFAULT: {}},
}
_HOP_HEADERS: Final = ("connection", "content-length", "transfer-encoding")


@dataclass(frozen=True, slots=True)
class Heard:
    """A decrypted request to a provider, and what was answered."""

    host: str
    path: str
    headers: Mapping[str, str]  # names in lower case
    raw: bytes
    status: int
    answer: bytes

    @property
    def body(self) -> dict[str, Any]:
        body: dict[str, Any] = json.loads(self.raw)
        return body

    @property
    def reply(self) -> dict[str, Any]:
        reply: dict[str, Any] = json.loads(self.answer)
        return reply


def _play_honestly(model: str, text: str, chance: Random, schema: Mapping[str, Any] | None) -> Opinion:
    return house_policy([GAME]).answer("house-honest", text, chance, schema)


class Providers(Loopback):
    """A proxy that decrypts what is sent to the providers, and lets the built-in server answer. A context manager."""

    def __init__(self, folder: Path) -> None:
        authority = trustme.CA()
        self.certificates = folder / "authority.pem"
        authority.cert_pem.write_to_path(self.certificates)
        contexts = {host: _server_context(authority, host) for host in HOSTS.values()}
        house = self._house = House(policy=Policy(tuple(MODELS.values()), _play_honestly))
        heard = self.heard = list[Heard]()

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            wbufsize = -1  # sends head and body in one packet
            host = ""

            def do_CONNECT(self) -> None:
                self.host = self.path.partition(":")[0]
                if self.host not in contexts:
                    self.send_error(502)
                    return
                self.send_response(200)
                self.end_headers()
                self.wfile.flush()
                self.connection = contexts[self.host].wrap_socket(self.connection, server_side=True)
                self.rfile, self.wfile = self.connection.makefile("rb"), self.connection.makefile("wb")
                self.close_connection = False

            def do_POST(self) -> None:
                raw = self.rfile.read(int(self.headers.get("content-length", 0)))
                headers = {name.lower(): value for name, value in self.headers.items()}
                connection = HTTPConnection("127.0.0.1", house.port)
                connection.request(self.command, self.path, raw, headers)
                response = connection.getresponse()
                answer = response.read()
                connection.close()
                heard.append(Heard(self.host, self.path, headers, raw, response.status, answer))
                self.send_response(response.status)
                for name, value in response.getheaders():
                    if name.lower() not in _HOP_HEADERS:
                        self.send_header(name, value)
                self.send_header("content-length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def do_GET(self) -> None:
                self.do_POST()

            def finish(self) -> None:
                super().finish()
                self.connection.close()

            def log_message(self, *_: object) -> None:
                """Print nothing."""

        super().__init__(Handler)

    def __enter__(self) -> "Providers":
        self._house.__enter__()
        super().__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        super().__exit__()
        self._house.__exit__(None, None, None)

    @property
    def variables(self) -> dict[str, str]:
        """The environment variables that lead the SDKs here."""
        return {**KEYS, "HTTPS_PROXY": self.address, "SSL_CERT_FILE": str(self.certificates)}


def _server_context(authority: trustme.CA, host: str) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(host).configure_cert(context)
    return context
