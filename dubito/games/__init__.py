"""The games of the house, a package each; the rest of the harness knows them through `dubito/game.py`."""
