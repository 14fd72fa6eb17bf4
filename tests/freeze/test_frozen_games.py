"""What is asked, what learners see, and tables of the browser stay what they were, in every game."""

import json
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from tests.conftest import in_gate
from tests.freeze.games import DIGESTS, TABLES, come_to, digests, hall, playable
from tests.web.kit import Browser, Served

KEPT = json.loads(TABLES.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server in whose folder the tables lie that were left unfinished."""
    folder = tmp_path_factory.mktemp("games")
    (folder / "running").mkdir()
    for kept in KEPT.values():
        (folder / "running" / kept["file"]).write_text(kept["table"], encoding="utf-8")
    with ExitStack() as stack:
        yield hall(stack, folder)


@pytest.fixture(scope="module")
def cookie(server: Served) -> str:
    browser = server.browser()
    browser.sit()
    return str(browser.cookie).partition("=")[0]


@pytest.mark.at_length
def test_models_are_asked_and_learners_see_the_same() -> None:
    frozen = json.loads(DIGESTS.read_text(encoding="utf-8"))
    found = digests()
    # Without OpenSpiel fewer games are played.
    assert found
    assert found == {name: frozen[name] for name in found}


@pytest.mark.parametrize("game", in_gate(playable(), {*playable()} - {"openspiel:gin_rummy"}))
def test_a_table_of_then_goes_on_to_the_same_end(server: Served, cookie: str, game: str) -> None:
    kept = KEPT[game]
    browser = Browser(server.port, f"{cookie}={kept['cookie'].partition('=')[2]}")
    view = browser.at_rest()
    assert view["turn"] == kept["turn"]
    for answer in kept["answers"]:
        view = browser.play(answer)
    found = come_to(server, browser, view)
    assert found == {key: kept[key] for key in found}
