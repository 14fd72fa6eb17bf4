"""The bases of Dubito's bots, where bots import them from: a re-export of `dubito.games.dubito.bot`."""

from dubito.games.dubito.bot import *  # noqa: F403
