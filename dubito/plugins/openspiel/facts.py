"""The facts for prompts of OpenSpiel's games (`dubito.game.Facts`). They only contain what the seat can know."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from random import Random
from typing import Annotated, Any, Final, Literal, cast

from pydantic import AfterValidator, Field

from dubito.files import CheckedModel
from dubito.game import Game
from dubito.game.record import PositionFile
from dubito.plugins.openspiel.state import Entry, State, View, own_words
from dubito.plugins.openspiel.texts import engine_title, objective, rule_paragraphs

NodeName = Literal["act", "policy"]  # one action, or the probability of every legal action


@dataclass(frozen=True, slots=True)
class Position:
    """Everything that a seat knows when it is asked for its action."""

    game: str  # name with the prefix `openspiel:`
    seat: int
    node: NodeName
    history: tuple[Entry, ...]
    hand: str | None  # what the seat holds and sees, in our words; None if the game has none
    sees: str  # the same in the engine's notation
    legal: tuple[str, ...]  # actions by name


class Notebook:
    """An empty record, because the game stores what the seat has seen."""

    def __init__(self, name: str, seat: int) -> None:
        self._name, self._seat = name, seat

    def observe(self, event: Any, cards: Any) -> None:
        """Do nothing, since the view contains everything that is observed."""

    def note_answer(self, node: str, answer: Any) -> None:
        """Do nothing, since the view shows all effects of an answer."""

    def position(self, node: str, view: View, cards: Any) -> Position:
        return build_position(self._name, view)


def build_position(name: str, view: View, node: NodeName = "act") -> Position:
    return Position(
        name, view.seat, node, tuple(view.history), view.hand, view.sees.strip("\n"), tuple(view.names.values())
    )


class _Entry(CheckedModel):
    by: Annotated[int, Field(ge=0)] | None
    text: str


_ENTRY: Final = AfterValidator(lambda entry: Entry(entry.by, entry.text))
_TYPES: Final = {
    "seat": Annotated[int, Field(ge=0)],
    "history": tuple[Annotated[_Entry, _ENTRY], ...],
    "legal": Annotated[tuple[str, ...], Field(min_length=1)],
}


def example_position(engine: Any, name: str, node: NodeName) -> Position:
    """Return a game's position at its fourth move (or its last), if all seats take the first legal action."""
    state = State(engine, Random(1))
    position = build_position(name, state.view(), node)
    for _ in range(3):
        state.apply(position.legal[0], announce=False)
        if state.over:
            break
        position = build_position(name, state.view(), node)
    return position


_QUESTIONS: Final[Mapping[NodeName, str]] = {
    "act": "It is your move. What do you do?",
    "policy": "It is your move. How often would you take each action?",
}
# What the lines of prompts/openspiel/shared/facts.jinja mean.
_HAND: Final = {"seat": "your seat", "hand": "what you hold and what else you see"}
_STATE: Final = {"seat": "your seat", "state": "what you know of the game, in OpenSpiel's notation"}


class OpenSpielFacts:
    def __init__(self, game: Game, engine: Any) -> None:
        self._game, self._engine = game, engine
        file = PositionFile(Position, "openspiel position 1", self._find_fault, _TYPES)
        self.to_json, self.from_json = file.to_json, file.from_json

    def Notebook(self, seat: int, rules: object) -> "Notebook":  # noqa: N802, as in Facts
        return Notebook(self._game.name, seat)

    def facts(self, position: Position) -> dict[str, Any]:
        """Return the facts as JSON values.

        `hand` is None if we have no words for the game, otherwise `state` is None.
        """
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
        return frozenset({*self._steady, "seat"})

    def example_position(self, node: str) -> Position:
        return example_position(self._engine, self._game.name, cast(NodeName, node))

    def _find_fault(self, position: Position) -> str | None:
        name, seats = self._game.name, self._game.seats[1]
        if position.game != name:
            return f"game: it is {position.game}, not {name}"
        if not all(seat < seats for seat in (position.seat, *(entry.by or 0 for entry in position.history))):
            return f"seat: {name} has {seats} seats"
        return None

    @cached_property
    def _steady(self) -> dict[str, Any]:
        engine = self._engine
        return {
            "title": engine_title(engine),
            "players": engine.num_players(),
            "rule_text": rule_paragraphs(engine),
            "objective": objective(engine),
            "meanings": _HAND if own_words(engine) else _STATE,
        }
