"""What the prompt workshop takes from OpenSpiel's games (`dubito/workshop/parts.py`)."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from dubito.errors import IllegalOutput
from dubito.game import Spec
from dubito.games.openspiel.positions import Position
from dubito.games.openspiel.spec import engine_of
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
        return {"act": [("rule_text",), ("objective",), ("seat",), ("hand", "state"), ("legal",), ("history",)]}

    def world_pairs(self) -> Iterator[tuple[Position, Position]]:
        """Pairs of positions that differ only in what their seat cannot know."""
        return world_pairs(engine_of(self.spec), self.spec.name)

    def check(self, position: Position, answer: Any) -> None:
        """Raise IllegalOutput for an answer that the rules refuse there."""
        if answer not in position.legal:
            raise IllegalOutput(f"an action here is one of {', '.join(position.legal)}")


of = OpenSpielWorkshop  # by the game
