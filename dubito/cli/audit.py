"""`dubito games audit` and `dubito prompts audit`: what a game or a prompt tells a seat that it cannot know."""

from collections.abc import Sequence
from pathlib import Path

import click
from click.core import ParameterSource

from dubito.cli.options import game_option, games_path_option
from dubito.cli.output import say
from dubito.errors import UsageError, one_line
from dubito.game import Game
from dubito.game.find import find_game
from dubito.game.packages import MODULE
from dubito.llm.prompts import game_of_folder, load_prompt
from dubito.llm.templates import DESCRIPTION
from dubito.workshop.audit import Audit
from dubito.workshop.conformance import run_probes
from dubito.workshop.subject import Subject


@click.command("audit")
@click.argument("names", metavar="GAME...", nargs=-1, required=True)
@games_path_option
def audit_games(names: Sequence[str]) -> int:
    """Find what a game or its prompts tell a seat that it cannot know.

    GAME is a name or a folder. Two worlds that look the same to a seat must produce the same request. Each line names
    the template's line, the first byte that differs and the fact, or what is observed. A line that begins with `look`
    may be intended. Exit code 1 if there is a leak.
    """
    return max([_audited(_audit_of_game(name)) for name in names])


def _audit_of_game(name: str) -> Audit:
    folder, here = Path(name), Path.cwd()
    if (folder / MODULE).is_file():
        here, name = folder.resolve().parents[1], folder.resolve().name
    return Audit(Subject(find_game(name, here), here))


@click.command("audit")
@click.argument("names", metavar="PROMPT...", nargs=-1, required=True)
@game_option
def audit_prompts(names: Sequence[str], game: Game) -> int:
    """Find what a prompt tells a seat that it cannot know.

    PROMPT is a name or a folder. Two worlds that look the same to a seat must produce the same request. Each line names
    the template's line, the first byte that differs and the fact. A line that begins with `look` may be intended. Exit
    code 1 if there is a leak.
    """
    said = click.get_current_context().get_parameter_source("game") is not ParameterSource.DEFAULT
    return max([_audited(_audit_of_prompt(name, game, said)) for name in names])


def _audit_of_prompt(name: str, game: Game, said: bool) -> Audit:
    """The audit of a prompt of the game that was `said`, or else of the one whose folder holds it."""
    folder, here = Path(name), Path.cwd()
    if (folder / DESCRIPTION).is_file():
        game = game if said else game_of_folder(folder, here)
        name = f"./{name}"
    return Audit(Subject(game, here), [load_prompt(name, here, game)])


def _audited(audit: Audit) -> int:
    """Print what is found; the exit code."""
    game = audit.subject.game
    if not audit.subject.registry.hand_written():
        raise UsageError(
            f"no bot plays {game.name}, so there are no games to try: put one into bots/manual/{game.folder}"
        )
    sure = told = 0
    for flaw in run_probes(audit.subject, (audit.leaks,)):
        say(f"{'' if flaw.sure else 'look: '}{flaw.file}: {flaw.sentence}")
        sure, told = sure + flaw.sure, told + 1
    if not sure:
        say(_clean(audit, told))
    return 1 if sure else 0


def _clean(audit: Audit, told: int) -> str:
    """What was compared, where nothing was found that is sure."""
    game, names = audit.subject.game.name, [one_line(prompt.name) for prompt in audit.prompts]
    of = f"prompt{'' if len(names) == 1 else 's'} {', '.join(names)}" if names else "no prompts"
    what = f"{game}, {of}" if audit.only is None else f"{of} of {game}"
    if not audit.turns:
        return f"{what}: nothing was compared: no two worlds were found that a seat cannot tell apart."
    but = "" if not told else f"; look at {told} line{'' if told == 1 else 's'} above"
    return f"{what}: the same bytes at {audit.turns:,} turns, each in two worlds that its seat cannot tell apart{but}."
