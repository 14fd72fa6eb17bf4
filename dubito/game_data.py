"""Types of the game Dubito for bots to import: what a seat sees, answers and observes."""

from dubito.games.dubito.cards import *  # noqa: F403
from dubito.games.dubito.events import *  # noqa: F403
