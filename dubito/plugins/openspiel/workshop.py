"""OpenSpiel's games for the prompt workshop (see `dubito/workshop/recordings.py`)."""

from collections.abc import Iterator, Mapping, Sequence
from random import Random
from typing import Final

from dubito.errors import IllegalOutput
from dubito.files import NoRules
from dubito.game import Game, GameEvent
from dubito.game.log import Position
from dubito.game.workshop import Workshop
from dubito.plugins.openspiel.engine_types import Engine
from dubito.plugins.openspiel.facts import Knowledge, build_position
from dubito.plugins.openspiel.state import State, View
from dubito.plugins.openspiel.worlds import sample_steps

_GAMES: Final = 10
_MAX_MOVES: Final = 24  # steps of a game; longer games are cut off


_INSTEAD: Final[Mapping[str, tuple[str, ...]]] = {
    "title": ("rule_text",),
    "players": ("rule_text",),
    "node": ("question",),
    "own_moves": ("history",),
    "state": ("hand",),
    "hand": ("state",),
}


class OpenSpielWorkshop(Workshop):
    INSTEAD = _INSTEAD

    def __init__(self, game: Game, engine: Engine) -> None:
        super().__init__(game)
        self.engine = engine
        facts = [("rule_text",), ("objective",), ("seat",), ("hand", "state"), ("legal",), ("history",)]
        self.IMPORTANT = {node.name: facts for node in game.nodes}

    def world_pairs(self) -> Iterator[tuple[Position[NoRules], Position[NoRules]]]:
        """Yield positions from random games, each with one from another world that looks the same to the seat."""
        engine = self.engine
        for number in range(_GAMES):
            rng = Random(number)
            state = State(engine, rng)
            while not state.over and state.turns_played < _MAX_MOVES:
                if state.seat == state.first_to_move:
                    other = sample_steps(engine, state.steps, state.seat, rng)
                    if other is not None:
                        yield build_position(state.view()), build_position(State.after_steps(engine, other).view())
                state.apply(rng.choice([*state.view().names.values()]), 0)

    def check(self, position: Position[NoRules], answer: object) -> None:
        """Raise IllegalOutput for an illegal answer, which can be an action or the probabilities of all actions."""
        chosen = [name for name, share in answer.items() if share] if isinstance(answer, dict) else [answer]
        legal = position.known(Knowledge).sight.legal
        wrong = [name for name in chosen if name not in legal]
        if wrong:
            raise IllegalOutput(f"an action here is one of {', '.join(legal)}, not {wrong[0]}")

    def events_at(self, steps: Sequence[int], seat: int) -> list[GameEvent]:
        """Return what a seat has observed after these steps, move by move."""
        game = State.after_steps(self.engine, [])
        events: list[GameEvent] = [event for event in game.start if not event.silent]
        for step in steps:
            events += [event for event in game.take_step(step) if event.only in (None, seat)]
        return events

    def view_at(self, steps: Sequence[int]) -> View:
        return State.after_steps(self.engine, steps).view()

    def position_at(self, steps: Sequence[int], node: str) -> Position[NoRules]:
        return build_position(self.view_at(steps), node)
