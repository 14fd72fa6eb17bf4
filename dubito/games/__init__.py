"""The games, one package each; the rest of the harness knows them through `dubito/game/__init__.py`."""
