"""What prompts are told of OpenSpiel's games (`dubito.game.Facts`): nothing that the asked seat cannot know."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from random import Random
from typing import Annotated, Any, Final, Literal, cast

from pydantic import AfterValidator, Field

from dubito.files import Checked
from dubito.game import Game
from dubito.game.record import PositionFile
from dubito.plugins.openspiel.game import engine_of
from dubito.plugins.openspiel.state import Entry, State, View, own_words
from dubito.plugins.openspiel.texts import objective, rule_sentences, title_of

NodeName = Literal["act", "policy"]  # what it does; or how probable it is to do each thing that it may


@dataclass(frozen=True, slots=True)
class Position:
    """All that one seat has when it is asked for its action."""

    game: str  # as `openspiel:` has it
    seat: int
    node: NodeName
    history: tuple[Entry, ...]
    hand: str | None  # what the seat holds and sees, in our words; None where there are none for the game
    sees: str  # the same as the engine has it
    legal: tuple[str, ...]  # actions by name


class Notebook:
    """Kept for one seat of one game: the game itself keeps what a seat has seen."""

    def __init__(self, name: str, seat: int) -> None:
        self._name, self._seat = name, seat

    def observe(self, event: Any, cards: Any) -> None:
        """All that is observed is in the view."""

    def answered(self, node: str, answer: Any) -> None:
        """All that an answer does is in the view."""

    def position(self, node: str, view: View, cards: Any) -> Position:
        return position_of(self._name, view)


def position_of(name: str, view: View, node: NodeName = "act") -> Position:
    return Position(
        name, view.seat, node, tuple(view.history), view.hand, view.sees.strip("\n"), tuple(view.names.values())
    )


class _Entry(Checked):
    by: Annotated[int, Field(ge=0)] | None
    text: str


_ENTRY: Final = AfterValidator(lambda entry: Entry(entry.by, entry.text))
_TYPES: Final = {
    "seat": Annotated[int, Field(ge=0)],
    "history": tuple[Annotated[_Entry, _ENTRY], ...],
    "legal": Annotated[tuple[str, ...], Field(min_length=1)],
}


def example_position(engine: Any, name: str, node: NodeName) -> Position:
    """A fixed position of a game: that of its fourth move, or of the last if it is shorter, where all do the first
    thing that they may."""
    state = State(engine, Random(1))
    position = position_of(name, state.view(), node)
    for _ in range(3):
        state.apply(position.legal[0], announce=False)
        if state.over:
            break
        position = position_of(name, state.view(), node)
    return position


_QUESTIONS: Final[Mapping[NodeName, str]] = {
    "act": "It is your move. What do you do?",
    "policy": "It is your move. How often would you take each action?",
}
# What the lines of prompts/openspiel/shared/facts.jinja mean.
_HAND: Final = {"seat": "your seat", "hand": "what you hold and what else you see"}
_STATE: Final = {"seat": "your seat", "state": "what you know of the game, in OpenSpiel's notation"}


class OpenSpielFacts:
    """Those of one game."""

    def __init__(self, game: Game) -> None:
        self._game = game
        self.Notebook = lambda seat, rules: Notebook(game.name, seat)
        file = PositionFile(Position, "openspiel position 1", self._fault, _TYPES)
        self.to_json, self.from_json = file.to_json, file.from_json

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
        return frozenset({*self._steady, "seat"})

    def example_position(self, node: str) -> Position:
        return example_position(engine_of(self._game), self._game.name, cast(NodeName, node))

    def _fault(self, position: Position) -> str | None:
        name, seats = self._game.name, self._game.seats[1]
        if position.game != name:
            return f"game: it is of {position.game}, and not of {name}"
        if not all(seat < seats for seat in (position.seat, *(entry.by or 0 for entry in position.history))):
            return f"seat: {name} has {seats}"
        return None

    @cached_property
    def _steady(self) -> dict[str, Any]:
        engine = engine_of(self._game)
        return {
            "title": title_of(engine),
            "players": engine.num_players(),
            "rule_text": rule_sentences(engine),
            "objective": objective(engine),
            "meanings": _HAND if own_words(engine) else _STATE,
        }


of = OpenSpielFacts  # by the game
