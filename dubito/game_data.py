"""The words of Dubito, where bots import them from: a re-export of `dubito.games.dubito.cards`."""

from dubito.games.dubito.cards import *  # noqa: F403
