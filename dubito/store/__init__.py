"""What a run keeps on disk: its folder, and `run.db` in it. Knows nothing of any game's rules."""
