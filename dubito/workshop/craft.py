"""What of a game its prompts are tried with: its module `workshop`."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, cast

from dubito.errors import UsageError
from dubito.game import Spec
from dubito.game_registry import DUBITO, find_game
from dubito.handlers import Table


class Craft(Protocol):
    """A game's module `workshop`. It may have a `Watch` of its own, as `recorder.Moves` is one, where bots need not
    answer the nodes one by one."""

    @property
    def JUDGED(self) -> str:  # noqa: N802, a constant
        """The node whose yes is right if, and only if, the last play is dishonest; shown unless another is named."""

    @property
    def RIGHT(self) -> str:  # noqa: N802, a constant
        """That in words."""

    @property
    def INSTEAD(self) -> Mapping[str, tuple[str, ...]]:  # noqa: N802, a constant
        """Facts that are not missed where another one says the same."""

    @property
    def IMPORTANT(self) -> Mapping[str, Sequence[tuple[str, ...]]]:  # noqa: N802, a constant
        """What matters at each node: one of each group has to be told, `players.x` being a field of each player's."""

    @property
    def SEED(self) -> int:  # noqa: N802, a constant
        """Of the sample games."""

    def sample_tables(self) -> Iterable[Table]:
        """Games that have not begun, by players who answer by chance."""

    def rules_of(self, game: Any) -> Any:
        """The rules of a game, as its notebooks take them."""

    def truth(self, game: Any) -> tuple[Sequence[Sequence[int]], Sequence[int], bool | None]:
        """The hands by seat, what lies face down, and whether the last play is dishonest, None if nothing is judged."""

    def contradiction(
        self, position: Any, hands: Sequence[Sequence[int]], board: Sequence[int], dishonest: bool | None
    ) -> str | None:
        """What of a truth in a file cannot be true of this position."""

    def in_words(self, position: Any) -> str:
        """Which game it is of: a game of 4."""

    def turn_of(self, position: Any, decision: int) -> int:
        """The turn of this decision of its seat, counted from 0, as runs count it."""

    def check(self, position: Any, answer: Any) -> None:
        """Raises IllegalOutput for an answer that cannot be played here."""

    def second_worlds(self) -> Iterator[tuple[Any, Any]]:
        """Positions, each beside one that its seat cannot tell from it."""


Watched = Callable[[Table, Callable[[Any], None]], Any]  # a table, who is told of each question; it has a `step()`


def game_or_dubito(game: Spec | None) -> Spec:
    """The game that is meant where perhaps none is named."""
    return game or find_game(DUBITO, Path())


def node_names(game: Spec | None) -> list[str]:
    """The nodes of a game, Dubito's if none is given, in their order."""
    return [node.name for node in game_or_dubito(game).nodes]


def craft_of(game: Spec | None) -> Craft:
    """A game's `workshop`; Dubito's if none is given. Raises UsageError if it has none."""
    spec = game_or_dubito(game)
    module = spec.module("workshop")
    if module is None:
        raise UsageError(f"prompts of {spec.name} cannot be tried on positions: its package has no workshop.py")
    return cast(Craft, module)
