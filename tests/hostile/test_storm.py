"""Many games in flight over three protocols, with two of five calls failing: reproducible, with consistent sums."""

import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest
from starlette.requests import Request
from starlette.responses import Response

from dubito.experiment.run import RunResult
from dubito.house import server
from dubito.house.core import Call
from dubito.house.faults import NO_REPLIES, PROBE, Faults
from dubito.house.server import House
from dubito.store.spend import Caps
from tests.conftest import in_gate
from tests.hostile.kit import IN_FLIGHT, Desk
from tests.llm.kit import BOT_OF, PROTOCOLS, NoWait, contender, rows, run_games, small

CAPS: Final = Caps(calls=10**9, tokens=10**12)


class Counted:
    """A wrapper that counts the calls in flight, from their arrival until just before the response is sent."""

    def __init__(self, desk: Any) -> None:
        self._desk = desk
        self.models, self.refuse_unknown = desk.models, desk.refuse_unknown
        self.handle_disconnect = desk.handle_disconnect
        self._now = self.most = 0

    async def create(self, request: Request) -> Response:
        self._now += 1
        self.most = max(self.most, self._now)
        try:
            answer: Response = await self._desk.create(request)
            return answer
        finally:
            self._now -= 1


@dataclass(frozen=True, slots=True)
class Storm:
    """The results of a storm."""

    run: RunResult
    games: int
    in_flight: int
    calls: list[Call]  # the server's log
    most: int  # maximum number of concurrent calls at the server
    used: str  # the budget's description of its use
    threads: int  # threads that are left over


@contextmanager
def counting() -> Iterator[list[Counted]]:
    """Count the calls in flight of the servers that are started in this context."""
    desks: list[Counted] = []
    make_app = server.house_app

    def counted(desk: Any, *others: Any) -> Any:
        desks.append(Counted(desk))
        return make_app(desks[-1], *others)  # type: ignore[arg-type]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(server, "house_app", counted)
        yield desks


def storm(folder: Path, games: int, in_flight: int, latency: float) -> Storm:
    """Play a run through a storm with a new cache. The server is slow enough for several calls to be in flight."""
    before = threading.active_count()
    watch = NoWait()
    with counting() as desks, House(faults=Faults(storm=0.4, size=10_000), latency=latency) as house:
        players = [
            contender(protocol, "house-sharp", BOT_OF[protocol], api=protocol, base_url=house.base_url(protocol))
            for protocol in PROTOCOLS
        ]
        run = run_games(small(*players, games=games, turns=4), folder, watch, in_flight=in_flight, caps=CAPS)
    return Storm(
        run, games, in_flight, house.calls, desks[0].most, watch.describe_use(), threading.active_count() - before
    )


@pytest.fixture(scope="module")
def storms(tmp_path_factory: pytest.TempPathFactory, at_length: bool) -> tuple[Storm, Storm]:
    """Play the same storm with many games in flight and with few. Each contender has a third of them."""
    folder = tmp_path_factory.mktemp("storm")
    games, many = (258, 256) if at_length else (27, 24)
    return (
        storm(folder / "many" / "run", games, many, latency=0.2),
        storm(folder / "few" / "run", games, 8, latency=0.002),
    )


@pytest.fixture(params=in_gate(["many", "few"], 1))
def each(request: pytest.FixtureRequest, storms: tuple[Storm, Storm]) -> Storm:
    return storms[request.param == "few"]


def test_storm_causes_many_failures(each: Storm, at_length: bool) -> None:
    struck = Counter(call.fault for call in each.calls)
    assert len(struck) > (30 if at_length else 20), "most kinds of faults must occur"
    assert 0.3 < 1 - struck[None] / len(each.calls) < 0.5
    outcomes = {outcome for log in each.run.models.values() for outcome in log.outcomes}
    assert outcomes >= {"model", "model_after_reask", *(["fallback:malformed"] if at_length else [])}


def test_every_game_ends_and_no_deadline_fires(each: Storm) -> None:
    assert (each.run.failure, each.run.interrupted) == (None, False)
    assert each.run.tally.games == each.games
    assert [log.deadlines for log in each.run.models.values()] == [0, 0, 0]
    assert rows(each.run.folder, "SELECT count(*) FROM attempts WHERE reply IS NULL AND cause IS NULL") == [(0,)]
    assert rows(each.run.folder, "SELECT count(*) FROM tries WHERE state = 'open'") == [(0,)]


def test_no_thread_is_left_over(each: Storm) -> None:
    assert each.threads == 0


def test_calls_in_flight_never_exceed_games_in_flight(storms: tuple[Storm, Storm]) -> None:
    many, few = storms
    assert few.most <= few.in_flight < many.most <= many.in_flight


def test_gate_holds_with_more_waiting_calls(tmp_path: Path) -> None:
    """Many threads use an account that allows four calls at once."""
    faults = Faults(storm=0.4, size=10_000)
    with (
        counting() as desks,
        House(faults=faults, latency=0.02) as house,
        Desk(tmp_path / "desk", lambda api, _: house.base_url(api)) as desk,
        ThreadPoolExecutor(24) as pool,
    ):
        list(pool.map(lambda number: desk.decide("chat", number=number), range(24)))
    assert desks[0].most == IN_FLIGHT


def test_counts_of_tries_budget_and_house_agree(each: Storm) -> None:
    folder = each.run.folder
    ((tries, tokens),) = rows(folder, "SELECT count(*), sum(tokens) FROM tries")
    assert tries == len(each.calls) == sum(log.calls for log in each.run.models.values())
    assert each.used.startswith(f"{tries:,} calls, calls: {tries:,} spent, 0 reserved, ")
    assert f", tokens: {tokens:,} spent, 0 reserved, " in each.used
    for protocol, log in each.run.models.items():
        answered = [call for call in each.calls if call.protocol == protocol]
        assert log.calls == len(answered)
        assert log.tokens["input"] == sum(call.input_tokens for call in answered)
        assert log.tokens["output"] == sum(call.output_tokens for call in answered)
        assert log.tokens["cached"] == sum(call.cached_tokens for call in answered)
    known = "SELECT sum(tokens) FROM tries WHERE assumed = 0"
    assert rows(folder, known) == [(sum(call.input_tokens + call.output_tokens for call in each.calls),)]


def test_each_try_fails_as_the_house_planned(each: Storm) -> None:
    """The server's log has as many errors and broken answers as there are tries that failed with them."""
    sent = Counter(
        "received"
        if call.status == 200 and call.fault not in NO_REPLIES
        else "connection"
        if call.status == 0
        else "error"
        for call in each.calls
    )
    kept = dict(rows(each.run.folder, "SELECT iif(state = 'failed', kind, state), count(*) FROM tries GROUP BY 1"))
    errors = kept["rate_limit"] + kept["server"]
    assert (kept["received"], kept["connection"], errors) == (sent["received"], sent["connection"], sent["error"])


def test_results_do_not_depend_on_calls_in_flight(storms: tuple[Storm, Storm]) -> None:
    many, few = storms
    assert many.run.results_digest == few.run.results_digest
    assert (many.run.folder / "all_games.yaml").read_bytes() == (few.run.folder / "all_games.yaml").read_bytes()


def test_storm_repeats_call_by_call(storms: tuple[Storm, Storm]) -> None:
    """The same tries of the same requests have the same faults."""
    many, few = (
        {(c.request, c.draw, c.try_number, c.fault, c.status) for c in each.calls if c.draw != PROBE} for each in storms
    )
    assert many == few
