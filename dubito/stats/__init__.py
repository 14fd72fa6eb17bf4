"""Sums of games, and what follows from them: rates with intervals, ranks, bounds. No I/O, no model."""
