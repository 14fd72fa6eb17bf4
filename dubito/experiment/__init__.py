"""An experiment: its config, its schedule of deals, its games and their results."""
