"""The bases of Dubito's bots, where bots import them from: a door to `dubito.games.dubito.player`."""

from dubito.games.dubito.player import *  # noqa: F403
