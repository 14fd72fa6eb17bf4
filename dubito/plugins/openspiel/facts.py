"""The facts for prompts of OpenSpiel's games (`dubito.game.Facts`). They only contain what the seat can know."""

from dataclasses import replace
from functools import cached_property
from random import Random
from typing import Final

from dubito.files import NoRules
from dubito.game import Facts
from dubito.game.events import EVERYTHING, GameEvent
from dubito.game.log import Log, Position, SeatLog
from dubito.plugins.openspiel.engine_types import Engine
from dubito.plugins.openspiel.state import NODE, Entry, SeenEvent, SightEvent, State, View, own_words
from dubito.plugins.openspiel.texts import engine_title, objective, rule_paragraphs


class Knowledge:
    """A fold over the log of a seat (see `dubito.game.log`)."""

    def __init__(self, rules: object, seat: int) -> None:
        self._reported: list[Entry] = []
        self.sight = SightEvent((), None, "", ())  # the last one

    @property
    def history(self) -> list[Entry]:
        return [*self._reported, *self.sight.entries]

    def see(self, event: GameEvent) -> None:
        match event:
            case SeenEvent(entries):
                self._reported += entries
            case SightEvent():
                self.sight = event


def build_position(view: View, node: str = NODE) -> Position[NoRules]:
    """Return the question that a seat is asked, with a log that reports everything at once."""
    sight = replace(view.sight, entries=tuple(view.history))
    return Position(NoRules(), node, SeatLog(view.seat, [sight]))


def example_position(engine: Engine, node: str) -> Position[NoRules]:
    """Return a game's position at its fourth move (or its last), if all seats take the first legal action."""
    state = State(engine, Random(1))
    log = Log(state.start)
    position = Position(NoRules(), node, log.of(state.seat))
    for _ in range(3):
        log.add(state.apply(next(iter(state.view().names.values())), EVERYTHING))
        if state.over:
            break
        position = Position(NoRules(), node, log.of(state.seat))
    return position


# By node: one action, or the probability of every legal action.
_QUESTIONS: Final = {
    "act": "It is your move. What do you do?",
    "policy": "It is your move. How often would you take each action?",
}
# What the lines of prompts/openspiel/shared/facts.jinja mean.
_HAND: Final = {"seat": "your seat", "hand": "what you hold and what else you see"}
_STATE: Final = {"seat": "your seat", "state": "what you know of the game, in OpenSpiel's notation"}


class OpenSpielFacts(Facts[NoRules]):
    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def facts(self, position: Position[NoRules]) -> dict[str, object]:
        """Return the facts as JSON values.

        `hand` is None if we have no words for the game, otherwise `state` is None.
        """
        known = position.known(Knowledge)
        history, sight = known.history, known.sight
        return {
            **self._steady,
            "seat": position.seat,
            "history": [entry.text for entry in history],
            "own_moves": [n for n, entry in enumerate(history) if entry.by == position.seat],
            "node": position.node,
            "hand": sight.hand,
            "state": sight.sees if sight.hand is None else None,
            "question": _QUESTIONS[position.node],
            "legal": list(sight.legal),
        }

    def steady_facts(self) -> frozenset[str]:
        return frozenset({*self._steady, "seat"})

    def example_position(self, node: str) -> Position[NoRules]:
        return example_position(self._engine, node)

    @cached_property
    def _steady(self) -> dict[str, object]:
        engine = self._engine
        return {
            "title": engine_title(engine),
            "players": engine.num_players(),
            "rule_text": rule_paragraphs(engine),
            "objective": objective(engine),
            "meanings": _HAND if own_words(engine) else _STATE,
        }
