"""The base classes of Dubito's bots, for bots to import: a re-export of `dubito.games.dubito.bot`."""

from dubito.games.dubito.bot import *  # noqa: F403
