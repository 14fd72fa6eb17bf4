"""What the prompt workshop, the checks of bots, recorded positions and forks need to know about a game."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from random import Random
from typing import TYPE_CHECKING, Any, Generic, NamedTuple

from dubito.game.base import BaseGame, R, S, State
from dubito.game.events import EVERYTHING
from dubito.game.log import Log, SeatLog

if TYPE_CHECKING:
    from dubito.game.log import Position
    from dubito.game.table import Table


class ForkStart(NamedTuple):
    """A deal and the moves up to a moment of its game."""

    deal: Callable[[], State]
    moves: Sequence[Any]

    def replay(self) -> tuple[State, Log]:
        """Return the game at the moment, with its log. Raises IllegalOutput."""
        state = self.deal()
        log = Log(state.start)
        for move in self.moves:
            log.add(state.apply(move, EVERYTHING))
        return state, log


class Workshop(Generic[R, S]):
    """A game's part of the workshop, to be subclassed. Everything has a default."""

    # Facts that a prompt may omit if it uses one of these instead.
    INSTEAD: Mapping[str, tuple[str, ...]] = {}
    # The important facts at each node. A prompt needs one from each group. `players.x` is a field of each player.
    IMPORTANT: Mapping[str, Sequence[tuple[str, ...]]] = {}
    MOMENTS: Mapping[str, Callable[[Any], bool]] = {}  # unusual moments of the game that bots rarely encounter
    CHECKED_RULES: Sequence[Mapping[str, object]] = ({},)  # the rules under which bots are checked
    RIGHT: str = ""  # describes `right_answer`
    SETTABLE: Mapping[str, str] = {}  # what `change_start` can change, each with an example

    def __init__(self, game: BaseGame) -> None:
        self.game = game

    def right_answer(self, state: S, node: str) -> object:
        """Return the right answer to a node according to the truth, or None if no answer is right."""
        return None

    def world_pairs(self) -> Iterable[tuple["Position[R]", "Position[R]"]] | None:
        """Return pairs of positions that differ only in hidden information, or None to compare no positions."""
        return None

    def sample_start(self, rules: R, log: SeatLog, chance: Random) -> ForkStart | None:
        """Sample a game that the seat cannot distinguish from its own, or return None if the game has no sampling."""
        return None

    def change_start(self, start: ForkStart, seat: int, key: str, value: str) -> ForkStart:
        """Change what a seat has at this moment. Raises UsageError if it is impossible."""
        raise NotImplementedError

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
