"""Tests of the bots, of the registry that finds them, and of what is written about them."""
