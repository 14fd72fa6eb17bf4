"""A working directory with a game of its own."""
