"""A bot tried out: against partners that misbehave, on a list of what the protocol asks, and for the qualification."""

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
    "slow": f"takes {partners.SLOW:g} s an answer",
    "silent": "never answers",
    "rude": "answers nonsense",
    "chatty": "talks out of turn",
    "gone": "leaves when it is asked",
}


@dataclass(frozen=True, slots=True)
class Finding:
    """A point of the conformance list."""

    what: str
    wrong: Sequence[str]  # where it does not hold; empty if it does
    seen: bool = True  # whether the bot came so far as to show it


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
    """What the log says of its first bot, point by point; `seconds` is what a move may take."""
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

    def ended(line: MatchLine, seat: int) -> str | None:
        return None if line.exit[seat] == 0 or line.shut_down(seat, most) else f"ended with {line.exit[seat]}"

    def wrote(line: MatchLine, seat: int) -> str | None:
        text = line.stderr[seat].strip().splitlines()
        return text[-1] if text and line.failed(seat) else None

    answered = any(line.times.think[line.seats.index(name)] for line in lines)
    stayed = any(not line.shut_down(line.seats.index(name), most) for line in lines)
    return [
        Finding("it starts, and is there when it is asked", where(wrote) + where(struck("crash"))),
        Finding(f"it answers within {seconds:g} s", where(struck("overrun")), answered),
        Finding("its answers are actions that were listed", where(struck("illegal")), answered),
        Finding("it says nothing when it is not asked", where(struck("ponder")), answered),
        Finding("it ends by itself after the last line, with exit code 0", where(ended), stayed),
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
    return f"{mean.value:+.3f}" + (f" [{mean.low:+.3f}, {mean.high:+.3f}]" if known else ", no interval of so few")


def qualifications(log: Log) -> list[Qualification]:
    result = standings(log, resamples=0)
    return [
        Qualification(game.name, game.conduct[0].matches, game.meetings[0, 1].interval, 0 in result.disqualified)
        for game in result.games
    ]
