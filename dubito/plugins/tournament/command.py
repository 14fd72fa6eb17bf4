"""`dubito tournament`: hold the Hidden Information Games tournament.

`play` and `rank` play a tournament and print its result. `replay` verifies its log or prints a match. `check` and
`qualify` test a bot before it enters.
"""

import shutil
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from dubito.cli.main import LazyListing
from dubito.cli.options import allow_unsandboxed_option, given_permits, program_options
from dubito.cli.output import GamesProgress, note, say, show, table
from dubito.commands import build_command
from dubito.errors import one_line
from dubito.sandbox.consent import require_consent

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


@click.group(cls=LazyListing, places=_PLACES)
def tournament() -> None:
    """Hold a tournament of programs at games of hidden information."""


@click.command()
@click.argument("config", type=click.Path(path_type=Path))
@click.option("--matches", type=int, metavar="N", help="Matches per pair and position. [default: 2500]")
@click.option("--seed", type=click.IntRange(0), metavar="N", help="Seed of the tournament. [default: 0]")
@click.option("--chance-seconds", type=float, metavar="S", help="Delay per chance event. [default: 0.2]")
@click.option("--pairs", type=int, metavar="N", help="Pairs to play in parallel. [default: one per two cores]")
@click.option("--output", metavar="FOLDER", help="The tournament's folder. [default: tournaments/NAME]")
@click.option("--quiet", is_flag=True, help="Hide the progress line.")
@program_options
def play(config: Path, quiet: bool, **flags: Any) -> int:
    """Play the tournament in a config and print its result.

    CONFIG is a YAML file; flags override it. The same command resumes an interrupted tournament.
    """
    from dubito.plugins.tournament import tournament
    from dubito.plugins.tournament.plan import read_tournament

    plan = read_tournament(config, {key: value for key, value in flags.items() if value is not None})
    permits = given_permits()
    require_consent(plan.bots, permits)
    folder = Path(plan.config.output or Path("tournaments") / config.stem)
    bots = len(plan.bots)
    total = len(plan.config.games) * bots * (bots - 1) * plan.config.matches
    for sentence in tournament.describe_deviations(plan.config):
        note(f"note: {sentence}")
    with GamesProgress(total, quiet, time.monotonic, unit="matches") as progress:
        tournament.play_tournament(plan, folder, note, progress, allow_unsandboxed=permits.unsandboxed)
    code = _print_result(folder, tables=False)
    say(f"tournament: {folder}")
    say(f"scores, ballots and rounds: {build_command('tournament', 'rank', folder)}")
    return code


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--report/--no-report", default=True, show_default=True, help="Write the result as HTML pages.")
def rank(folder: Path, report: bool) -> int:
    """Print the result of a tournament and write its pages.

    Prints scores, ballots, rounds, ties and the final order, and the share of 1,000 resamples of the matches in which
    each bot keeps its place. FOLDER can also be a table of scores in CSV or YAML, for which no pages are written.
    """
    if not folder.is_file():
        return _print_result(folder, report)
    from dubito.plugins.tournament.pages import result_table
    from dubito.plugins.tournament.standings import standings_of_table

    result = standings_of_table(folder)
    _show_games(result, result.warnings({"identity": {}}))
    show(result_table(result))
    return 0


def _print_result(folder: Path, report: bool = True, tables: bool = True) -> int:
    """Print the final order, or all tables, and return the exit code."""
    from dubito.plugins.tournament import log, pages
    from dubito.plugins.tournament.standings import compute_standings

    tournament_log = log.open_log(folder)
    manifest = log.read_log_manifest(folder)
    result = compute_standings(tournament_log)
    _show_games(result, [*result.damaged, *result.warnings(manifest)], tables)
    show(pages.conduct_table(result) if tables else None, pages.result_table(result))
    if report:
        from dubito.plugins.tournament.pages import write_result_pages

        say(f"report: {write_result_pages(folder, tournament_log, result, manifest)}")
    return 0


def _show_games(result: "Standings", warnings: Sequence[str], tables: bool = True) -> None:
    """Print the warnings and, with `tables`, every game's scores, ballots and rounds."""
    from dubito.plugins.tournament import pages

    for sentence in warnings:
        note(f"warning: {sentence}")
    for number, game in enumerate(result.games if tables else ()):
        show(pages.cross_table(result, number))
        if game.ranking is not None and game.ranking.places:
            show(pages.ballot_table(result, number), pages.rounds_table(result, number))


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--match", type=int, metavar="K", help="Print match K, numbered over all pairs in playing order.")
def replay(folder: Path, match: int | None) -> int:
    """Verify every match of a tournament by replaying it.

    Chance events are drawn from the seeds, actions are read from the log, and returns are compared. The exit code is 1
    if anything differs.
    """
    from dubito.plugins.tournament import log
    from dubito.plugins.tournament.plan import seed_source
    from dubito.plugins.tournament.replay import describe_match, find_match, find_match_difference, list_differences
    from dubito.plugins.tournament.rules import load

    tournament_log = log.open_log(folder)
    if match is not None:
        line = find_match(tournament_log, match)
        root = load(line.game).new_initial_state()
        if difference := find_match_difference(root, line):
            say(f"differs: {difference}")
            return 1
        for who, what in describe_match(root, line):
            say(f"{who}: {what}")
        return 0
    matches = 0
    identity = log.read_log_manifest(folder)["identity"]
    for line, difference in list_differences(tournament_log, seed_source(identity, log.read_secret(folder))):
        matches += 1
        if difference is not None:
            say(f"differs: {line.game}, {' against '.join(sorted(line.seats))}, match {line.match}: {difference}")
            return 1
    for sentence in tournament_log.damaged:
        note(f"warning: {sentence}")
    say(f"identical: {matches:,} matches")
    return 0


