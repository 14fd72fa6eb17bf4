"""A seat of a game as a task of Inspect: `inspect eval dubito/seat` (docs/inspect.md in this folder)."""
