"""Base classes for Dubito's bots. Re-exports `dubito.games.dubito.bot`."""

from dubito.games.dubito.bot import *  # noqa: F403
