"""`dubito games` and `dubito bots`: list what is available. `dubito house`: serve the built-in fake models."""

import signal
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dubito.cli.main import LazyListing
from dubito.cli.options import game_option, games_path_option, given_permits, json_option, program_options
from dubito.cli.output import GamesProgress, note, print_document, say, table
from dubito.errors import one_line
from dubito.game import Family, Game
from dubito.game.find import find_bots, package_of, usable_games

if TYPE_CHECKING:
    from dubito.report.documents import GamesObject


@click.group(cls=LazyListing, places={}, invoke_without_command=True)
@click.option("--openspiel", is_flag=True, help="List OpenSpiel's games, and why some cannot be played.")
@games_path_option
@json_option
@click.pass_context
def games(context: click.Context, openspiel: bool, as_json: bool) -> None:
    """List the games, or check your own game."""
    if context.invoked_subcommand is not None:
        return
    here = Path.cwd()
    games, faults = usable_games(here)
    families = [family for family in games if isinstance(family, Family)]
    origins = {game.name: _origin(game, here) for game in games if isinstance(game, Game)}
    if as_json:
        print_document(_games_object(games, origins, openspiel))
    elif openspiel:
        _print_members(next(family for family in families if family.name == "openspiel"))
    else:
        rows = [[game.name, _format_seats(game.seats), game.summary] for game in games if isinstance(game, Game)]
        more = [[f"{family.name}:NAME", "", family.summary] for family in families]
        headers = ["game", "players", "description"]
        # Only shown if a game is from another folder or an installed package.
        if any(origin and origin != f"games/{name}" for name, origin in origins.items()):
            headers.append("from")
            rows, more = [[*row, origins[row[0]] or ""] for row in rows], [[*row, ""] for row in more]
        table(f"{len(rows)} games", headers, [*rows, *more])
    for fault in faults:
        note(f"broken: {fault}")


def _origin(game: Game, here: Path) -> str | None:
    package = package_of(game, here)
    return None if package.is_own else one_line(package.distribution or _relative_path(package.folder, here))


def _games_object(
    listed_games: Sequence[Game | Family], origins: Mapping[str, str | None], openspiel: bool
) -> "GamesObject":
    from dubito.report.documents import GamesObject, ListedGame  # imported late: only --json needs it

    families = [family for family in listed_games if isinstance(family, Family)]
    if openspiel:
        family = next(family for family in families if family.name == "openspiel")
        members = [
            ListedGame(name=f"{family.name}:{one.name}", seats=one.seats, summary=one.about, why_not=one.why_not)
            for one in family.members()
        ]
        return GamesObject(games=members)
    games = [
        ListedGame(name=game.name, seats=game.seats, summary=game.summary, origin=origins[game.name])
        for game in listed_games
        if isinstance(game, Game)
    ]
    return GamesObject(
        games=[*games, *(ListedGame(name=f"{one.name}:NAME", seats=None, summary=one.summary) for one in families)]
    )


def _print_members(family: Family) -> None:
    members = [*family.members()]
    playable, barred = ([one for one in members if (one.why_not is None) is here] for here in (True, False))
    rows = [[f"{family.name}:{one.name}", _format_seats(one.seats), one.about] for one in playable]
    table(f"{len(rows)} games of {family.name} can be played", ["game", "players", "hidden information"], rows)
    reasons = Counter(one.why_not or "" for one in barred)
    groups = [[why, ", ".join(one.name for one in barred if one.why_not == why)] for why, _ in reasons.most_common()]
    table(f"{len(barred)} cannot be played", ["reason", "games"], groups)
    note(f"put parameters in parentheses: {family.name}:kuhn_poker(players=3); some games require them")


def _format_seats(seats: tuple[int, int]) -> str:
    least, most = seats
    return f"{least}" if least == most else f"{least} to {most}"


