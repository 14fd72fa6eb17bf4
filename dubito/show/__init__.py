"""Show games, both live ones at a table and finished ones from a run or a file."""
