"""The files of a run: its folder, and `run.db` in it. This package does not depend on any game's rules."""
