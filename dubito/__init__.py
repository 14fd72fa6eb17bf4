"""A harness that pits players against each other at Dubito, a bluffing card game."""

from dubito.moved import follow_old_names

__version__ = "0.1.0"

follow_old_names()
