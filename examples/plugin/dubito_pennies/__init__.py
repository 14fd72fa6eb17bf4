"""Matching pennies, and a command that shows its payoffs."""
