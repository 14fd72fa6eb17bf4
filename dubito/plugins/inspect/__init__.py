"""A seat of a game as an Inspect task: `inspect eval dubito/seat` (docs/inspect.md in this folder)."""
