"""The games, one per package. The rest of the harness uses them through `dubito/game/__init__.py`."""
