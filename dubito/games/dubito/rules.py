"""The rules of Dubito that a config can change, with the defaults of the engine's `Rules`."""

from functools import cached_property
from typing import Any, Final

from pydantic import Field, model_serializer

from dubito.files import CheckedModel
from dubito.games.dubito.cards import COPIES
from dubito.games.dubito.engine import MAX_JOKERS, MIN_COPIES, MIN_RANKS, Rules, WinRule

_USUAL: Final = Rules()


class DubitoRules(CheckedModel):
    jokers: int = Field(default=_USUAL.jokers, ge=0, le=MAX_JOKERS, description="Jokers in the deck, 0 to 2.")
    win_rule: WinRule = Field(
        default=_USUAL.win_rule, description="When the last card wins: at once, or once undoubted."
    )
    max_turns: int = Field(default=_USUAL.max_turns, ge=1, description="Turns after which a game stops.")
    ranks: int = Field(
        default=_USUAL.ranks, ge=MIN_RANKS, le=_USUAL.ranks, description="Variant: numbers in the deck, 2 to 13."
    )
    copies: int = Field(
        default=_USUAL.copies, ge=MIN_COPIES, le=COPIES, description="Variant: cards of each number, 2 to 4."
    )
    duel: bool = Field(default=_USUAL.duel, description="Variant: two seats; the first out wins.")

    @model_serializer
    def stored_form(self) -> dict[str, Any]:
        return self.engine_rules.stored_form()

    @cached_property
    def engine_rules(self) -> Rules:
        return Rules(**dict(self))
