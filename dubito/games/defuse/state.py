"""What the seat to move sees, under the path that bots import."""

from dubito.games.defuse.engine import View as View
