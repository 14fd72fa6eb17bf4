"""Register `dubito fork`."""

from collections.abc import Mapping

from dubito.hooks import Command, hookimpl


@hookimpl
def commands() -> Mapping[str, Command]:
    return {"fork": Command("Run", "dubito.plugins.study.command:fork")}
