"""Hand-written bots."""
