"""The tests of the engine. Names and docstrings cite the rulings of the game (R1-R28) that they test."""
