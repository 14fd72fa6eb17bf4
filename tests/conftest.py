"""The whole suite needs no network: a connection or a look-up beyond loopback is refused, in whatever library.

No test sees a key, a proxy or an SDK's setting of whoever runs it. One browser serves all tests that open pages.
"""

import os
import shutil
import signal
import sys
from collections.abc import Container, Iterable, Iterator, Sequence
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import pytest
from hypothesis import settings

from tests.chromium import CHROMIUM, Chrome, started

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

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # so it is in the background of a shell; tests press Ctrl-C
    signal.signal(signal.SIGINT, signal.default_int_handler)


_MEMORY: Final = Path("/dev/shm")  # noqa: S108, where there is one: what must be safe on disk need not wait for it
if _MEMORY.is_dir() and shutil.disk_usage(_MEMORY).free > 2**31:
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(_MEMORY))

settings.register_profile("gate", deadline=None, derandomize=True, database=None, max_examples=40)
settings.register_profile("at length", settings.get_profile("gate"), max_examples=120)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--at-length", action="store_true", help="all of what the gate takes a few of")


def few(values: Iterable[Any], keep: Container[Any] | int) -> list[Any]:
    """Parameters of which the gate takes these, or the first so many; the others come with `--at-length`.

    A tuple is one value for each argument.
    """
    kept = range(keep) if isinstance(keep, int) else keep
    return [
        value
        if (number if isinstance(keep, int) else value) in kept
        else pytest.param(*(value if isinstance(value, tuple) else (value,)), marks=pytest.mark.at_length)
        for number, value in enumerate(values)
    ]


def in_turn(few_of: Sequence[Any], many: Iterable[Any]) -> list[Any]:
    """All pairs of the two; in the gate each of the second once, with one of the first in turn."""
    second = list(many)
    kept = [(few_of[number % len(few_of)], value) for number, value in enumerate(second)]
    return few([(first, value) for first in few_of for value in second], kept)


def pytest_configure(config: pytest.Config) -> None:
    settings.load_profile("at length" if config.getoption("--at-length") else "gate")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what is marked `at_length`, unless there is time for it."""
    if not config.getoption("--at-length"):
        long = [item for item in items if item.get_closest_marker("at_length")]
        config.hook.pytest_deselected(items=long)
        items[:] = [item for item in items if item not in long]


@pytest.fixture(scope="session")
def at_length(request: pytest.FixtureRequest) -> bool:
    """Whether there is time for all of what the gate takes a few of."""
    return bool(request.config.getoption("--at-length"))


@pytest.fixture(autouse=True)
def bare_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """No key, no proxy and no SDK setting of whoever runs the tests."""
    for name in os.environ:
        if name.startswith(("OPENAI_", "ANTHROPIC_")) or name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """One more than there are cores: many tests wait for a server, a browser or another process."""
    return (os.cpu_count() or 1) + 1


@pytest.fixture(scope="session")
def chromium() -> Iterator[Chrome]:
    """One browser for all tests."""
    if CHROMIUM is None:
        pytest.skip("no Chromium here, so no page was opened: install the package `chromium`")
    with started() as chromium:
        yield chromium


@pytest.fixture
def chrome(chromium: Chrome) -> Iterator[Chrome]:
    """The browser, with a wide window; what its console complains of fails the test, and what it asks others for."""
    chromium.open("about:blank")  # what the last page does no longer counts
    chromium.forget()
    chromium.screen(1440)
    yield chromium
    assert chromium.errors == []
    beyond = [address for address in chromium.asked if _beyond(urlsplit(address).hostname)]
    assert beyond == []
