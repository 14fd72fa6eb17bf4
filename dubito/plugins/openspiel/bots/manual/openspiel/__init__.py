"""Hand-written bots for OpenSpiel's games."""
