"""The interfaces of a game. Packages outside `dubito/games` only use games through these.

A game is a subclass of `Game` whose package contains `GAME`, an instance of it (`game.py`).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from dubito.errors import UsageError
from dubito.game.base import EXTRACTED_OUTCOMES as EXTRACTED_OUTCOMES
from dubito.game.base import FALLBACK_OUTCOME as FALLBACK_OUTCOME
from dubito.game.base import FALLBACK_TURNS as FALLBACK_TURNS
from dubito.game.base import FORFEITS as FORFEITS
from dubito.game.base import ODDS as ODDS
from dubito.game.base import REASON as REASON
from dubito.game.base import STATED as STATED
from dubito.game.base import WINS as WINS
from dubito.game.base import Answer as Answer
from dubito.game.base import BaseGame as BaseGame
from dubito.game.base import Bool as Bool
from dubito.game.base import Cards as Cards
from dubito.game.base import Choice as Choice
from dubito.game.base import E, Out, R, S
from dubito.game.base import Ending as Ending
from dubito.game.base import Facts as Facts
from dubito.game.base import Habit as Habit
from dubito.game.base import HousePolicy as HousePolicy
from dubito.game.base import Lie as Lie
from dubito.game.base import LieMark as LieMark
from dubito.game.base import LineupKind as LineupKind
from dubito.game.base import Measure as Measure
from dubito.game.base import Node as Node
from dubito.game.base import PlayerKind as PlayerKind
from dubito.game.base import Results as Results
from dubito.game.base import Shares as Shares
from dubito.game.base import State as State
from dubito.game.base import Text as Text
from dubito.game.base import Whole as Whole
from dubito.game.base import house_contenders as house_contenders
from dubito.game.base import node_view as node_view
from dubito.game.events import GameEvent as GameEvent
from dubito.game.events import RevealEvent as RevealEvent
from dubito.game.events import TakeEvent as TakeEvent
from dubito.game.legal import View as View
from dubito.game.seating import Player as Player
from dubito.game.seating import Seating as Seating
from dubito.game.seating import fallback_for as fallback_for
from dubito.game.seating import make_player as make_player

if TYPE_CHECKING:
    from dubito.game.words import Words
    from dubito.game.workshop import Workshop


class Game(BaseGame[R, S, E, Out]):
    """Everything that the harness knows about a game, as in `class BSGame(Game[BSRules, State, GameEvent])`.

    Its properties import their module when they are read, so that a run of bots does not load them.
    """

    @property
    def words(self) -> "Words":
        """The text of the game for people."""
        from dubito.game.words import Words

        return Words(self)

    @property
    def facts(self) -> Facts:
        """The facts for prompts. Raises UsageError if models cannot play the game."""
        raise UsageError(f"models cannot play {self.name}: its Game class does not define `facts`")

    @property
    def has_facts(self) -> bool:
        """Whether models can play the game."""
        return type(self).facts is not Game.facts

    @property
    def fakes(self) -> Mapping[str, HousePolicy]:
        """The fake models of the built-in model server, by name."""
        return {}

    @property
    def workshop(self) -> "Workshop":
        """What the prompt workshop and the checks of bots need to know."""
        from dubito.game.workshop import Workshop

        return Workshop(self)

    @property
    def courses(self) -> Mapping[str, type]:
        """The game for OpenSpiel, by variant: subclasses of `dubito.plugins.openspiel.course.Course`."""
        return {}


class Member(NamedTuple):
    """A game in a family's list."""

    name: str  # without the family's name
    seats: tuple[int, int]
    about: str
    why_not: str | None = None  # why the member cannot be played
    is_open: bool = False  # whether nothing is hidden in it


class Family(NamedTuple):
    """A family of games, with names like `openspiel:kuhn_poker`.

    They share the family's bots and prompts.
    """

    name: str
    summary: str  # one line, for `dubito games`
    member: Callable[[str], "Game"]  # from the name after the colon; raises UsageError
    members: Callable[[], Iterable[Member]]  # sorted by name, including unplayable ones; raises UsageError
    featured: Sequence[str] = ()  # the names of games that pages offer first
