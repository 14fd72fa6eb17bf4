"""A working directory with a user's game."""
