"""`dubito games check` checks a game; `dubito games audit` and `dubito prompts audit` only look for leaks."""

from collections.abc import Sequence
from pathlib import Path

import click
from click.core import ParameterSource

from dubito.cli.options import game_option, games_path_option
from dubito.cli.output import say
from dubito.errors import UsageError, one_line
from dubito.game import Game
from dubito.game.find import find_game
from dubito.llm.prompts import game_of_folder, load_prompt
from dubito.llm.templates import DESCRIPTION
from dubito.packages import MODULE
from dubito.plugins.gamecheck.audit import Audit
from dubito.plugins.gamecheck.conformance import find_flaws, run_probes
from dubito.plugins.gamecheck.subject import Subject


@click.command()
@click.argument("game", metavar="NAME|FOLDER")
@click.option("--quick", is_flag=True, help="Skip the checks that start other processes: runs, replays and models.")
@games_path_option
def check(game: str, quick: bool) -> int:
    """Check a game and print one line for each problem.

    Bots play some games to check rules, endings, records, facts, prompts and sentences, and to find leaks of hidden
    information. Lines that start with `look` may be intended.
    """
    folder = Path(game)
    here, name = (folder.resolve().parents[1], folder.resolve().name) if folder.is_dir() else (Path.cwd(), game)
    subject = Subject(find_game(name, here, flawed=True), here)
    problems = lines = 0
    for flaw in find_flaws(subject, quick):
        say(f"{'' if flaw.sure else 'look: '}{flaw.file}: {flaw.sentence}")
        problems, lines = problems + flaw.sure, lines + 1
    if not problems:
        to_check = f" Check the {lines} line{'' if lines == 1 else 's'} above." if lines else ""
        say(f"{subject.game.name} passed all checks, in {len(subject.deals)} games.{to_check}")
    return 1 if problems else 0


@click.command("audit")
@click.argument("names", metavar="GAME...", nargs=-1, required=True)
@games_path_option
def audit_games(names: Sequence[str]) -> int:
    """Check a game and its prompts for leaks of hidden information.

    GAME is a name or a folder. Two deals that look the same to a player must produce the same request. Each line of
    output names the template's line, the first byte that differs and the leaked fact or observation. Lines that start
    with `look` may be intended. The exit code is 1 if there is a leak.
    """
    return max([_print_leaks(_audit_game(name)) for name in names])


def _audit_game(name: str) -> Audit:
    folder, here = Path(name), Path.cwd()
    if (folder / MODULE).is_file():
        here, name = folder.resolve().parents[1], folder.resolve().name
    return Audit(Subject(find_game(name, here), here))


@click.command("audit")
@click.argument("names", metavar="PROMPT...", nargs=-1, required=True)
@game_option
def audit_prompts(names: Sequence[str], game: Game) -> int:
    """Check a prompt for leaks of hidden information.

    PROMPT is a name or a folder. Two deals that look the same to a player must produce the same request. Each line of
    output names the template's line, the first byte that differs and the leaked fact. Lines that start with `look` may
    be intended. The exit code is 1 if there is a leak.
    """
    is_given = click.get_current_context().get_parameter_source("game") is not ParameterSource.DEFAULT
    return max([_print_leaks(_audit_prompt(name, game, is_given)) for name in names])


def _audit_prompt(name: str, game: Game, is_given: bool) -> Audit:
    """Return a prompt's audit for `game` if --game was given, else for the game its folder belongs to."""
    folder, here = Path(name), Path.cwd()
    if (folder / DESCRIPTION).is_file():
        game = game if is_given else game_of_folder(folder, here)
        name = f"./{name}"
    return Audit(Subject(game, here), [load_prompt(name, here, game)])


def _print_leaks(audit: Audit) -> int:
    """Print the leaks and return the exit code."""
    game = audit.subject.game
    if not audit.subject.registry.hand_written():
        raise UsageError(
            f"no bot plays {game.name}, so there are no games to check",
            hint=f"add a bot to bots/manual/{game.folder}",
        )
    leaks = lines = 0
    for flaw in run_probes(audit.subject, (audit.leaks,)):
        say(f"{'' if flaw.sure else 'look: '}{flaw.file}: {flaw.sentence}")
        leaks, lines = leaks + flaw.sure, lines + 1
    if not leaks:
        say(_describe_success(audit, lines))
    return 1 if leaks else 0


def _describe_success(audit: Audit, lines: int) -> str:
    """Describe what was compared if no leak was found. `lines` counts findings that may be intended."""
    game, names = audit.subject.game.name, [one_line(prompt.name) for prompt in audit.prompts]
    prompts = f"prompt{'' if len(names) == 1 else 's'} {', '.join(names)}" if names else "no prompts"
    subject = f"{game}, {prompts}" if audit.only is None else f"{prompts} of {game}"
    if not audit.turns:
        return f"{subject}: nothing was compared because no two deals look the same to a player."
    check = f" Check the {lines} line{'' if lines == 1 else 's'} above." if lines else ""
    return f"{subject}: no leaks in {audit.turns:,} turns, each compared across two deals that look the same.{check}"
