"""The `dubito` command: its subcommands, and what each error means to the shell.

Exit codes: 0 done (warnings too); 1 a comparison differs; 2 the user's mistake, found before anything
started; 3 stopped after the start; 130 Ctrl-C.
"""

import sys
from collections.abc import Sequence
from typing import Final

import click

from dubito import __version__
from dubito.cli.bots import bots
from dubito.cli.cache import cache
from dubito.cli.compare import compare
from dubito.cli.demo import demo
from dubito.cli.estimate import estimate_command
from dubito.cli.export import export
from dubito.cli.games import games
from dubito.cli.house import house
from dubito.cli.listing import Listing
from dubito.cli.output import note
from dubito.cli.play import play
from dubito.cli.play_game import play_game
from dubito.cli.prompts import prompts
from dubito.cli.replay import replay
from dubito.cli.report import report
from dubito.cli.run import run
from dubito.cli.status import status
from dubito.cli.tournament import tournament
from dubito.cli.web import web
from dubito.errors import BotError, RunStopped, UsageError, one_line


@click.group(cls=Listing, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="dubito")
def cli() -> None:
    """Pit language models, hand-written bots and people against each other at games of hidden information."""


_COMMANDS: Final = (
    *(demo, run, compare, report, status, replay, export, estimate_command),
    *(play, web, games, bots, play_game, prompts, cache, house, tournament),
)
for command in _COMMANDS:
    cli.add_command(command)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line, by default the process's own, and exit with its code."""
    sys.exit(_code(arguments))


def _code(arguments: Sequence[str] | None) -> int:
    try:
        code = cli.main(arguments, prog_name="dubito", standalone_mode=False)
        sys.stdout.flush()
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message())
        return 0
    except click.ClickException as error:
        return _said(one_line(error.format_message()), 2)
    except UsageError as error:
        return _said(str(error), 2)
    except (BotError, RunStopped) as error:
        return _said(str(error), 3)
    except (KeyboardInterrupt, click.Abort):
        return _said("stopped by Ctrl-C", 130)
    except BrokenPipeError:  # whoever read our output has gone
        sys.stdout = None
        return 0
    return code if isinstance(code, int) else 0


def _said(text: str, code: int) -> int:
    note(f"dubito: {text}")
    return code
