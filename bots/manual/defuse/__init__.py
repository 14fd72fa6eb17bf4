"""The hand-written bots of draw and defuse, one a file."""