_MAX_VIOLATIONS_SHOWN = 3


def _load_bot(command: str) -> Any:
    from dubito.sandbox.programs import load_bot

    return load_bot("your-bot", command, Path.cwd(), "your bot")


def _split_names(games: str) -> list[str]:
    return [name.strip() for name in games.split(",")]


@contextmanager
def _temporary_folder() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="dubito-trial-"))
    try:
        yield folder
    finally:
        # A bot may have created very deeply nested folders.
        with suppress(RecursionError):
            shutil.rmtree(folder, ignore_errors=True)


@click.command()
@click.argument("bot")
@click.option("--games", default="kuhn_poker,leduc_poker", show_default=True, metavar="A,B,...", help="Games to try.")
@click.option("--move-seconds", type=float, default=5.0, show_default=True, help="Time limit per move.")
@click.option(
    "--prepare-seconds", type=float, default=5.0, show_default=True, help="Additional time before the first move."
)
@allow_unsandboxed_option
def check(bot: str, games: str, **seconds: float) -> int:
    """Test a bot program against misbehaving opponents.

    BOT is the command that starts the program. The test takes about a minute. The exit code is 1 if the bot violates
    the protocol.
    """
    from dubito.plugins.tournament.check import PARTNERS, check_protocol, play_trial

    content = {"games": _split_names(games), "matches": 1, **seconds}
    with _temporary_folder() as folder:
        log = play_trial(
            _load_bot(bot), list(PARTNERS), folder, content, note, allow_unsandboxed=given_permits().unsandboxed
        )
        findings = check_protocol(log, seconds["move_seconds"])
        lines = [line for pairing in log.pairings() if 0 in pairing.bots for line in log.lines(pairing)]
        think = [time for line in lines for time in line.times.think[line.seats.index("your-bot")]]
    partners = ", ".join(f"one that {what}" for what in PARTNERS.values())
    say(f"{len(lines)} matches against {len(PARTNERS)} opponents: {partners}")
    for finding in findings:
        verdict = "FAILED" if finding.violations else "ok" if finding.is_tested else "skipped"
        say(f"{verdict:8}  {finding.requirement}")
        for place in finding.violations[:_MAX_VIOLATIONS_SHOWN]:
            say(f"          {one_line(place, 200)}")
        if len(finding.violations) > _MAX_VIOLATIONS_SHOWN:
            say(f"          and {len(finding.violations) - _MAX_VIOLATIONS_SHOWN} more")
    if think:
        say(f"slowest of {len(think)} answers: {max(think) / 1e6:.3f} s")
    return int(any(finding.violations for finding in findings))


@click.command()
@click.argument("bot")
@click.option(
    "--games", default="gin_rummy,rbc", show_default=True, metavar="A,B,...", help="Games of the qualification."
)
@click.option("--matches", type=int, default=50, show_default=True, help="Matches per position.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Seed of the matches.")
@click.option("--chance-seconds", type=float, default=0.2, show_default=True, help="Delay of each chance event.")
@click.option(
    "--lower-bound", is_flag=True, help="Require that the interval's lower end, not only the mean, is above zero."
)
@click.option("--quiet", is_flag=True, help="Hide the progress line.")
@allow_unsandboxed_option
def qualify(bot: str, games: str, lower_bound: bool, quiet: bool, **flags: Any) -> int:
    """Play a bot's qualification against the random bot.

    BOT is the command that starts the bot. It plays 50 + 50 matches per game and needs a mean score above zero. The
    exit code is 1 if it does not qualify. The random bot qualifies about half of the time, so look at the interval.
    """
    from dubito.plugins.tournament.check import format_score, list_qualifications, play_trial

    game_names = _split_names(games)
    with (
        _temporary_folder() as folder,
        GamesProgress(2 * flags["matches"] * len(game_names), quiet, time.monotonic, unit="matches") as progress,
    ):
        content, unsandboxed = {"games": game_names, **flags}, given_permits().unsandboxed
        log = play_trial(_load_bot(bot), ["random"], folder, content, note, progress, allow_unsandboxed=unsandboxed)
        results = list_qualifications(log)
    rows = [
        [one.game, f"{one.matches}", format_score(one.mean), "yes" if one.is_passed(lower_bound) else "no"]
        for one in results
    ]
    table("Against the random bot", ["game", "matches", "mean score [95 % CI]", "above zero"], rows)
    for one in results:
        if one.disqualified:
            note(f"warning: {one.game}: more than 1 % of the matches were overrun or crashed")
    is_qualified = all(one.is_passed(lower_bound) for one in results)
    say("qualified" if is_qualified else "not qualified")
    return int(not is_qualified)
