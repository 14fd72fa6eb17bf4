"""What the prompt workshop takes from OpenSpiel's games (`dubito/workshop/recordings.py`).

Pairs of positions that differ only in what their seat cannot know: by the game's own resampling, or by trying.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from random import Random
from typing import Any, Final

from dubito.errors import IllegalOutput
from dubito.game import Game, GameEvent, Node, Shares
from dubito.games.openspiel.engine import quiet
from dubito.games.openspiel.facts import NodeName, Position, position_of
from dubito.games.openspiel.game import engine_of
from dubito.games.openspiel.state import State, Step, View, all_names, apply_step, names_at, seen_by

_GAMES: Final = 10
_MOVES: Final = 24  # of a game; longer ones are cut there
_TRIES: Final = 12  # for another world, where the game has no resampling


def world_pairs(engine: Any, name: str) -> Iterator[tuple[Position, Position]]:
    """Positions of random games, each beside one of another world in which its seat has seen the same."""
    for number in range(_GAMES):
        rng = Random(number)
        game = State(engine, rng)
        while not game.over and game.turns_played < _MOVES:
            if game.seat == game.asked_first:
                other = another_world(engine, game.steps, game.seat, rng)
                if other is not None:
                    yield position_of(name, game.view()), position_of(name, State.at(engine, other).view())
            game.apply(rng.choice([*game.view().names.values()]), announce=False)


def another_world(engine: Any, steps: Sequence[Step], seat: int, rng: Random) -> Sequence[Step] | None:
    """Steps of which this seat has seen the same, but not the same steps; None if none was found."""
    state = engine.new_initial_state()
    for step in steps:
        apply_step(state, step)
    with quiet(), suppress(RuntimeError):  # SpielError: the game has no resampling, or none here
        found = list(state.resample_from_infostate(seat, rng.random).history())
        if found != list(steps):
            return found
    wanted = _seen(engine, steps, seat)
    for _ in range(_TRIES):
        other = rng.choice((_varied, _swapped))(engine, steps, seat, rng)
        if other != list(steps) and _seen(engine, other, seat) == wanted:
            return other
    return None


def _varied(engine: Any, steps: Sequence[Step], seat: int, rng: Random) -> list[Step]:
    """The same steps of the seat's own, but now and then another of the others' and of chance; as far as it goes."""
    state, varied = engine.new_initial_state(), list[Step]()
    for step in steps:
        if state.is_terminal() or state.is_simultaneous_node() is isinstance(step, int):
            return varied
        if isinstance(step, int):
            legal = state.legal_actions()
            free = state.current_player() != seat and rng.random() < 0.3
            new: Step = rng.choice(legal) if free or step not in legal else step
        else:
            legal_of = [state.legal_actions(other) for other in range(len(step))]
            new = [
                rng.choice(legal) if other != seat and legal and rng.random() < 0.3 else action
                for other, (action, legal) in enumerate(zip(step, legal_of, strict=True))
            ]
            if any(legal and action not in legal for action, legal in zip(new, legal_of, strict=True)):
                return varied
        apply_step(state, new)
        varied.append(new)
    return varied


def _swapped(engine: Any, steps: Sequence[Step], seat: int, rng: Random) -> list[Step]:
    """The same steps, but two outcomes of chance have changed places, as cards do in a deck; as far as it goes."""
    state, drawn = engine.new_initial_state(), list[int]()
    for step in steps:
        if state.is_chance_node() and isinstance(step, int):
            drawn.append(step)
            possible = state.legal_actions()
        apply_step(state, step)
    if not drawn:
        return []
    one, two = rng.choice(drawn), rng.choice(possible)
    state, swapped = engine.new_initial_state(), list[Step]()
    for step in steps:
        new: Step = {one: two, two: one}.get(step, step) if isinstance(step, int) and state.is_chance_node() else step
        if isinstance(new, int) and new not in state.legal_actions():
            return swapped
        apply_step(state, new)
        swapped.append(new)
    return swapped


def _seen(engine: Any, steps: Sequence[Step], seat: int) -> list[Any]:
    """What a seat sees after each step, and what it does."""
    state, seen = engine.new_initial_state(), list[Any]()
    for step in steps:
        if state.current_player() == seat or state.is_simultaneous_node():
            own = step if isinstance(step, int) else step[seat]
            seen.append(names_at(state, seat).get(own))
        apply_step(state, step)
        if not state.is_terminal() and not state.is_chance_node():
            seen.append(seen_by(state, seat))
    return [*seen, state.is_player_node() and state.current_player()]


_INSTEAD: Final[Mapping[str, tuple[str, ...]]] = {
    "title": ("rule_text",),
    "players": ("rule_text",),
    "node": ("question",),
    "own_moves": ("history",),
    "state": ("hand",),
    "hand": ("state",),
}


@dataclass(frozen=True)
class OpenSpielWorkshop:
    """That of one game."""

    game: Game
    INSTEAD = _INSTEAD

    @property
    def IMPORTANT(self) -> Mapping[str, list[tuple[str, ...]]]:  # noqa: N802, a constant
        facts = [("rule_text",), ("objective",), ("seat",), ("hand", "state"), ("legal",), ("history",)]
        return {node.name: facts for node in self.game.nodes}

    def world_pairs(self) -> Iterator[tuple[Position, Position]]:
        return world_pairs(engine_of(self.game), self.game.name)

    def check(self, position: Position, answer: Any) -> None:
        """Raise IllegalOutput for an answer that the rules refuse there: one action, or how probable each is."""
        done = [name for name, share in answer.items() if share] if isinstance(answer, dict) else [answer]
        wrong = [name for name in done if name not in position.legal]
        if wrong:
            raise IllegalOutput(f"an action here is one of {', '.join(position.legal)}, and not {wrong[0]}")

    @property
    def engine(self) -> Any:
        return engine_of(self.game)

    def of_policies(self, situations: Iterable[Sequence[int]] = ()) -> Game:
        """The same game, whose players are asked how probable each of their actions is after any of these steps."""
        names = all_names(self.engine)
        if names is None:
            found = (self.view_at(steps).names.values() for steps in situations)
            names = tuple(dict.fromkeys(name for legal in found for name in legal))
        return replace(self.game, nodes=(Node("policy", "act", Shares(names)),))

    def events_at(self, steps: Sequence[int], seat: int) -> list[GameEvent]:
        """What a seat has observed after these steps, move by move."""
        game = State.at(self.engine, [])
        events: list[GameEvent] = [game.start]
        for step in steps:
            events += [event for event in game.go(step) if event.only in (None, seat)]
        return events

    def view_at(self, steps: Sequence[int]) -> View:
        return State.at(self.engine, steps).view()

    def position_at(self, steps: Sequence[int], node: NodeName) -> Position:
        """The same as a position at which this node is asked."""
        return position_of(self.game.name, self.view_at(steps), node)


of = OpenSpielWorkshop  # by the game
