"""Tests of the engine. Names and docstrings cite the rulings (R1-R28) that they test."""
