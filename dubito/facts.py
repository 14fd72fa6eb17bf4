"""What one seat of Dubito may know, where model bots import it from: a re-export of `dubito.games.dubito.facts`."""

from dubito.games.dubito.facts import *  # noqa: F403
