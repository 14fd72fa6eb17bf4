"""A seat of a game whose player is asked from outside the harness."""
