"""How long an account may be silent, what ends its silence, and how its pace is described."""

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import replace

import pytest

from dubito.errors import Interrupted
from dubito.llm.limiter import AccountTraffic, Timing
from dubito.llm.request import AccountFault, Attempt, FailureKind, Reply
from tests.llm.kit import Clock, Script, Sender, ask, reply
from tests.llm.test_limiter import ACCOUNT, fail, limited, limited_calls, new_traffic, through, times

KINDS: list[FailureKind] = ["rate_limit", "server", "connection", "deadline"]


def failing(traffic: AccountTraffic, clock: Clock, kind: FailureKind, seconds: float, every: float = 60.0) -> None:
    """Let an account's tries fail for this many seconds, one every `every` seconds."""
    call, end = limited_calls(traffic, *times(kind, 1000)), clock.now + seconds
    while clock.now < end:
        fail(1, call)
        clock.now += every


@pytest.mark.parametrize("kind", KINDS)
def test_an_account_silent_for_longer_than_patience_stops_all(kind: FailureKind) -> None:
    clock = Clock()
    traffic = new_traffic(clock=clock, patience=1800)
    failing(traffic, clock, kind, 1790)
    clock.now += 60
    for _ in range(2):
        with pytest.raises(AccountFault, match=r"cannot be reached: no answer for 3\d min; last error: a .* failure"):
            limited_calls(traffic, kind)()
    script = Script()
    with pytest.raises(AccountFault, match=r"`patience` is 30 min: .*`base_url`") as stopped:
        through(traffic, script).send(ask(), 1)
    assert ("a longer `deadline`" in str(stopped.value)) == (kind == "deadline"), (
        "a slow server may only need more time"
    )
    assert script.numbers == [], "nothing more is sent"


@pytest.mark.parametrize("end", [None, "refused", "too_long"])
def test_any_answer_ends_the_silence(end: FailureKind | None) -> None:
    clock = Clock()
    traffic = new_traffic(clock=clock, patience=100)
    for _ in range(3):
        failing(traffic, clock, "server", 90, every=10)
        if end is None:
            assert limited_calls(traffic)().text
        else:
            fail(1, limited_calls(traffic, end))
    failing(traffic, clock, "connection", 90, every=10)
    assert limited_calls(traffic)().text


def test_a_model_that_is_silent_while_another_answers_stops_the_run() -> None:
    clock = Clock()
    traffic = new_traffic(clock=clock, patience=100)
    down, up = through(traffic, Script(*times("server", 1000))), through(traffic, Script())
    for _ in range(10):
        fail(1, lambda: down.send(ask(model="down"), 1))
        assert up.send(ask(model="up"), 1).text
        clock.now += 10
    with pytest.raises(AccountFault, match="cannot be reached: no answer for 100 s from the model 'down'"):
        down.send(ask(model="down"), 1)


def test_time_without_requests_is_not_silence() -> None:
    clock = Clock()
    traffic = new_traffic(clock=clock, patience=100)
    assert limited_calls(traffic)().text
    clock.now += 10_000
    fail(1, limited_calls(traffic, "server"))
    assert limited_calls(traffic)().text


@pytest.mark.parametrize(("seconds", "stops"), [(100.0, False), (101.0, True), (86_400.0, True)])
def test_a_wait_longer_than_patience_stops_the_run_at_once(seconds: float, stops: bool) -> None:
    traffic = new_traffic(patience=100)
    call = limited_calls(traffic, limited(seconds))
    if stops:
        with pytest.raises(AccountFault, match=r"asks to wait .*`patience` is 100 s"):
            call()
    else:
        fail(1, call)


def test_twenty_failures_in_a_row_are_not_an_outage() -> None:
    call = limited_calls(new_traffic(), *times("server", 200))
    fail(200, call)
    assert call().text


def test_games_abandoned_during_an_outage_are_requeued() -> None:
    clock = Clock()
    traffic = new_traffic(clock=clock, patience=100)
    call = limited_calls(traffic, "server", None, *times("server", 2))
    fail(1, call)
    traffic.give_up(ask(game=2))
    assert traffic.lost_games == set(), "silence is not yet an outage"
    call()
    traffic.give_up(ask(game=1))
    fail(1, call)
    traffic.give_up(ask(game=3))
    traffic.give_up(ask(game=4))
    clock.now += 200
    with pytest.raises(AccountFault):
        call()
    assert traffic.lost_games == {3, 4}