@click.group(cls=LazyListing, places={"check": "dubito.cli.lists:check_bot"}, invoke_without_command=True)
@game_option
@json_option
@click.pass_context
def bots(context: click.Context, game: Game, as_json: bool) -> None:
    """List the bots of a game, or check a bot.

    Shows each bot's name, strategy, origin and file, then unfinished bots and broken files.
    """
    if context.invoked_subcommand is not None:
        return
    here = Path.cwd()
    registry = find_bots(here, game.name)
    if as_json:
        from dubito.report.documents import BotsObject, BrokenFile, ListedBot  # imported late: only --json needs it

        document = BotsObject(
            game=registry.game.name,
            bots=[
                ListedBot(
                    name=bot.name,
                    strategy=bot.summary,
                    origin=str(bot.cls.origin),
                    file=_relative_path(bot.file, here),
                    usual=bot.usual,
                    repeatable=bot.repeatable,
                    missing=list(bot.missing),
                )
                for bot in registry.playable()
            ],
            broken=[
                BrokenFile(file=_relative_path(broken.file, here), reason=broken.reason) for broken in registry.broken
            ],
        )
        print_document(document)
        return
    rows = []
    for bot in registry.playable():
        strategy = (
            bot.summary if bot.repeatable else f"{bot.summary} (not repeatable: uses randomness that cannot be seeded)"
        )
        if bot.cls.interface:
            strategy += f" ({bot.cls.interface})"
        if not bot.usual:
            strategy += " (plays only if named)"
        rows.append([bot.name, strategy, one_line(str(bot.cls.origin)), _relative_path(bot.file, here)])
    table(f"{len(rows)} bots", ["bot", "strategy", "origin", "file"], rows)
    for _, bot in sorted(registry.bots.items()):
        if bot.missing:
            say(f"unfinished: {_relative_path(bot.file, here)}: missing {', '.join(bot.missing)}")
    if replacements := registry.describe_replaced(registry.replaced):
        say(f"note: {replacements}")
    for broken in registry.broken:
        say(f"broken: {_relative_path(broken.file, here)}: {broken.reason}")


@click.command("check")
@click.argument("bot", metavar="NAME|FILE|COMMAND")
@game_option
@program_options
def check_bot(bot: str, game: Game) -> int:
    """Check a bot and print one line for each problem.

    Plays some games with a bot, or with a program: a file such as ./my_bot, or a quoted command. Checks its answers,
    whether the same seed gives the same game, and what a Python bot imports. The first late answer ends the check.
    """
    # Imported late: listing bots does not need it.
    from dubito.workshop.bot_check import count_check_games, resolve_bot, run_bot_check

    registry = find_bots(Path.cwd(), game.name)
    spec = resolve_bot(bot, registry)
    with GamesProgress(count_check_games(game), quiet=False, clock=time.monotonic) as progress:
        progress(0)
        games = run_bot_check(spec, registry, given_permits(), progress)
    for problem, place in games.findings.items():
        say(f"{one_line(place)}: {one_line(problem)}")
    moments = ", ".join(f"{name} {count:,}" for name, count in sorted(games.moments.items()))
    turns = f"{games.turns:,} turns{f' ({moments})' if moments else ''}"
    if not games.findings:
        say(f"{one_line(spec.name)} passed all checks in {turns}.")
    return 1 if games.findings else 0


def _relative_path(file: Path, here: Path) -> str:
    return str(file.relative_to(here) if file.is_relative_to(here) else file)


@click.command()
@click.option("--port", default=8000, show_default=True, help="Port on 127.0.0.1; 0 picks a free one.")
@click.option("--latency", default=0.0, show_default=True, help="Delay added to each model call, in seconds.")
@click.option("--faults", help="Simulated faults, as NAME:SHARE,NAME:SHARE, such as storm:0.3. See docs/house.md.")
@click.option("--log", type=click.Path(path_type=Path), help="Append each call to this file, as JSON lines.")
@games_path_option
def house(port: int, latency: float, faults: str | None, log: Path | None) -> None:
    """Serve the built-in fake models over HTTP.

    The server is for tests and demos. It speaks the OpenAI and Anthropic protocols on loopback.
    """
    # Imported late: no other command needs a web server.
    from dubito.house.faults import Faults
    from dubito.house.server import House

    simulated = Faults.parse(faults) if faults is not None else None
    with _ctrl_c_interrupts(), House(port, latency=latency, faults=simulated, log=log) as served:
        say(f"OpenAI protocol:    {served.openai_base_url}  OpenAI(base_url=..., api_key='any')")
        say(f"Anthropic protocol: {served.anthropic_base_url}  Anthropic(base_url=..., api_key='any')")
        say(f"fake models: {', '.join(served.models)}")
        if faults is not None:
            say(f"simulated faults: {faults}")
        with suppress(KeyboardInterrupt):
            say("Press Ctrl-C to stop")
            while True:
                time.sleep(3600)
    say(f"{len(served.calls):,} calls answered")


@contextmanager
def _ctrl_c_interrupts() -> Iterator[None]:
    """Handle Ctrl-C even if the shell ignores it, as it does for background commands."""
    previous_handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous_handler)
