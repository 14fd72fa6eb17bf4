"""Four games of OpenSpiel in words: their rules, their acts by name, what a seat holds and what it has seen.

Every sentence of the rules is what the engine does, oddities included, and a test drives the engine through it. What is
told of a position follows from the seat's information state, so two seats that cannot know of a difference read the
same. Nothing here imports OpenSpiel: a game and its states are handed in.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol

from dubito.games.openspiel.words import gin_rummy, kuhn, leduc, liars_dice
from dubito.games.openspiel.words.sentences import Line

_WORDS: Final[Mapping[str, Callable[[Any], "Words | None"]]] = {
    "gin_rummy": gin_rummy.words,
    "kuhn_poker": kuhn.words,
    "leduc_poker": leduc.words,
    "liars_dice": liars_dice.words,
}


class Words(Protocol):
    """One game with its parameters, in words."""

    @property
    def title(self) -> str:
        """What it is called in a sentence."""

    @property
    def rules(self) -> tuple[str, ...]:
        """The rules in force, a paragraph each."""

    @property
    def names(self) -> tuple[str, ...]:
        """By action id: what the act is called, by whichever seat; no two alike."""

    def holds(self, state: Any, seat: int) -> str:
        """What the seat has, and what lies open, in one line without a full stop."""

    def history(self, state: Any, seat: int) -> list[Line]:
        """What the seat has seen, in order: whose act it was (None: chance), and a sentence."""


def words_for(game: Any) -> Words | None:
    """The words of a `pyspiel.Game`; None if it has none, or parameters of which they would be untrue."""
    make = _WORDS.get(game.get_type().short_name)
    return make(game) if make else None
