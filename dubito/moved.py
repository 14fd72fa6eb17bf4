"""Modules by the names that they had before 24 November 2026, for code outside this project that imports them.

The pages of that time told users to import from these; whatever else moved stands in docs/decisions/0034. A module is
the same one under both names, as one of an installed game is (`game/find.py`).
"""

import sys
from collections.abc import Callable
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Final

MOVED: Final = {
    "dubito.bot_deadline": "dubito.game.bot_deadline",
    "dubito.experiment.chunk": "dubito.experiment.play",
    "dubito.experiment.model_checks": "dubito.experiment.resolve",
    "dubito.experiment.runner": "dubito.experiment.run",
    "dubito.game_registry": "dubito.game.find",
    "dubito.games.bs.events": "dubito.games.bs.cards",
    "dubito.games.bs.state": "dubito.games.bs.engine",
    "dubito.games.defuse.cards": "dubito.games.defuse.engine",
    "dubito.games.dubito.game_data": "dubito.game_data",
    "dubito.games.dubito.hand": "dubito.games.dubito.cards",
    "dubito.games.dubito.notebook": "dubito.games.dubito.knowledge",
    "dubito.games.dubito.player": "dubito.games.dubito.bot",
    "dubito.games.dubito.rules": "dubito.games.dubito.engine",
    "dubito.handlers": "dubito.game.table",
    "dubito.llm.decider": "dubito.llm.decide",
    "dubito.native": "dubito.game.native",
    "dubito.openspiel": "dubito.training",
    "dubito.openspiel.environment": "dubito.training.environment",
    "dubito.person": "dubito.game.words",
    "dubito.record": "dubito.game.record",
    "dubito.registry": "dubito.game.find",
    "dubito.rehearsal": "dubito.games.dubito.rehearsal",
    "dubito.results": "dubito.game",
    "dubito.seating": "dubito.game.seating",
    "dubito.streams": "dubito.game.streams",
    "dubito.telling": "dubito.game.words",
    "dubito.user_files": "dubito.files",
}


class OtherNames:
    """Finds a module under another name of its, and gives the one that is there."""

    def __init__(self, own_name: Callable[[str], str | None]) -> None:
        self._own_name = own_name
        self._own: dict[str, ModuleSpec | None] = {}  # by the other name: what the module itself was found by

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        return ModuleSpec(name, self) if self._own_name(name) else None  # type: ignore[arg-type]

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        name = self._own_name(spec.name)
        assert name is not None  # else it was not found
        module = import_module(name)
        self._own[spec.name] = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        assert module.__spec__ is not None
        module.__spec__ = self._own[module.__spec__.name]


def follow_old_names() -> None:
    sys.meta_path.insert(0, OtherNames(MOVED.get))
