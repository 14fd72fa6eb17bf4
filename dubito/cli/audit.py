"""`dubito audit`: whether a game, or a prompt, tells a seat what it cannot know."""

from collections.abc import Sequence
from pathlib import Path

import click
from click.core import ParameterSource

from dubito.cli.options import game_option
from dubito.cli.output import say
from dubito.errors import UsageError, one_line
from dubito.game import Game
from dubito.game.find import find_game, game_names
from dubito.game.packages import MODULE
from dubito.llm.prompts import game_of_folder, load_prompt
from dubito.llm.templates import DESCRIPTION
from dubito.workshop.audit import Audit
from dubito.workshop.conformance import found_by
from dubito.workshop.subject import Subject


@click.command()
@click.argument("names", metavar="GAME|PROMPT...", nargs=-1, required=True)
@game_option
def audit(names: Sequence[str], game: Game) -> int:
    """Say whether games with their prompts, or single prompts, tell a seat what it cannot know: a line a leak.

    Each is a name or a folder; with --game all are prompts of that game. Two worlds that a seat cannot tell apart have
    to make the same request: a line names the template's line, the first byte that differs and the fact; of a game, the
    fact or what is observed. A line that begins with `look` may be meant so. Exit code 1: something is told.
    """
    said = click.get_current_context().get_parameter_source("game") is not ParameterSource.DEFAULT
    return max([_audited(_subject_of(name, game, said)) for name in names])


def _subject_of(name: str, game: Game, said: bool) -> Audit:
    """What is to be audited, and of which game; raises UsageError."""
    folder, here = Path(name), Path.cwd()
    is_prompt = (folder / DESCRIPTION).is_file()
    if not said and not is_prompt and (folder / MODULE).is_file():
        here, name = folder.resolve().parents[1], folder.resolve().name
    elif said or is_prompt or name.partition(":")[0] not in game_names(here):
        game = game_of_folder(folder, here) if is_prompt and not said else game
        path = f"./{name}" if is_prompt else name
        return Audit(Subject(game, here), [load_prompt(path, here, game)])
    return Audit(Subject(find_game(name, here), here))


def _audited(audit: Audit) -> int:
    """Print what is found; the exit code."""
    game = audit.subject.game
    if not audit.subject.registry.hand_written():
        raise UsageError(
            f"no bot plays {game.name}, so there are no games to try: put one into bots/manual/{game.folder}"
        )
    sure = told = 0
    for flaw in found_by(audit.subject, (audit.leaks,)):
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
