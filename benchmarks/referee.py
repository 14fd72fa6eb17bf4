"""Measure what the referee costs: nodes compared with a bare ping-pong over pipes, and matches with restarts.

python -m benchmarks.referee
"""

import os
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path
from statistics import median
from time import perf_counter, process_time
from typing import Final

from dubito.experiment.workers import available_cores
from dubito.plugins.tournament.match import Match, MatchStreams
from dubito.plugins.tournament.pair import Pair
from dubito.plugins.tournament.plan import Pairing, Tournament, validate_config
from dubito.plugins.tournament.rules import V1, Limits, load
from dubito.plugins.tournament.table import MatchTable, Referee
from dubito.sandbox.process import Channel, DirectProcess
from dubito.sandbox.programs import BotProgram, Confinement

GAMES: Final = ("kuhn_poker", "leduc_poker", "gin_rummy")
STAYS: Final = """
import sys
while line := sys.stdin.readline():
    _, *legal = line.split()
    if legal:
        sys.stdout.write(legal[0] + "\\n")
        sys.stdout.flush()
"""
PLAIN: Final = """
game, seat = input(), input()
while not (line := input()).startswith("end"):
    _, *legal = line.split()
    if legal:
        print(legal[0])
"""
PYTHON: Final = os.path.realpath(sys.executable)
ROUNDS: Final = 9
OLD: Final = (  # measured in open_spiel 1.0.2, the last version with its own referee, on two cores
    "OpenSpiel's own referee of 2021, for comparison: 1,300 to 1,900 us per node with fast bots, plus sleeps "
    "of 1.2 s per match and 65 s per run"
)


def ping_pong(times: int) -> tuple[float, float]:
    """Return the microseconds for a line to a bot and its answer over blocking pipes: in total, and in our process."""
    with subprocess.Popen([PYTHON, "-S", "-E", "-c", STAYS], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as bot:
        assert bot.stdin is not None
        assert bot.stdout is not None
        to, of, line = bot.stdin.fileno(), bot.stdout.fileno(), b"A" * 40 + b" 0 1\n"
        os.write(to, line), os.read(of, 100)
        start, own = perf_counter(), process_time()
        for _ in range(times):
            os.write(to, line)
            os.read(of, 100)
        return (perf_counter() - start) / times * 1e6, (process_time() - own) / times * 1e6


def node(name: str, table: MatchTable, least: int) -> tuple[float, float]:
    """Return the microseconds per node that both bots observe, without start and end: in total, and in our process."""
    game, nodes, spent, own, seed = load(name), 0, 0.0, 0.0, 0
    dialect, root = V1(game), game.new_initial_state()
    while nodes < least:
        draws = MatchStreams(seed, (1, 2))
        match = Match(root.clone(), dialect, draws)
        start, ours = perf_counter(), process_time()
        Referee(match, table, Limits(chance=0.0), (0.0, 0.0)).play()
        spent += perf_counter() - start
        own += process_time() - ours
        assert match.strikes == []
        nodes, seed = nodes + len(match.history), seed + 1
    return spent / nodes * 1e6, own / nodes * 1e6


def restarts(folder: Path, name: str, matches: int) -> tuple[float, float]:
    """Return the matches per second of two Python bots that restart for each match, and a match's CPU milliseconds."""
    bots = [BotProgram(bot, (PYTHON, "-S", "-E", "-c", PLAIN), folder) for bot in ("one", "other")]
    settings = {"games": [name], "bots": {bot.name: "-" for bot in bots}, "chance_seconds": 0.0}
    config = validate_config(settings, "here", {})
    cores = available_cores()
    confinement = Confinement(16 << 30, (cores[0], cores[-1]))
    pair = Pair(Tournament(config, (bots[0], bots[1])), Pairing(0, (0, 1)), folder, confinement)
    start, before = perf_counter(), sum(os.times()[:4])
    assert all(line.exit == (0, 0) for line in pair.play(range(matches)))
    return matches / (perf_counter() - start), (sum(os.times()[:4]) - before) / matches * 1e3


def starts(times: int) -> float:
    """Return the CPU milliseconds for starting and ending two Python bots without a referee."""
    before = sum(os.times()[:4])
    for _ in range(2 * times):
        ended = subprocess.run([PYTHON, "-S", "-E", "-c", PLAIN], input=b"game\n0\nend\n", capture_output=True)
        assert ended.returncode == 0
    return (sum(os.times()[:4]) - before) / times * 1e3


def main() -> None:
    """Print everything as medians of several rounds, since other work on the machine varies."""
    print(f"load {os.getloadavg()[0]:.1f} on {len(available_cores())} cores")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        command = (PYTHON, "-S", "-E", "-c", STAYS)
        one, other = (Channel(partial(DirectProcess, command, folder, {})) for _ in range(2))
        table = MatchTable((one, other))
        try:
            node("kuhn_poker", table, 100)
            for game in GAMES:
                pairs = [(ping_pong(2000), node(game, table, 2000)) for _ in range(ROUNDS)]
                for which, what in enumerate(("in total", "in our process")):
                    ping, cost = (median(values[which] for values in both) for both in zip(*pairs, strict=True))
                    ratio = median(cost[which] / ping[which] for ping, cost in pairs)
                    print(f"{game}: {cost:.0f} us per node, ping-pong {ping:.0f} us, ratio {ratio:.2f}, {what}")
        finally:
            one.shut()
            other.shut()
        for game in GAMES:
            rates = [(*restarts(folder, game, 30), starts(30)) for _ in range(3)]
            rate, work, bare = (
                max(rate[0] for rate in rates),
                min(rate[1] for rate in rates),
                min(rate[2] for rate in rates),
            )
            print(
                f"{game}: {rate:.0f} matches/s with restarts, {work:.1f} ms of CPU per match, including "
                f"{bare:.1f} for two bare starts of Python (best of {len(rates)})"
            )
    print(OLD)
    print(f"load {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
