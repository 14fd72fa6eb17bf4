"""Re-exports `dubito.games.dubito.facts` for model bots."""

from dubito.games.dubito.facts import *  # noqa: F403
