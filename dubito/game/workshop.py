"""What the prompt workshop, the checks of bots and recorded positions need to know about a game."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dubito.game.base import BaseGame

if TYPE_CHECKING:
    from dubito.game.table import Table


class Workshop:
    """A game's part of the workshop, to be subclassed. Everything has a default."""

    # Facts that a prompt may omit if it uses one of these instead.
    INSTEAD: Mapping[str, tuple[str, ...]] = {}
    # The important facts at each node. A prompt needs one from each group. `players.x` is a field of each player.
    IMPORTANT: Mapping[str, Sequence[tuple[str, ...]]] = {}
    MOMENTS: Mapping[str, Callable[[Any], bool]] = {}  # unusual moments of the game that bots rarely encounter
    CHECKED_RULES: Sequence[Mapping[str, Any]] = ({},)  # the rules under which bots are checked
    RIGHT: str = ""  # describes `right_answer`

    def __init__(self, game: BaseGame) -> None:
        self.game = game

    def right_answer(self, state: Any, node: str) -> Any:
        """Return the right answer to a node according to the truth, or None if no answer is right."""
        return None

    def world_pairs(self) -> Iterable[tuple[Any, Any]] | None:
        """Return pairs of positions that differ only in hidden information, or None to compare no positions."""
        return None

    def sample_tables(self) -> Iterable[tuple["Table", Any]] | None:
        """Return tables for testing prompts, each with its rules. If None, the game's bots play."""
        return None

    def check(self, position: Any, answer: Any) -> None:
        """Raise IllegalOutput for an illegal answer. By default, all answers are legal."""

    def describe_setting(self, position: Any) -> str:
        """Describe the game that a position is from."""
        return ""

    def own_turn(self, position: Any) -> int | None:
        """Return the number of the seat's turn, or None to count its decisions."""
        return None
