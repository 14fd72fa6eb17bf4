"""A harness that pits language models, hand-written bots and people against each other at games of hidden information.

```python
run = dubito.run("examples/models.yaml")
for row in run.ranking():
    print(row.name, row.rates["score"].value)
```
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bots.base import BotBase as Bot
    from dubito.api import ModelDecision, PlayedGame, ReplayDiffers, Rows, Run, load, run
    from dubito.errors import UsageError
    from dubito.game import Game

__version__ = "0.1.0"
__all__ = [
    "Bot",
    "Game",
    "ModelDecision",
    "PlayedGame",
    "ReplayDiffers",
    "Rows",
    "Run",
    "UsageError",
    "load",
    "run",
]


def __getattr__(name: str) -> Any:
    """Import a name in `__all__` on first use, so that commands start faster and bots do not load the API."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    if name == "Bot":
        from dubito.game.find import import_bots

        return import_bots("base").BotBase
    places = {"Game": "dubito.game", "UsageError": "dubito.errors"}
    return getattr(import_module(places.get(name, "dubito.api")), name)


def __dir__() -> list[str]:
    return [*globals(), *__all__]
