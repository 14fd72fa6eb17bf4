"""Hand-written bots of OpenSpiel's games."""
