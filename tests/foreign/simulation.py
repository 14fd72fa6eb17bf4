"""Simulate the pacer against a server's limits without clocks or threads, so figures are reproducible."""

import heapq
import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Literal

from dubito.llm.pacer import Limit, OpenCall, Pacer
from tests.foreign.limits import Limiter

_TRIP = 0.03  # seconds from the client to the server, and back
_PROBES = 5.0  # seconds, as in the limiter


@dataclass(frozen=True)
class Simulated:
    """The result of a simulation."""

    seconds: float
    taken: int
    refused: int
    taken_late: int  # in the second half of the time
    pace: Pacer

    @property
    def share(self) -> float:
        return self.refused / (self.taken + self.refused)

    @property
    def rate(self) -> float:
        return self.taken_late / (self.seconds / 2) * 60


def simulated(  # noqa: C901, a few events that share a world
    limiter: Limiter | None,
    in_flight: int,
    calls: int,
    *,
    kind: str | None = None,
    resolution: float = 0.001,
    retry_after: Literal["exact", "whole"] | None = None,
    latency: Sequence[float] = (1.0, 3.0),
    cost: float = 1.0,
    at_random: float = 0.0,
    at_once: int | None = None,
    in_words: bool = True,
    seed: int = 1,
) -> Simulated:
    """Simulate this many calls with `in_flight` at once, after a single first call.

    `kind` is the limit that the server's headers report (None: no headers), with times rounded up to `resolution`
    seconds. `at_random` is the share of calls refused at any pace. `at_once` limits concurrent calls; a refusal
    mentions concurrency if `in_words`, otherwise it is a bare 429.
    """
    chance, order, pace = random.Random(seed), count(), Pacer()
    events: list[tuple[float, int, Callable[[], None]]] = []
    now, ready, refused, wake, busy = 0.0, 1, 0, -1.0, 0
    taken: list[float] = []

    def later(seconds: float, what: Callable[[], None]) -> None:
        heapq.heappush(events, (now + seconds, next(order), what))

    def list_limits() -> list[Limit]:
        if kind is None or limiter is None:
            return []
        whole = math.ceil(limiter.whole() / resolution) * resolution
        return [Limit(kind, limiter.limit, math.floor(limiter.left), whole)]

    def arrives(sent: OpenCall) -> None:
        nonlocal busy
        if at_once is not None and busy >= at_once:
            later(_TRIP, lambda: crowded(sent))
            return
        lucky = chance.random() >= at_random
        if limiter is not None:
            limiter.refresh(now)
        if lucky and (limiter is None or limiter.left >= cost):
            if limiter is not None:
                limiter.take(cost)
            limits = list_limits()
            busy += 1
            later(chance.uniform(*latency), lambda: answered(sent, limits))
            return
        seconds = limiter.wait(cost) if limiter is not None else 0.0
        limits = list_limits()
        later(_TRIP, lambda: limited(sent, limits, seconds))

    def answered(sent: OpenCall, limits: list[Limit]) -> None:
        nonlocal ready, busy
        busy -= 1
        pace.count_accepted(sent, now, limits)
        ready += 1 if taken else in_flight
        taken.append(now)

    def crowded(sent: OpenCall) -> None:
        nonlocal ready, refused
        if not in_words:
            limited(sent, [], 0.0)
            return
        ready, refused = ready + 1, refused + 1
        pace.count_concurrency_refusal(now, chance.uniform(0.5, 1) * 0.5 * 2**pace.refusals, is_pause_asked=False)

    def limited(sent: OpenCall, limits: list[Limit], seconds: float) -> None:
        nonlocal ready, refused
        ready, refused = ready + 1, refused + 1
        grows = min(_PROBES, chance.uniform(0.5, 1) * 0.5 * 2**pace.refusals)
        pause = {"exact": seconds, "whole": float(math.ceil(seconds)), None: grows}[retry_after]
        pace.count_refusal(sent, now, pause, limits)

    while len(taken) < calls:
        while ready:
            seconds = pace.delay(now, {"tokens": cost})
            if seconds == math.inf:
                break
            if seconds > 1e-9:
                if not now < wake <= now + seconds:
                    wake = now + seconds
                    later(seconds, lambda: None)
                break
            sent = pace.start(now)
            ready -= 1
            later(_TRIP, lambda sent=sent: arrives(sent))  # type: ignore[misc]
        now, _, happens = heapq.heappop(events)
        happens()
    return Simulated(now, len(taken), refused, sum(at > now / 2 for at in taken), pace)
