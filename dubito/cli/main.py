"""The `dubito` command: its subcommands, and what each error means to the shell.

Exit codes: 0 done (warnings too); 1 a comparison differs; 2 the user's mistake, found before anything
started; 3 stopped after the start; 130 Ctrl-C.
"""

import errno
import sys
from collections.abc import Sequence
from typing import Final

import click

from dubito import __version__
from dubito.cli.listing import LateListing
from dubito.cli.output import note
from dubito.errors import BotError, RunStopped, UsageError, one_line
from dubito.native import engine_in_words

_COMMANDS: Final = (
    *("demo", "run", "compare", "merge", "report", "runs", "view", "status", "replay", "export"),
    *("estimate", "play", "web", "games", "bots", "watch", "policy", "tournament", "prompts", "cache", "house"),
)

_PARAMETERS: Final = (  # of models, as people know them
    *("temperature", "top_p", "top_k", "reasoning", "reasoning_effort", "thinking", "effort", "verbosity"),
    *("max_tokens", "max_output_tokens", "max_completion_tokens", "service_tier", "stop"),
)
_OLD_NAMES: Final = {"play-game": "watch"}


@click.group(
    cls=LateListing,
    places={name: f"{name}.{name}" for name in _COMMANDS},
    aliases=_OLD_NAMES,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(f"{__version__} ({engine_in_words()})", prog_name="dubito", message="%(prog)s %(version)s")
def cli() -> None:
    """Pit language models, hand-written bots and people against each other at games of hidden information."""


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
        return _said(_setting_of_a_player(error) or one_line(error.format_message()), 2)
    except UsageError as error:
        return _said(str(error), 2)
    except (BotError, RunStopped) as error:
        return _said(str(error), 3)
    except (KeyboardInterrupt, click.Abort):
        return _said("stopped by Ctrl-C", 130)
    except BrokenPipeError:  # the reader of our output has gone
        sys.stdout = None
        return 0
    except OSError as error:
        return _unwritable(error)
    return code if isinstance(code, int) else 0


def _setting_of_a_player(error: click.ClickException) -> str | None:
    """Where a setting of a model player belongs, if it was given as a flag."""
    if not isinstance(error, click.NoSuchOption):
        return None
    from dubito.llm.settings import ModelSettings  # late: it takes a while to load

    key = error.option_name.lstrip("-").replace("-", "_")
    if key in ModelSettings.model_fields:
        return f"{error.option_name} is no flag, but a setting of one player: say `{key}` in its entry of a config"
    if key in _PARAMETERS:
        said = f"`parameters: {{{key}: ...}}`"
        return f"{error.option_name} is no flag, but a parameter of one model: say {said} in its entry of a config"
    return None


def _unwritable(error: OSError) -> int:
    """Report what is no bug: a file name that the system refuses, a full disk. Raises every other error again."""
    if error.errno == errno.ENAMETOOLONG:
        return _said(f"{one_line(str(error.filename), 60)} is too long for the name of a file", 2)
    if error.errno == errno.ENOSPC and error.filename is None:
        sys.stdout = None  # or Python would try to write the rest of it
        return _said("the output cannot be written: the disk is full", 3)
    raise error


def _said(text: str, code: int) -> int:
    note(f"dubito: {text}")
    return code
