"""Tests of the bots, of the registry that finds them, and of their documentation."""
