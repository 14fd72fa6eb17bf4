"""A game's seat as an Inspect task: `inspect eval dubito/seat` (docs/inspect.md in this folder)."""
