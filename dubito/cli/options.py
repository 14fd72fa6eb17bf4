"""Flags that several commands have.
The RUN that a command is given: a folder, a file that `dubito export` made, or nothing, which means the latest.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from dubito.cli.output import note
from dubito.errors import UsageError, one_line
from dubito.game import Spec
from dubito.game.find import DUBITO

if TYPE_CHECKING:
    from pydantic import BaseModel

game_option = click.option(
    "--game", default=DUBITO, show_default=True, metavar="NAME", help="A game of `dubito games`."
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead (docs/json.md).")

Command = Callable[..., Any]


def flags(*options: Callable[[Command], Command]) -> Callable[[Command], Command]:
    """A decorator that gives a command these options, in this order in its help."""
    return lambda command: reduce(lambda decorated, option: option(decorated), reversed(options), command)


# Who may sit at a table besides the bots, and where their questions are kept.
company_options = flags(
    click.option("--config", type=click.Path(path_type=Path), help="Experiment whose players may be named as well."),
    click.option(
        "--games",
        type=click.Path(path_type=Path),
        default="games",
        show_default=True,
        help="Folder that keeps what model players are asked.",
    ),
)

# The config's keys `base_url` and `api_key_env`.
server_options = flags(
    click.option("--base-url", metavar="URL|env", help="Server of models in the short form, such as openai:MODEL."),
    click.option(
        "--api-key-env",
        metavar="NAME",
        help="Environment variable with the key of that server: no other key goes there.",
    ),
)

RULES: Final = ("jokers", "win_rule", "max_turns", "max_rounds")
# What varies a game's rules; what is not said is the game's to say.
rules_options = flags(
    click.option("--jokers", metavar="N", help="Dubito: jokers in the deck, 0 to 2. [default: 2]"),
    click.option("--win-rule", metavar="RULE", help="Dubito: immediate, or contested. [default: immediate]"),
    click.option("--max-turns", metavar="N", help="Dubito: turns after which a game stops. [default: 1000]"),
    click.option("--max-rounds", metavar="N", help="BS: rounds after which a game stops. [default: 1000]"),
)

# What asking models may use up, and what is kept of it.
spending_options = flags(
    click.option("--budget", metavar="usd=N,calls=N,tokens=N", help="Hard cap on what it may spend. [default: no cap]"),
    click.option("--prices", metavar="FILE", help="Prices of models, over the list prices. [default: none]"),
    click.option(
        "--preflight/--no-preflight",
        default=None,
        help="Put a real question to each model before anything else. [default: preflight]",
    ),
    click.option("--cache", metavar="FOLDER", help="Folder of cached replies, shared by runs. [default: cache]"),
    click.option("--offline/--no-offline", default=None, help="Make no call: every reply must be in the cache."),
)


def number(text: str) -> int | str:
    """A whole number, or the text as it is for the config's check to refuse."""
    try:
        return int(text)
    except ValueError:
        return text


def rules_from(flags: Mapping[str, Any], spec: Spec) -> "BaseModel":
    """The rules of a game with what these flags say of them; raises UsageError."""
    from dubito.experiment.config import check  # most commands have no use for either
    from dubito.experiment.resolve import rules_of

    said = {key: number(value) for key, value in flags.items() if value is not None}
    return rules_of(check({"game": spec.name}, "the command", said), spec)


def run_argument(command: Callable[..., Any]) -> Callable[..., Any]:
    """The argument RUN, to be opened by `folder_of`."""
    return click.argument("run", required=False, type=click.Path(path_type=Path))(command)


@contextmanager
def folder_of(run: Path | None) -> Iterator[Path]:
    """The folder of the run that was meant, for as long as it is read; that of an exported file is a copy.

    Raises UsageError that names the nearest runs, or says that the file is not an exported run.
    """
    from dubito.store.folder import RUNS, is_export, latest, missing, unpacked  # late: most commands read no run

    if run is None:
        run = latest(Path(RUNS))
        note(f"the latest run: {run}")
    if not run.exists():
        raise missing(run, Path(RUNS))
    if run.is_dir():
        yield run
        return
    if not is_export(run):
        raise UsageError(f"{one_line(str(run))} is not a run: give a run folder, or a file that `dubito export` made")
    with unpacked(run) as folder:
        yield folder