def test_games_stay_requeued_after_a_late_answer() -> None:
    """One try is in flight when the outage is detected. Its answer does not end the outage."""
    clock = Clock()
    traffic = new_traffic(2, clock, patience=100)
    under_way, go_on = threading.Event(), threading.Event()

    def slow(ask: Attempt, number: int) -> Reply:
        under_way.set()
        assert go_on.wait(20)
        return reply()

    with ThreadPoolExecutor(1) as pool:
        late = pool.submit(through(traffic, Sender(slow)).send, ask(), 1)
        assert under_way.wait(20)
        fail(1, limited_calls(traffic, "server"))
        traffic.give_up(ask(game=5))
        clock.now += 200
        with pytest.raises(AccountFault):
            limited_calls(traffic, "server")()
        go_on.set()
        assert late.result(20).text
    assert traffic.lost_games == {5}
    with pytest.raises(AccountFault):
        limited_calls(traffic)()


def test_an_outage_that_may_be_over_is_tried_again() -> None:
    clock = Clock()
    traffic = new_traffic(clock=clock, patience=100)
    failing(traffic, clock, "server", 90, every=50)
    with pytest.raises(AccountFault):
        limited_calls(traffic, "server")()
    traffic.try_again()
    fail(1, limited_calls(traffic, "server"))
    assert limited_calls(traffic)().text


def test_any_answer_ends_an_outage() -> None:
    traffic = new_traffic(4)
    under_way, go_on = threading.Event(), threading.Event()

    def slow(ask: Attempt, number: int) -> Reply:
        under_way.set()
        assert go_on.wait(20)
        return reply()

    with ThreadPoolExecutor(3) as pool:
        early = pool.submit(through(traffic, Sender(slow)).send, ask(1), 1)
        assert under_way.wait(20)
        waits = pool.submit(traffic.wait_for_answer, ask(), lambda: pytest.fail("another call was sent"), since=1)
        under_way.clear()
        later = pool.submit(through(traffic, Sender(slow)).send, ask(2), 1)
        assert under_way.wait(20)
        assert not waits.done()
        go_on.set()
        assert early.result(20).text
        assert later.result(20).text
        waits.result(20)


def test_probe_repeats_until_it_is_answered() -> None:
    clock = Clock()
    traffic = new_traffic(4, clock)
    probes = limited_calls(traffic, "server", "connection", "rate_limit", None)
    traffic.wait_for_answer(ask(), probes, since=0)
    assert len(clock.slept) >= 4
    assert f"for {ACCOUNT} (no answer)" in clock.whys


def test_patience_ends_probing_too() -> None:
    clock = Clock()
    traffic = new_traffic(4, clock, patience=100)
    fail(1, limited_calls(traffic, "server"))
    with pytest.raises(AccountFault, match="cannot be reached"):
        traffic.wait_for_answer(ask(), limited_calls(traffic, *times("server", 1000)), since=1)


def test_waiting_calls_end_with_the_run() -> None:
    clock, stop = Clock(), threading.Event()

    def sleep(seconds: float, why: str) -> None:
        stop.set()
        clock.sleep(seconds, why)

    traffic = AccountTraffic(ACCOUNT, 1, Timing(1800, sleep, lambda why: nullcontext(), clock, stop.is_set))
    fail(1, limited_calls(traffic, limited(60)))
    with pytest.raises(Interrupted):
        limited_calls(traffic)()
    assert clock.now < 60, "it stops at once and not after the wait"


def test_pace_is_shown_while_it_delays_calls() -> None:
    clock = Clock()
    traffic = new_traffic(4, clock)
    headers = {"x-ratelimit-limit-requests": "500", "x-ratelimit-remaining-requests": "0"}
    answer = replace(reply(), received=replace(reply().received, headers=headers))
    call = limited_calls(traffic, answer, answer, answer)
    call()
    assert traffic.describe_pace() is None, "no call had to wait"
    for _ in range(2):
        call()
    assert traffic.describe_pace() == "paced at 480 requests/min by the server"
    assert f"for {ACCOUNT} (rate limit)" in clock.whys
    clock.now += 61
    assert traffic.describe_pace() is None
