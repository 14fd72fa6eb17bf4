"""`dubito tournament check` and `qualify`: a bot tried out before it enters."""

import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import click

from dubito.cli.output import GamesProgress, note, say, table
from dubito.errors import one_line

_SHOWN = 3  # places where a point does not hold


def _bot(command: str) -> Any:
    from dubito.referee.programs import bot

    return bot("your-bot", command, Path.cwd(), "your bot")


def _named(games: str) -> list[str]:
    return [name.strip() for name in games.split(",")]


@contextmanager
def _folder() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="dubito-trial-"))
    try:
        yield folder
    finally:
        with suppress(RecursionError):  # a bot may have made folders within folders without end
            shutil.rmtree(folder, ignore_errors=True)


@click.command()
@click.argument("bot")
@click.option("--games", default="kuhn_poker,leduc_poker", show_default=True, metavar="A,B,...", help="Games to try.")
@click.option("--move-seconds", type=float, default=5.0, show_default=True, help="What a move may take.")
@click.option(
    "--prepare-seconds", type=float, default=5.0, show_default=True, help="Extra, to prepare before the first move."
)
def check(bot: str, games: str, **seconds: float) -> int:
    """Try the bot that the command BOT starts against rude, slow and silent partners: in a minute you know whether it
    keeps to the protocol. Exit code 1 if it does not."""
    from dubito.referee.check import PARTNERS, findings, trial_results

    content = {"games": _named(games), "matches": 1, **seconds}
    with _folder() as folder:
        log = trial_results(_bot(bot), list(PARTNERS), folder, content, note)
        found = findings(log, seconds["move_seconds"])
        lines = [line for pairing in log.pairings() if 0 in pairing.bots for line in log.lines(pairing)]
        think = [time for line in lines for time in line.times.think[line.seats.index("your-bot")]]
    partners = ", ".join(f"one {what}" for what in PARTNERS.values())
    say(f"{len(lines)} matches against {len(PARTNERS)} partners: {partners}")
    for finding in found:
        verdict = "FAILED" if finding.wrong else "ok" if finding.seen else "not seen"
        say(f"{verdict:8}  {finding.what}")
        for place in finding.wrong[:_SHOWN]:
            say(f"          {one_line(place, 200)}")
        if len(finding.wrong) > _SHOWN:
            say(f"          and {len(finding.wrong) - _SHOWN} more")
    if think:
        say(f"slowest of {len(think)} answers: {max(think) / 1e6:.3f} s")
    return int(any(finding.wrong for finding in found))


@click.command()
@click.argument("bot")
@click.option("--games", default="gin_rummy,rbc", show_default=True, metavar="A,B,...", help="Games to qualify in.")
@click.option("--matches", type=int, default=50, show_default=True, help="Matches from each position.")
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the matches.")
@click.option("--chance-seconds", type=float, default=0.2, show_default=True, help="What each draw of chance takes.")
@click.option("--lower-bound", is_flag=True, help="Ask that the interval's lower end is above zero, not the mean.")
@click.option("--quiet", is_flag=True, help="Hide the progress line.")
def qualify(bot: str, games: str, lower_bound: bool, quiet: bool, **flags: Any) -> int:
    """Play the qualification of the bot that the command BOT starts: 50 + 50 matches against the random bot in each
    game, with a mean score above zero. Exit code 1 if it does not qualify.

    The random bot itself passes about every second time: look at the interval."""
    from dubito.referee.check import qualifications, score_in_words, trial_results

    named = _named(games)
    with (
        _folder() as folder,
        GamesProgress(2 * flags["matches"] * len(named), quiet, time.monotonic, unit="matches") as progress,
    ):
        log = trial_results(_bot(bot), ["random"], folder, {"games": named, **flags}, note, progress)
        found = qualifications(log)
    rows = [
        [one.game, f"{one.matches}", score_in_words(one.mean), "yes" if one.passed(lower_bound) else "no"]
        for one in found
    ]
    table("Against the random bot", ["game", "matches", "mean score [95 % interval]", "above zero"], rows)
    for sentence in (
        f"{one.game}: more than 1 % of the matches overrun or crashed" for one in found if one.disqualified
    ):
        note(f"warning: {sentence}")
    qualified = all(one.passed(lower_bound) for one in found)
    say("qualified" if qualified else "not qualified")
    return int(not qualified)
