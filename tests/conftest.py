"""The whole suite needs no network: a connection or a look-up beyond loopback is refused, in whatever library."""

import os
import sys
from ipaddress import ip_address

_REAL = "DUBITO_TESTS_MAY_CONNECT" in os.environ  # set by `python -m tests.cassettes.record --real` only


def _beyond(host: object) -> bool:
    """Whether a host is another machine. Names are: to look one up asks a server."""
    name = host.decode() if isinstance(host, bytes) else host
    try:
        return name not in (None, "", "localhost") and not ip_address(str(name)).is_loopback
    except ValueError:
        return True


def _refuse(event: str, arguments: tuple[object, ...]) -> None:
    if event in ("socket.connect", "socket.sendto"):
        address = arguments[1]  # of a file's socket, no tuple
        host = address[0] if isinstance(address, tuple) else None
    elif event == "socket.getaddrinfo":
        host = arguments[0]
    else:
        return
    if _beyond(host):
        raise OSError(f"a test wanted {host!r} on the network: {event}")


if not _REAL:
    sys.addaudithook(_refuse)
