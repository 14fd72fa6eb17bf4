"""The words of Dubito, where bots import them from: a re-export of `dubito.games.dubito.game_data`."""

from dubito.games.dubito.game_data import *  # noqa: F403
