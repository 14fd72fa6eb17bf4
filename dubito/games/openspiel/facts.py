"""What prompts are told of OpenSpiel's games (`dubito.game.Facts`): nothing that the asked seat cannot know."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, cast

from dubito.game import Spec
from dubito.games.openspiel.positions import NodeName, Notebook, Position, example_position, from_json, to_json
from dubito.games.openspiel.rule_text import objective, rule_sentences, title_of
from dubito.games.openspiel.sight import words_of
from dubito.games.openspiel.spec import engine_of

_QUESTIONS: Final[Mapping[NodeName, str]] = {
    "act": "It is your move. What do you do?",
    "policy": "It is your move. How probable is it that you do each of these?",
}
# What each line of the shared partial means.
_HAND: Final = {"seat": "your seat", "hand": "what you hold, and what else you see"}
_STATE: Final = {"seat": "your seat", "state": "what you know of the game, as the engine writes it"}


@dataclass(frozen=True)
class OpenSpielFacts:
    """Those of one game."""

    spec: Spec

    @property
    def Notebook(self) -> Callable[[int, Any], Notebook]:  # noqa: N802, a class
        """By seat and rules."""
        return lambda seat, rules: Notebook(self.spec.name, seat)

    def facts(self, position: Position) -> dict[str, Any]:
        """The facts as plain values that JSON can hold; `hand` is None where we have no words for the game, and `state`
        where we have."""
        return {
            **self._steady,
            "seat": position.seat,
            "history": [entry.text for entry in position.history],
            "own_moves": [n for n, entry in enumerate(position.history) if entry.by == position.seat],
            "node": position.node,
            "hand": position.hand,
            "state": position.sees if position.hand is None else None,
            "question": _QUESTIONS[position.node],
            "legal": list(position.legal),
        }

    def steady_facts(self) -> frozenset[str]:
        """The facts that stay the same for one seat through a whole game."""
        return frozenset({*self._steady, "seat"})

    def example_position(self, node: str) -> Position:
        """A fixed position at which this node is asked."""
        return example_position(engine_of(self.spec), self.spec.name, cast(NodeName, node))

    def to_json(self, position: Position) -> str:
        """The position as a file."""
        return to_json(position)

    def from_json(self, text: str) -> Position:
        """The inverse; raises UsageError that names what is malformed."""
        return from_json(text, self.spec.name, self.spec.seats[1])

    @cached_property
    def _steady(self) -> dict[str, Any]:
        engine = engine_of(self.spec)
        return {
            "title": title_of(engine),
            "players": engine.num_players(),
            "rule_text": rule_sentences(engine),
            "objective": objective(engine),
            "meanings": _HAND if words_of(engine) else _STATE,
        }


of = OpenSpielFacts  # by the game
