"""A guessing game with a node of each kind."""
