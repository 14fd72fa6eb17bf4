"""What the prompt workshop takes from OpenSpiel's games (`dubito/workshop/parts.py`)."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from dubito.errors import IllegalOutput
from dubito.game import GameEvent, Node, Shares, Spec
from dubito.games.openspiel.positions import NodeName, Position, position_of
from dubito.games.openspiel.sight import all_names
from dubito.games.openspiel.spec import engine_of
from dubito.games.openspiel.state import Game, View
from dubito.games.openspiel.worlds import world_pairs

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

    spec: Spec
    INSTEAD = _INSTEAD

    @property
    def IMPORTANT(self) -> Mapping[str, list[tuple[str, ...]]]:  # noqa: N802, a constant
        """Facts that matter whenever it is asked."""
        facts = [("rule_text",), ("objective",), ("seat",), ("hand", "state"), ("legal",), ("history",)]
        return {node.name: facts for node in self.spec.nodes}

    def world_pairs(self) -> Iterator[tuple[Position, Position]]:
        """Pairs of positions that differ only in what their seat cannot know."""
        return world_pairs(engine_of(self.spec), self.spec.name)

    def check(self, position: Position, answer: Any) -> None:
        """Raise IllegalOutput for an answer that the rules refuse there: one action, or how probable each is."""
        done = [name for name, share in answer.items() if share] if isinstance(answer, dict) else [answer]
        wrong = [name for name in done if name not in position.legal]
        if wrong:
            raise IllegalOutput(f"an action here is one of {', '.join(position.legal)}, and not {wrong[0]}")

    @property
    def engine(self) -> Any:
        """OpenSpiel's own game."""
        return engine_of(self.spec)

    def of_policies(self, situations: Iterable[Sequence[int]] = ()) -> Spec:
        """The same game, whose players are asked how probable each of their actions is after any of these steps."""
        names = all_names(self.engine)
        if names is None:
            found = (self.view_at(steps).names.values() for steps in situations)
            names = tuple(dict.fromkeys(name for legal in found for name in legal))
        return replace(self.spec, nodes=(Node("policy", "act", Shares(names)),))

    def events_at(self, steps: Sequence[int], seat: int) -> list[GameEvent]:
        """What a seat has observed after these steps, move by move."""
        game = Game.at(self.engine, [])
        events: list[GameEvent] = [game.start]
        for step in steps:
            events += [event for event in game.go(step) if event.only in (None, seat)]
        return events

    def view_at(self, steps: Sequence[int]) -> View:
        """What the seat to move sees after these steps, chance among them."""
        return Game.at(self.engine, steps).view()

    def position_at(self, steps: Sequence[int], node: NodeName) -> Position:
        """The same as a position at which this node is asked."""
        return position_of(self.spec.name, self.view_at(steps), node)


of = OpenSpielWorkshop  # by the game
