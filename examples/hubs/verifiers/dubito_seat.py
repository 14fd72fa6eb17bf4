"""The environment of a seat, with defaults for the Environments Hub."""

from collections.abc import Sequence
from typing import Any

from dubito.seats import verifiers


def load_environment(
    game: str = "dubito", opponents: Sequence[str] = ("StefaBot", "ClaudeBot"), **settings: Any
) -> verifiers.SeatEnv:
    return verifiers.load_environment(game, opponents, **settings)
