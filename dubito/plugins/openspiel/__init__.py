"""OpenSpiel's games in the harness, and the harness's games in OpenSpiel.

Names imported from here are loaded on first use.
"""

from importlib import import_module
from typing import Final

_MODULES: Final = {
    "Course": "course",
    "OpenSpielBot": "bot",
    "SeatedBot": "spiel",
    "View": "state",
    "load_game": "spiel",
    "register": "spiel",
}
__all__ = [*_MODULES]


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
