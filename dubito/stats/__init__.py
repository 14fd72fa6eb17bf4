"""Sums of games and statistics from them: rates with intervals, ranks, bounds. No I/O, no model."""
