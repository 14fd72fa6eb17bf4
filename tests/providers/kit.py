"""Fakes of the providers' real addresses: a proxy with its own certificate authority before the built-in server."""

import json
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from random import Random
from typing import Any, Final, Literal, get_args
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
    "gemini": {
        DEFAULT: {},
        "rules as user": {"system": "user"},
        "thinking": {"parameters": {"generationConfig": {"thinkingConfig": {"thinkingBudget": 512}}}},
        "sampling": {"parameters": {"generationConfig": {"temperature": 0.5, "topK": 9, "seed": 1}}},
        "safety": {
            "parameters": {"safetySettings": [{"category": "HARM_CATEGORY_HARASSMENT", "threshold": "BLOCK_ONLY_HIGH"}]}
        },
    },
}
Fault = Literal["overloaded", "cut"]  # of a reply: status 529 instead, or only half of its bytes
FAULTS: Final = get_args(Fault)
_HOP_HEADERS: Final = ("connection", "content-length", "transfer-encoding")


@dataclass(frozen=True, slots=True)
class LoggedRequest:
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


def _write_cache(answer: bytes) -> bytes:
    """Return a reply whose cached tokens are written to the provider's cache instead of read from it."""
    reply = json.loads(answer)
    usage = reply.get("usage", {})
    if read := usage.get("cache_read_input_tokens"):
        usage |= {"cache_read_input_tokens": 0, "cache_creation_input_tokens": read}
        usage["cache_creation"]["ephemeral_5m_input_tokens"] = read
    details = usage.get("input_tokens_details") or usage.get("prompt_tokens_details") or {}
    if read := details.get("cached_tokens"):
        details |= {"cached_tokens": 0, "cache_write_tokens": read}
    return json.dumps(reply).encode()


class _Handler(BaseHTTPRequestHandler):
    """Decrypts a connection to a provider, and passes its requests on."""

    protocol_version = "HTTP/1.1"
    wbufsize = -1  # sends head and body in one packet
    providers: "Providers"
    host = ""

    def do_CONNECT(self) -> None:
        self.host = self.path.partition(":")[0]
        if self.host not in self.providers.contexts:
            self.send_error(502)
            return
        self.send_response(200)
        self.end_headers()
        self.wfile.flush()
        self.connection = self.providers.contexts[self.host].wrap_socket(self.connection, server_side=True)
        self.rfile, self.wfile = self.connection.makefile("rb"), self.connection.makefile("wb")
        self.close_connection = False

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("content-length", 0)))
        headers = {name.lower(): value for name, value in self.headers.items()}
        connection = HTTPConnection("127.0.0.1", self.providers.house.port)
        connection.request(self.command, self.path, raw, headers)
        response = connection.getresponse()
        status, answer, requests = response.status, response.read(), self.providers.requests
        connection.close()
        is_reply = b'"usage' in answer
        is_first = not any(b'"usage' in each.answer for each in requests)
        if is_reply and is_first:
            answer = _write_cache(answer)
        # The first reply answers a preflight question.
        fault = self.providers.faults.pop() if is_reply and not is_first and self.providers.faults else None
        if fault == "overloaded":
            status, answer = 529, b""
        requests.append(LoggedRequest(self.host, self.path, headers, raw, status, answer))
        self.send_response(status)
        for name, value in response.getheaders():
            if name.lower() not in _HOP_HEADERS:
                self.send_header(name, value)
        self.send_header("content-length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer[: len(answer) // 2] if fault == "cut" else answer)
        self.close_connection |= fault == "cut"

    def do_GET(self) -> None:
        self.do_POST()

    def finish(self) -> None:
        super().finish()
        self.connection.close()

    def log_message(self, *_: object) -> None:
        """Print nothing."""


class Providers(Loopback):
    """A proxy that decrypts what is sent to the providers, and lets the built-in server answer. A context manager.

    The built-in server assumes that an earlier request filled the provider's cache. Here, the first one does so. Each
    fault is the next reply's.
    """

    def __init__(self, folder: Path) -> None:
        authority = trustme.CA()
        self.certificates = folder / "authority.pem"
        authority.cert_pem.write_to_path(self.certificates)
        self.contexts = {host: _server_context(authority, host) for host in HOSTS.values()}
        self.house = House(policy=Policy(tuple(MODELS.values()), _play_honestly))
        self.requests, self.faults = list[LoggedRequest](), list[Fault]()
        super().__init__(type("Handler", (_Handler,), {"providers": self}))

    def __enter__(self) -> "Providers":
        self.house.__enter__()
        super().__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        super().__exit__()
        self.house.__exit__(None, None, None)

    @property
    def variables(self) -> dict[str, str]:
        """The environment variables that lead the SDKs here."""
        return {**KEYS, "HTTPS_PROXY": self.address, "SSL_CERT_FILE": str(self.certificates)}


def _server_context(authority: trustme.CA, host: str) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(host).configure_cert(context)
    return context
