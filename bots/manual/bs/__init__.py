"""Hand-written bots for BS, one per file."""
