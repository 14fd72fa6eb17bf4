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

_COMMANDS: Final = {  # what each does: the first sentence of its own help
    "demo": "Play two model players against hand-written bots over HTTP, with the embedded house server in place of "
    "a provider (a stand-in, not a language model); then the same again offline, from the cache.",
    "run": "Play the experiment in CONFIG (a YAML file; flags go over it), print its ranking and write its report.",
    "compare": "Compare the contenders of RUN..., paired over the deals that all of them keep.",
    "merge": "Join the folders RUN..., all shards of one run, into the run that one machine would have made.",
    "report": "Write RUN, by default the latest, as pages to be opened in a browser, with no network.",
    "runs": "List the runs in FOLDER, by default `runs`, the last written first.",
    "view": "Open the report of RUN, by default the latest, in the browser.",
    "status": "Say how far RUN is, by default the latest, what its models were asked, and what they cost.",
    "replay": "Play a run (by default the latest), an exported run or a saved game again, with no network and no "
    "model.",
    "export": "Write the run in folder RUN into FILE, for `dubito replay FILE` elsewhere.",
    "estimate": "Say how many calls, tokens, dollars and how much time the experiment in CONFIG will take, as ranges.",
    "play": "Play a game yourself against these bots, by default some good ones.",
    "web": "Play in the browser, against hand-written bots and the players of CONFIG, including those that ask models.",
    "games": "List the games: name, seats, and what each is.",
    "bots": "List the bots of a game: name, strategy, origin, file; then unfinished bots and files that cannot be "
    "used.",
    "watch": "Tell a game between these bots and models live, seated in this order, or the games of a run as they "
    "finish.",
    "policy": "Say how exploitable each PLAYER's complete strategy for a small game is, exactly.",
    "tournament": "Hold a tournament of programs at games of hidden information: a strict referee, ranked by instant "
    "run-off.",
    "prompts": "List prompts, show what one says, and try them out on recorded positions.",
    "cache": "Look into the cache of replies.",
    "house": "Serve the OpenAI and Anthropic protocols on loopback.",
}

_OLD_NAMES: Final = {"play-game": "watch"}


@click.group(
    cls=LateListing, summaries=_COMMANDS, aliases=_OLD_NAMES, context_settings={"help_option_names": ["-h", "--help"]}
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
        return _said(one_line(error.format_message()), 2)
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
