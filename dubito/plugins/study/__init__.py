"""Studies: one moment of a game, played on many times."""
