"""Register `dubito games check`, `dubito games audit` and `dubito prompts audit`."""

from collections.abc import Mapping

from dubito.hooks import Command, hookimpl


@hookimpl
def commands() -> Mapping[str, Command]:
    functions = {"games check": "check", "games audit": "audit_games", "prompts audit": "audit_prompts"}
    module = "dubito.plugins.gamecheck.command"
    return {name: Command("Write", f"{module}:{function}") for name, function in functions.items()}
