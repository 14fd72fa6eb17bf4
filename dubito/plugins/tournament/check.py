"""Test a bot against misbehaving opponents and the protocol's requirements, or play its qualification."""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Any, Final

from dubito.plugins.tournament import partners
from dubito.plugins.tournament.log import Log, MatchLine
from dubito.plugins.tournament.plan import Tournament, checked_config
from dubito.plugins.tournament.programs import Program
from dubito.plugins.tournament.rules import Limits
from dubito.plugins.tournament.standings import standings
from dubito.plugins.tournament.tournament import hold
from dubito.stats.rates import Rate

PARTNERS: Final = {
    "random": "answers at random",
    "slow": f"takes {partners.SLOW:g} s per answer",
    "silent": "never answers",
    "rude": "answers nonsense",
    "chatty": "talks out of turn",
    "gone": "leaves when it is asked",
}


@dataclass(frozen=True, slots=True)
class Finding:
    """A requirement of the protocol."""

    what: str
    # Descriptions of the violations.
    wrong: Sequence[str]
    # Whether the bot got far enough to test it.
    seen: bool = True


def partner(kind: str) -> Program:
    return Program(kind, (sys.executable, "-S", "-E", partners.__file__, kind), Path.cwd())


def trial_results(
    bot: Program,
    kinds: Sequence[str],
    folder: Path,
    content: dict[str, Any],
    say: Callable[[str], None],
    progress: Callable[[int], None] = lambda _: None,
) -> Log:
    bots = (bot, *(partner(kind) for kind in kinds))
    config = checked_config({**content, "bots": {one.name: list(one.command) for one in bots}}, "the trial", {})
    return hold(Tournament(config, bots), folder, say, progress, only=0)


def findings(log: Log, seconds: float) -> list[Finding]:
    """Check the first bot in the log against all requirements. `seconds` is the time limit of a move."""
    lines = [line for pairing in log.pairings() if 0 in pairing.bots for line in log.lines(pairing)]
    name, most = log.bots[0], Limits().strikes

    def where(wrong: Callable[[MatchLine, int], str | None]) -> list[str]:
        found = []
        for line in lines:
            seat = line.seats.index(name)
            if (said := wrong(line, seat)) is not None:
                found.append(f"{line.game}, seat {seat}, against {line.seats[1 - seat]}: {said}")
        return found

    def struck(kind: str) -> Callable[[MatchLine, int], str | None]:
        def wrong(line: MatchLine, seat: int) -> str | None:
            said = [repr(strike.said) for strike in line.strikes if strike.seat == seat and strike.kind == kind]
            return f"{kind} {', '.join(one for one in said if one != repr(''))}".strip() if said else None

        return wrong

    def exit_error(line: MatchLine, seat: int) -> str | None:
        return None if line.exit[seat] == 0 or line.shut_down(seat, most) else f"ended with {line.exit[seat]}"

    def error_output(line: MatchLine, seat: int) -> str | None:
        text = line.stderr[seat].strip().splitlines()
        return text[-1] if text and line.failed(seat) else None

    answered = any(line.times.think[line.seats.index(name)] for line in lines)
    stayed = any(not line.shut_down(line.seats.index(name), most) for line in lines)
    return [
        Finding("starts, and runs until the end of the match", where(error_output) + where(struck("crash"))),
        Finding(f"answers within {seconds:g} s", where(struck("overrun")), answered),
        Finding("answers with listed actions", where(struck("illegal")), answered),
        Finding("prints nothing when it is not its turn", where(struck("ponder")), answered),
        Finding("exits by itself after the last line, with code 0", where(exit_error), stayed),
    ]


@dataclass(frozen=True, slots=True)
class Qualification:
    """A bot's matches against the random one in one game."""

    game: str
    matches: int
    mean: Rate
    disqualified: bool

    def passed(self, lower_bound: bool) -> bool:
        least = self.mean.low if lower_bound else self.mean.value
        return not self.disqualified and least is not None and least > 0


def score_in_words(mean: Rate) -> str:
    known = isfinite(mean.low)
    return f"{mean.value:+.3f}" + (f" [{mean.low:+.3f}, {mean.high:+.3f}]" if known else ", too few for an interval")


def qualifications(log: Log) -> list[Qualification]:
    result = standings(log, resamples=0)
    return [
        Qualification(game.name, game.conduct[0].matches, game.meetings[0, 1].interval, 0 in result.disqualified)
        for game in result.games
    ]
