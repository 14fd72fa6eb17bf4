"""Test a bot against misbehaving opponents and the protocol's requirements, or play its qualification."""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Any, Final

from dubito.plugins.tournament import partners
from dubito.plugins.tournament.log import Log, MatchLine
from dubito.plugins.tournament.plan import Tournament, validate_config
from dubito.plugins.tournament.rules import Limits
from dubito.plugins.tournament.standings import compute_standings
from dubito.plugins.tournament.tournament import play_tournament
from dubito.sandbox.programs import BotProgram
from dubito.stats.rates import Rate

PARTNERS: Final = {
    "random": "answers at random",
    "slow": f"takes {partners.SLOW:g} s per answer",
    "silent": "never answers",
    "rude": "answers nonsense",
    "chatty": "talks out of turn",
    "gone": "exits when it has to move",
}


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of testing one requirement of the protocol."""

    requirement: str
    violations: Sequence[str]
    # Whether the bot got far enough for this requirement to be tested.
    is_tested: bool = True


def start_partner(kind: str) -> BotProgram:
    return BotProgram(kind, (sys.executable, "-S", "-E", partners.__file__, kind), Path.cwd())


def play_trial(
    bot: BotProgram,
    kinds: Sequence[str],
    folder: Path,
    content: dict[str, Any],
    say: Callable[[str], None],
    progress: Callable[[int], None] = lambda _: None,
    *,
    allow_unsandboxed: bool = False,
) -> Log:
    bots = (bot, *(start_partner(kind) for kind in kinds))
    config = validate_config({**content, "bots": {one.name: list(one.command) for one in bots}}, "the trial", {})
    return play_tournament(Tournament(config, bots), folder, say, progress, 0, allow_unsandboxed=allow_unsandboxed)


def check_protocol(log: Log, seconds: float) -> list[Finding]:
    """Check the first bot in the log against all requirements. `seconds` is the time limit per move."""
    lines = [line for pairing in log.pairings() if 0 in pairing.bots for line in log.lines(pairing)]
    name, max_strikes = log.bots[0], Limits().strikes

    def check(describe: Callable[[MatchLine, int], str | None]) -> list[str]:
        violations = []
        for line in lines:
            seat = line.seats.index(name)
            if (violation := describe(line, seat)) is not None:
                violations.append(f"{line.game}, seat {seat}, against {line.seats[1 - seat]}: {violation}")
        return violations

    def strike_printer(kind: str) -> Callable[[MatchLine, int], str | None]:
        def describe_strikes(line: MatchLine, seat: int) -> str | None:
            lines = [strike.line for strike in line.strikes if strike.seat == seat and strike.kind == kind]
            return f"{kind} {', '.join(repr(one) for one in lines if one)}".strip() if lines else None

        return describe_strikes

    def exit_error(line: MatchLine, seat: int) -> str | None:
        is_expected = line.exit[seat] == 0 or line.is_shut_down(seat, max_strikes)
        return None if is_expected else f"exited with {line.exit[seat]}"

    def error_output(line: MatchLine, seat: int) -> str | None:
        text = line.stderr[seat].strip().splitlines()
        return text[-1] if text and line.has_failed(seat) else None

    has_answered = any(line.times.think[line.seats.index(name)] for line in lines)
    is_complete = any(not line.is_shut_down(line.seats.index(name), max_strikes) for line in lines)
    return [
        Finding(
            "starts, and runs until the end of the match",
            check(error_output) + check(strike_printer("crash")),
        ),
        Finding(f"answers within {seconds:g} s", check(strike_printer("overrun")), has_answered),
        Finding("answers with listed actions", check(strike_printer("illegal")), has_answered),
        Finding("prints nothing when it is not its turn", check(strike_printer("ponder")), has_answered),
        Finding("exits by itself after the last line, with code 0", check(exit_error), is_complete),
    ]


@dataclass(frozen=True, slots=True)
class Qualification:
    """A bot's matches against the random bot in a game."""

    game: str
    matches: int
    mean: Rate
    disqualified: bool

    def is_passed(self, lower_bound: bool) -> bool:
        score = self.mean.low if lower_bound else self.mean.value
        return not self.disqualified and score is not None and score > 0


def format_score(mean: Rate) -> str:
    interval = f" [{mean.low:+.3f}, {mean.high:+.3f}]" if isfinite(mean.low) else ", too few for an interval"
    if mean.low == mean.high:
        interval = ""  # all matches had the same score, which says nothing about the width
    return f"{mean.value:+.3f}{interval}"


def list_qualifications(log: Log) -> list[Qualification]:
    result = compute_standings(log, resamples=0)
    return [
        Qualification(game.name, game.conduct[0].matches, game.meetings[0, 1].interval, 0 in result.disqualified)
        for game in result.games
    ]
