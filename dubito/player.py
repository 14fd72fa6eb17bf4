"""The bases of Dubito's bots, where bots import them from: a re-export of `dubito.games.dubito.player`."""

from dubito.games.dubito.player import *  # noqa: F403
