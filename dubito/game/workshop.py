"""What the prompt workshop, the checks of bots and recorded positions need to know about a game."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic

from dubito.game.base import BaseGame, R, S

if TYPE_CHECKING:
    from dubito.game.log import Position
    from dubito.game.table import Table


class Workshop(Generic[R, S]):
    """A game's part of the workshop, to be subclassed. Everything has a default."""

    # Facts that a prompt may omit if it uses one of these instead.
    INSTEAD: Mapping[str, tuple[str, ...]] = {}
    # The important facts at each node. A prompt needs one from each group. `players.x` is a field of each player.
    IMPORTANT: Mapping[str, Sequence[tuple[str, ...]]] = {}
    MOMENTS: Mapping[str, Callable[[Any], bool]] = {}  # unusual moments of the game that bots rarely encounter
    CHECKED_RULES: Sequence[Mapping[str, object]] = ({},)  # the rules under which bots are checked
    RIGHT: str = ""  # describes `right_answer`

    def __init__(self, game: BaseGame) -> None:
        self.game = game

    def right_answer(self, state: S, node: str) -> object:
        """Return the right answer to a node according to the truth, or None if no answer is right."""
        return None

    def world_pairs(self) -> Iterable[tuple["Position[R]", "Position[R]"]] | None:
        """Return pairs of positions that differ only in hidden information, or None to compare no positions."""
        return None

    def sample_tables(self) -> Iterable[tuple["Table", R]] | None:
        """Return tables for testing prompts, each with its rules. If None, the game's bots play."""
        return None

    def check(self, position: "Position[R]", answer: Any) -> None:
        """Raise IllegalOutput for an illegal answer. By default, all answers are legal."""

    def describe_setting(self, position: "Position[R]") -> str:
        """Describe the game that a position is from."""
        return ""

    def own_turn(self, position: "Position[R]") -> int | None:
        """Return the number of the seat's turn, or None to count its decisions."""
        return None
