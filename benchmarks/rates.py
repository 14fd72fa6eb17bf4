"""Measure how much of a server's rate limit whole runs over HTTP use, and how many calls it refuses.

`python -m benchmarks.rates [SCALE]` uses a fake server; time there and in the runs passes SCALE (6) times as fast. Each
kind of limit is tried with 32 and 128 games in flight, and the usual preflight. Rates are measured in the second half
of a run, when the server's initial burst is used up. Targets: at least 90 % of the limit, at most 5 % of the calls
refused, no fallback, and the same results digest in all runs.
"""

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.foreign.kit import play_at
from tests.foreign.limits import MINUTE, Bucket, Window
from tests.foreign.server import Foreign, Habits

GAMES = 600
A_CALL = 10_800.0  # approximate tokens per call, including the output
CASES: dict[str, tuple[float, Callable[[], Habits]]] = {  # requests per minute, and the server
    "500 RPM, bursts of 8, headers": (500, lambda: Habits([Bucket(500, 8)], headers="openai", retry_after="ms")),
    "500 RPM, bursts of 500, headers": (500, lambda: Habits([Bucket(500, 500)], headers="openai", retry_after="exact")),
    "500 RPM, bursts of 8, whole seconds": (500, lambda: Habits([Bucket(500, 8)], retry_after="whole")),
    "500 RPM, bursts of 8, no limits stated": (500, lambda: Habits([Bucket(500, 8)])),
    "50 RPM, Anthropic's headers": (50, lambda: Habits([Bucket(50, 5)], headers="anthropic", retry_after="whole")),
    "5.4 M tokens a minute, headers": (
        500,
        lambda: Habits(tokens=[Bucket(500 * A_CALL, 8 * A_CALL)], headers="openai"),
    ),
    "500 in each minute": (500, lambda: Habits([Window(500)], retry_after="whole")),
}


def measure(name: str, scale: float, in_flight: int, folder: Path) -> str:
    """Play a run and describe its speed and refusals."""
    rate, habits = CASES[name]
    with Foreign(replace(habits(), scale=scale)) as server:
        run = play_at(server, folder, in_flight, games=GAMES if rate > 100 else GAMES // 8, preflight=True)
    taken = sorted(request.at for request in server.requests if request.status == 200)
    end = max(request.at for request in server.requests)
    late = sum(at > end / 2 for at in taken)
    used = late / (end / 2) * MINUTE / rate
    (log,) = run.models.values()
    fallbacks = sum(count for outcome, count in log.outcomes.items() if outcome.startswith("fallback"))
    return (
        f"{name}; {in_flight} in flight: {used:.0%} of the rate, "
        f"{server.count(429) / len(server.requests):.1%} refused, "
        f"{len(taken)} calls, {fallbacks} fallbacks, digest {run.results_digest[:12]}"
    )


def main() -> None:
    """Print a line for each kind of limit and number of games in flight."""
    scale = float(sys.argv[1]) if len(sys.argv) > 1 else 6.0
    with TemporaryDirectory() as folder:
        for name in CASES:
            for in_flight in (32, 128):
                run = Path(folder) / f"{len(name)}-{name[:12]}-{in_flight}"
                print(measure(name, scale, in_flight, run), flush=True)


if __name__ == "__main__":
    main()
