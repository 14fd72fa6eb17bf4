"""Register `dubito tournament`."""

from collections.abc import Mapping

from dubito.hooks import Command, hookimpl


@hookimpl
def commands() -> Mapping[str, Command]:
    return {"tournament": Command("Plugins", "dubito.plugins.tournament.command:tournament")}
