"""Flags that several commands have."""

from collections.abc import Callable
from typing import Any

import click

from dubito.game_registry import DUBITO

game_option = click.option(
    "--game", default=DUBITO, show_default=True, metavar="NAME", help="A game of `dubito games`."
)


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
