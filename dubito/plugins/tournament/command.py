"""`dubito tournament`: the Hidden Information Games tournament, from a bot's first match to the final order.

`dubito tournament play` and `rank`: a tournament, from its config to its final order, which is read from its log.

`dubito tournament replay`: every match of a log played again, or one told in words.

`dubito tournament check` and `qualify`: a bot tried out before it enters.
"""

import shlex
import shutil
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from dubito.cli.main import LateListing
from dubito.cli.output import GamesProgress, note, say, show, table
from dubito.errors import one_line

if TYPE_CHECKING:
    from dubito.plugins.tournament.standings import Standings

_PLACES: Final = {
    "check": "dubito.plugins.tournament.command:check",
    "qualify": "dubito.plugins.tournament.command:qualify",
    "play": "dubito.plugins.tournament.command:play",
    "rank": "dubito.plugins.tournament.command:rank",
    "replay": "dubito.plugins.tournament.command:replay",
    "bot": "dubito.plugins.tournament.bot_command:bot",
}


@click.group(cls=LateListing, places=_PLACES)
def tournament() -> None:
    """Hold a tournament of programs at games of hidden information."""


@click.command()
@click.argument("config", type=click.Path(path_type=Path))
@click.option("--matches", type=int, metavar="N", help="Matches of each pair from each position. [default: 2500]")
@click.option("--seed", type=click.IntRange(0), metavar="N", help="Seed of the tournament. [default: 0]")
@click.option("--chance-seconds", type=float, metavar="S", help="What each draw of chance takes. [default: 0.2]")
@click.option("--pairs", type=int, metavar="N", help="Pairs that play at once. [default: one for two cores]")
@click.option("--output", metavar="FOLDER", help="The tournament's folder. [default: tournaments/NAME]")
@click.option("--quiet", is_flag=True, help="Hide the progress line.")
def play(config: Path, quiet: bool, **flags: Any) -> int:
    """Play the tournament in a config and print its result.

    CONFIG is a YAML file; flags override it. The same command resumes a tournament that was stopped.
    """
    from dubito.plugins.tournament import tournament
    from dubito.plugins.tournament.plan import tournament as read

    told = read(config, {key: value for key, value in flags.items() if value is not None})
    folder = Path(told.config.output or Path("tournaments") / config.stem)
    bots = len(told.bots)
    total = len(told.config.games) * bots * (bots - 1) * told.config.matches
    for sentence in tournament.notes(told.config):
        note(f"note: {sentence}")
    with GamesProgress(total, quiet, time.monotonic, unit="matches") as progress:
        tournament.hold(told, folder, note, progress)
    from dubito.cli.summary import command_prefix

    code = _print_result(folder, tables=False)
    say(f"tournament: {folder}")
    say(f"scores, ballots and rounds: {command_prefix()} tournament rank {shlex.quote(str(folder))}")
    return code


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--report/--no-report", default=True, show_default=True, help="Write the result as pages too.")
def rank(folder: Path, report: bool) -> int:
    """Print the result of a tournament and write its pages.

    Printed are scores, ballots, every round and tie, and the final order. FOLDER may also be a bare table of scores, in
    CSV or YAML, which gets no pages. Beside each place is how firm it is: in how many of 1,000 resamples of the matches
    a bot keeps it.
    """
    if not folder.is_file():
        return _print_result(folder, report)
    from dubito.plugins.tournament.pages import result_table
    from dubito.plugins.tournament.standings import table_standings

    result = table_standings(folder)
    _show_games(result, result.warnings({"identity": {}}))
    show(result_table(result))
    return 0


