"""Flags that several commands have."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dubito.game import Spec
from dubito.game_registry import DUBITO

if TYPE_CHECKING:
    from pydantic import BaseModel

game_option = click.option(
    "--game", default=DUBITO, show_default=True, metavar="NAME", help="A game of `dubito games`."
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead (docs/json.md).")


def company_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """`--config` and `--games`: who may sit at a table besides the bots, and where their questions are kept."""
    for decorate in (
        click.option(
            "--games",
            type=click.Path(path_type=Path),
            default="games",
            show_default=True,
            help="Folder that keeps what model players are asked.",
        ),
        click.option(
            "--config", type=click.Path(path_type=Path), help="Experiment whose players may be named as well."
        ),
    ):
        command = decorate(command)
    return command


def server_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """`--base-url` and `--api-key-env`, the config's keys `base_url` and `api_key_env`."""
    for decorate in (
        click.option(
            "--api-key-env",
            metavar="NAME",
            help="Environment variable with the key of that server: no other key goes there.",
        ),
        click.option("--base-url", metavar="URL|env", help="Server of models in the short form, such as openai:MODEL."),
    ):
        command = decorate(command)
    return command


def rules_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The flags that vary a game's rules; what is not said is the game's to say."""
    for decorate in (
        click.option("--max-turns", type=int, help="Dubito: turns after which a game stops. [default: 1000]"),
        click.option("--win-rule", help="Dubito: immediate, or contested. [default: immediate]"),
        click.option("--jokers", type=int, help="Dubito: jokers in the deck, 0 to 2. [default: 2]"),
    ):
        command = decorate(command)
    return command


def rules_from(flags: Mapping[str, Any], spec: Spec) -> "BaseModel":
    """The rules of a game with what these flags say of them; raises UsageError."""
    from dubito.experiment.config import check  # most commands have no use for either
    from dubito.experiment.resolve import rules_of

    said = {key: value for key, value in flags.items() if value is not None}
    return rules_of(check({"game": spec.name}, "the command", said), spec)
