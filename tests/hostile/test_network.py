"""The suite's network guard (tests/conftest.py) refuses every connection that leaves this machine."""

import socket
from contextlib import closing
from typing import Final, NoReturn

import pytest

from dubito.llm.client import Provider
from dubito.llm.request import TryFailed
from dubito.model_settings import Account, Api
from tests.llm.kit import PROTOCOLS, ask

ADDRESS: Final = "https://models.example.test/v1"


@pytest.mark.parametrize("address", [("192.0.2.1", 443), ("8.8.8.8", 53), ("::2", 80, 0, 0)])
@pytest.mark.parametrize("kind", [socket.SOCK_STREAM, socket.SOCK_DGRAM])
def test_tests_cannot_connect_beyond_loopback(address: tuple[object, ...], kind: socket.SocketKind) -> None:
    family = socket.AF_INET6 if len(address) == 4 else socket.AF_INET
    with socket.socket(family, kind) as client:
        with pytest.raises(OSError, match="a test wanted"):
            client.connect(address)
        with pytest.raises(OSError, match="a test wanted"):
            client.sendto(b"", address)


def test_tests_cannot_look_up_names() -> None:
    with pytest.raises(OSError, match=r"a test wanted 'api\.anthropic\.com' on the network: socket\.getaddrinfo"):
        socket.getaddrinfo("api.anthropic.com", 443)


@pytest.mark.parametrize("name", ["localhost", "127.0.0.1", "::1", None])
def test_loopback_is_available(name: str | None) -> None:
    assert socket.getaddrinfo(name, 80)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_unknown_name_is_reported_as_unknown(monkeypatch: pytest.MonkeyPatch, protocol: Api) -> None:
    def unknown(host: str, *_: object, **__: object) -> NoReturn:
        raise socket.gaierror(socket.EAI_NONAME, f"Name or service not known: {host}")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    provider = Provider(Account(protocol, ADDRESS, "SOME_KEY"), ADDRESS, "a-key-of-the-test", 1)
    with closing(provider), pytest.raises(TryFailed) as failed:
        provider.send(ask(protocol=protocol), 1, 5.0)
    assert str(failed.value).startswith("cannot find the host 'models.example.test' (DNS: Name or service not known")
    assert str(failed.value).endswith("; check `base_url`")
    assert (failed.value.kind, failed.value.billed) == ("connection", False)
