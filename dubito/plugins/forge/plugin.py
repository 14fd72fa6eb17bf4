"""Register `dubito forge`."""

from collections.abc import Mapping

from dubito.hooks import Command, hookimpl


@hookimpl
def commands() -> Mapping[str, Command]:
    return {"forge": Command("Plugins", "dubito.plugins.forge.command:forge")}
