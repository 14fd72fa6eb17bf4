"""Dubito's `rules` as a config says them, checked."""

from functools import cached_property
from typing import Final

from pydantic import Field

from dubito.files import Checked
from dubito.games.dubito.rules import MAX_JOKERS, Rules, WinRule

_RULES: Final = Rules()


class RulesConfig(Checked):
    """`rules` of a config; its defaults are those of `Rules`."""

    jokers: int = Field(default=_RULES.jokers, ge=0, le=MAX_JOKERS)
    win_rule: WinRule = _RULES.win_rule
    max_turns: int = Field(default=_RULES.max_turns, ge=1)

    @cached_property
    def in_force(self) -> Rules:
        """As the engine has them; made once, since every game asks."""
        return Rules(**self.model_dump())
