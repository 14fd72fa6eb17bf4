"""Experiments: config, schedule of deals, games and results."""