def _print_result(folder: Path, report: bool = True, tables: bool = True) -> int:
    """Print it all, or only how it has ended; the exit code."""
    from dubito.plugins.tournament import log, pages
    from dubito.plugins.tournament.standings import standings

    kept = log.opened_log(folder)
    manifest = log.read_log_manifest(folder)
    result = standings(kept)
    _show_games(result, [*result.damaged, *result.warnings(manifest)], tables)
    show(pages.conduct_table(result) if tables else None, pages.result_table(result))
    if report:
        from dubito.plugins.tournament.pages import write_result_pages

        say(f"report: {write_result_pages(folder, kept, result, manifest)}")
    return 0


def _show_games(result: "Standings", warnings: Sequence[str], tables: bool = True) -> None:
    """Every game's scores, ballots and rounds."""
    from dubito.plugins.tournament import pages

    for sentence in warnings:
        note(f"warning: {sentence}")
    for number, game in enumerate(result.games if tables else ()):
        show(pages.cross_table(result, number))
        if game.ranking is not None and game.ranking.places:
            show(pages.ballot_table(result, number), pages.rounds_table(result, number))


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--match", type=int, metavar="K", help="Tell match K in words, counted over all pairs as they play.")
def replay(folder: Path, match: int | None) -> int:
    """Play every match again without its bots and report any difference.

    Draws come from their seeds, actions from the log; returns are compared. Exit code 1 if anything differs.
    """
    from dubito.plugins.tournament import log
    from dubito.plugins.tournament.plan import source
    from dubito.plugins.tournament.replay import difference_of_match, log_differences, match_in_words, match_numbered
    from dubito.plugins.tournament.rules import load

    kept = log.opened_log(folder)
    if match is not None:
        line = match_numbered(kept, match)
        root = load(line.game).new_initial_state()
        if different := difference_of_match(root, line):
            say(f"differs: {different}")
            return 1
        for sentence in match_in_words(root, line):
            say(sentence)
        return 0
    matches = 0
    identity = log.read_log_manifest(folder)["identity"]
    for line, wrong in log_differences(kept, source(identity, log.read_secret(folder))):
        matches += 1
        if wrong is not None:
            say(f"differs: {line.game}, {' against '.join(sorted(line.seats))}, match {line.match}: {wrong}")
            return 1
    for sentence in kept.damaged:
        note(f"warning: {sentence}")
    say(f"identical: {matches:,} matches, their draws and returns")
    return 0


_SHOWN = 3  # places where a point does not hold


def _bot(command: str) -> Any:
    from dubito.plugins.tournament.programs import bot

    return bot("your-bot", command, Path.cwd(), "your bot")


def _names_in(games: str) -> list[str]:
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
    """Try a bot against rude, slow and silent partners.

    BOT is the command that starts it. After a minute you know whether it keeps to the protocol. Exit code 1 if it does
    not.
    """
    from dubito.plugins.tournament.check import PARTNERS, findings, trial_results

    content = {"games": _names_in(games), "matches": 1, **seconds}
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
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Seed of the matches.")
@click.option("--chance-seconds", type=float, default=0.2, show_default=True, help="What each draw of chance takes.")
@click.option("--lower-bound", is_flag=True, help="Ask that the interval's lower end is above zero, not the mean.")
@click.option("--quiet", is_flag=True, help="Hide the progress line.")
def qualify(bot: str, games: str, lower_bound: bool, quiet: bool, **flags: Any) -> int:
    """Play the qualification of a bot against the random bot.

    BOT is the command that starts it. It plays 50 + 50 matches in each game and needs a mean score above zero. Exit
    code 1 if it does not qualify. The random bot itself passes about half the time: look at the interval.
    """
    from dubito.plugins.tournament.check import qualifications, score_in_words, trial_results

    named = _names_in(games)
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
    table("Against the random bot", ["game", "matches", "mean score [95 % CI]", "above zero"], rows)
    for sentence in (
        f"{one.game}: more than 1 % of the matches overrun or crashed" for one in found if one.disqualified
    ):
        note(f"warning: {sentence}")
    qualified = all(one.passed(lower_bound) for one in found)
    say("qualified" if qualified else "not qualified")
    return int(not qualified)
