"""The games, one package each. The rest of the harness uses them through `dubito/game/__init__.py`."""
