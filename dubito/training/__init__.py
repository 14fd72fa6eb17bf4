"""Games of the harness in the worlds of researchers (docs/training.md).

Importing this package registers those that come with it with OpenSpiel, where that is installed:
`pyspiel.load_game("dubito(players=4)")`, `"dubito_bs"` and `"dubito_defuse"`. `load_game("kuhn")` registers and loads
any, one of your own, too. `environment` is for PettingZoo; `verifiers` is for the library of that name, and needs no
OpenSpiel.
"""

from importlib.util import find_spec
from typing import Any

__all__ = ["SeatedBot", "load_game", "register"]

if find_spec("pyspiel"):
    from dubito.training.spiel import SeatedBot, load_game, register

    for _name in ("dubito", "bs", "defuse"):
        register(_name)
else:

    def __getattr__(name: str) -> Any:
        if name in __all__:
            raise ModuleNotFoundError("OpenSpiel is not installed: pip install 'dubito[openspiel]'", name="pyspiel")
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
