"""Re-export of `dubito.games.dubito.facts`, so that model bots can import it from here."""

from dubito.games.dubito.facts import *  # noqa: F403
