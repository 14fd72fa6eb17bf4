"""A harness that pits players against each other at Dubito, a bluffing card game."""

__version__ = "0.1.0"
