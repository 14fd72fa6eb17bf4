"""An experiment: its config, its schedule of deals, the games, what they add up to."""
