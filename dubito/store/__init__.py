"""A run's files: its folder and the `run.db` file in it. This package does not depend on any game's rules."""
