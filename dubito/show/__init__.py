"""Show games: live ones at a table, and finished ones from a run or a file."""
