"""Register `dubito rate` and `dubito leaderboard`."""

from collections.abc import Mapping

from dubito.hooks import Command, hookimpl


@hookimpl
def commands() -> Mapping[str, Command]:
    return {
        "rate": Command("Plugins", "dubito.plugins.leaderboard.rate:rate"),
        "leaderboard": Command("Plugins", "dubito.plugins.leaderboard.command:leaderboard"),
    }
