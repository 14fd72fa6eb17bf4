"""Fixtures for the whole suite.

Connections and lookups beyond loopback are refused. Tests do not see the user's keys, proxies or SDK settings. One
browser serves all tests that open pages.
"""

import gc
import os
import shutil
import signal
import sys
from collections.abc import Iterable, Iterator
from importlib.metadata import Distribution
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import pytest
from hypothesis import settings
from hypothesis import strategies as st

from tests.chromium import CHROMIUM, Chrome, start_browser
from tests.cli.kit import Shell

_REAL = "DUBITO_TESTS_MAY_CONNECT" in os.environ  # set by `python -m tests.cassettes.record --real` only


def _beyond(host: object) -> bool:
    """Return whether a host is another machine. Names count as such, because looking one up contacts a server."""
    name = host.decode() if isinstance(host, bytes) else host
    try:
        return name not in (None, "", "localhost") and not ip_address(str(name)).is_loopback
    except ValueError:
        return True


def _refuse(event: str, arguments: tuple[object, ...]) -> None:
    if event in ("socket.connect", "socket.sendto"):
        address = arguments[1]  # a string for a Unix socket, otherwise a tuple
        host = address[0] if isinstance(address, tuple) else None
    elif event == "socket.getaddrinfo":
        host = arguments[0]
    else:
        return
    if _beyond(host):
        raise OSError(f"a test wanted {host!r} on the network: {event}")


if not _REAL:
    sys.addaudithook(_refuse)

# Shells set this for background processes, but tests press Ctrl-C.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:  # nohup sets this, but tests send SIGHUP
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


_MEMORY: Final = Path("/dev/shm")  # noqa: S108, where there is one: what must be safe on disk need not wait for it
if _MEMORY.is_dir() and shutil.disk_usage(_MEMORY).free > 2**31:
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(_MEMORY))

settings.register_profile("gate", deadline=None, derandomize=True, database=None, max_examples=25)
settings.register_profile("at length", settings.get_profile("gate"), max_examples=120)


_at_length = False  # set when the command line is parsed


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--at-length", action="store_true", help="run all parameters and tests, also those that the gate leaves out"
    )
    parser.addoption("--upstream", metavar="FOLDER", help="test versions of the source project, one in each subfolder")


def in_gate(values: Iterable[Any], keep: Iterable[Any] | int) -> list[Any]:
    """Select the parameters that the gate takes: those in `keep`, or the first N. With `--at-length` take all.

    Write a parameter of several arguments as a tuple.
    """
    if _at_length:
        return [*values]
    if isinstance(keep, int):
        return [*values][:keep]
    kept = [*keep]
    return [value for value in values if value in kept]


_CHARACTERS: Final = "".join(map(chr, range(128))) + "\x85\xa0\xad²\u0663\u07c0éß\u0131\u200b\u2028\u202e\ufeff日🃏"


def any_text(max_size: int | None = None, characters: str = "") -> st.SearchStrategy[str]:
    """Generate texts from these characters, or from all, with easily mistaken characters overrepresented.

    `st.text()` takes seconds in each process to compute a table of all characters.
    """
    others = st.integers(0xA0, 0xD7FF) | st.integers(0xE000, sys.maxunicode)
    each = st.sampled_from(characters) if characters else st.sampled_from(_CHARACTERS) | others.map(chr)
    return st.lists(each, max_size=max_size).map("".join)


_WITH_PAGES: Final = ("report", "web")  # folders
READ_ALL_MODULES: Final = ("test_platforms.py", "test_project.py", "test_rooms.py")


def pytest_configure(config: pytest.Config) -> None:
    global _at_length
    _at_length = config.getoption("--at-length")
    settings.load_profile("at length" if _at_length else "gate")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out tests marked `at_length` unless requested, and order the rest.

    Tests that open pages come first, then those that read all modules. So each group stays with one worker, which
    starts the one browser and parses the modules only once. Workers that finish early take tests from the end.
    """
    items.sort(key=lambda item: (item.path.parent.name not in _WITH_PAGES, item.path.name not in READ_ALL_MODULES))
    if not config.getoption("--at-length"):
        long = [item for item in items if item.get_closest_marker("at_length")]
        config.hook.pytest_deselected(items=long)
        items[:] = [item for item in items if item not in long]


gc.disable()  # during collection, which would otherwise trigger garbage collection a hundred times


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()
    # New objects; with Python's default of 700, garbage collection takes a seventh of the suite's time.
    gc.set_threshold(50_000)


@pytest.fixture(scope="session")
def at_length(request: pytest.FixtureRequest) -> bool:
    return bool(request.config.getoption("--at-length"))


@pytest.fixture(autouse=True, scope="session")
def entry_points_read_once() -> Iterator[None]:
    """Cache the installed entry points. Otherwise each command would read those of eighty packages twice."""
    read = Distribution.entry_points.fget  # type: ignore[attr-defined]
    known = dict[str, Any]()

    def entry_points(dist: Distribution) -> Any:
        place = str(getattr(dist, "_path", ""))
        if not place.startswith(sys.prefix):
            return read(dist)
        if place not in known:
            known[place] = read(dist)
        return known[place]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Distribution, "entry_points", property(entry_points))
        yield


@pytest.fixture(autouse=True)
def bare_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in os.environ:
        if name.startswith(("OPENAI_", "ANTHROPIC_")) or name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)


@pytest.fixture(autouse=True)
def own_state(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget the user's consent to start programs."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path_factory.getbasetemp() / "state"))


@pytest.fixture
def shell(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Shell:
    """Provide `dubito` commands in an empty folder."""
    return Shell(tmp_path, capsys, monkeypatch)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Return one more than the number of cores, because many tests wait for a server, a browser or another process."""
    return (os.cpu_count() or 1) + 1


@pytest.fixture(scope="session")
def chromium() -> Iterator[Chrome]:
    """Start one browser for all tests."""
    if CHROMIUM is None:
        pytest.skip(
            "no Chromium here, so no page was opened: install the package `chromium-headless-shell` or `chromium`"
        )
    with start_browser() as chromium:
        yield chromium


@pytest.fixture
def chrome(chromium: Chrome) -> Iterator[Chrome]:
    """Open a browser with a wide window. Messages on its console and requests to other hosts fail the test."""
    # Pages over HTTP can still send requests; pages from files do not.
    if any(address.startswith("http") for address in chromium.asked):
        chromium.leave()
    chromium.forget()
    chromium.screen(1440)
    yield chromium
    assert chromium.errors == []
    beyond = [address for address in chromium.asked if _beyond(urlsplit(address).hostname)]
    assert beyond == []
