"""The suite's own guard: what leaves this machine is refused before it goes (tests/conftest.py)."""

import socket

import pytest

from tests.conftest import cases


@cases("address", [("192.0.2.1", 443), ("8.8.8.8", 53), ("::2", 80, 0, 0)])
@cases("kind", [socket.SOCK_STREAM, socket.SOCK_DGRAM])
def test_no_test_gets_beyond_loopback(address: tuple[object, ...], kind: socket.SocketKind) -> None:
    family = socket.AF_INET6 if len(address) == 4 else socket.AF_INET
    with socket.socket(family, kind) as client:
        with pytest.raises(OSError, match="a test wanted"):
            client.connect(address)
        with pytest.raises(OSError, match="a test wanted"):
            client.sendto(b"", address)


def test_no_test_looks_a_name_up() -> None:
    with pytest.raises(OSError, match=r"a test wanted 'api\.anthropic\.com' on the network: socket\.getaddrinfo"):
        socket.getaddrinfo("api.anthropic.com", 443)


@cases("name", ["localhost", "127.0.0.1", "::1", None])
def test_loopback_is_there(name: str | None) -> None:
    assert socket.getaddrinfo(name, 80)
