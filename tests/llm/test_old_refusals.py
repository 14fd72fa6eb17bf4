"""Refusals in the cache: a new run repeats the request, a resumed one uses them."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from dubito.model_settings import Api
from tests.cli.kit import Shell
from tests.conftest import in_gate
from tests.llm.kit import PROTOCOLS, Incoming, Response, Server, config_file, outcomes_of, player_at, respond

pytestmark = pytest.mark.usefixtures("unhurried")


@pytest.mark.parametrize(
    ("protocol", "finish"),
    in_gate([(protocol, finish) for protocol in PROTOCOLS for finish in ("refusal", "filter")], [("chat", "filter")]),
)
def test_new_run_repeats_refusals_and_reports_the_cache_age(shell: Shell, protocol: Api, finish: str) -> None:
    refuses = True

    def answer(request: Incoming) -> Response:
        return respond(protocol, finish=finish) if refuses and sum(request.raw) % 3 == 0 else respond(protocol)

    with Server(answer) as server:
        file = config_file(player_at(server, protocol, reasks=0), on_unusable="fallback", preflight=False)
        run = ("run", file, "--quiet", "--output")
        assert shell(*run, "sick").code == 0
        refused, calls = outcomes_of(Path("sick"))["fallback:refused"], len(server.requests)
        assert 0 < refused < calls
        refuses = False
        age_the_cache(3)
        first = shell(*run, "healed", "--offline")
        assert outcomes_of(Path("healed")) == outcomes_of(Path("sick")), "an offline run uses whatever is cached"
        assert len(server.requests) == calls
        healed = shell(*run, "new")
        assert "refused" not in str(outcomes_of(Path("new")))
        assert len(server.requests) > calls
        asked = len(server.requests)
        assert shell(*run, "sick").code == shell(*run, "new").code == 0
        assert len(server.requests) == asked, "a resumed run keeps its own replies"
    assert first.code == healed.code == 0
    assert f"{calls:,} of {calls:,} replies came from the cache, the oldest 3 days old\n" in first.out + first.err


def age_the_cache(days: int) -> None:
    with closing(sqlite3.connect("cache/cache.db")) as db, db:
        db.execute("UPDATE Cache SET store_time = store_time - ?", (days * 86_400 + 60,))
