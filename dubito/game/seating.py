"""The base class of all bots, and how a bot gets its seat."""

from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass, replace
from random import Random
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from dubito.game.events import Listener
from dubito.game.native import Held, Loose, mypyc_attr  # for the compiler; read `Loose[T]` as T
from dubito.game.streams import SeatStreams

if TYPE_CHECKING:
    from dubito.game.log import SeatLog


@dataclass(slots=True)
class Seating:
    """Data that a bot gets before its `__init__`, one object per seat and game."""

    id: int  # the seat
    game: int
    deal: int
    streams: SeatStreams
    look: Callable[[SeatStreams], object]  # builds `self.cards`
    services: object | None = None  # a model player's access to its model, set up by the run
    rules: object | None = None  # the game's rules; None for the defaults
    log: "SeatLog | None" = None  # what the seat saw of the deal, if the table keeps a log


@mypyc_attr(allow_interpreted_subclasses=True, serializable=True)
class Player(Generic[Held]):
    """The base class of all bots of all games.

    Bots receive views and return outputs. `self.id` is the seat, `self.cards` its cards and `self.rng` the bot's own
    random stream. All three are available in `__init__`.
    """

    is_model: ClassVar[bool] = False  # True if it asks a model, which needs the run's services
    is_program: ClassVar[bool] = False  # True: a program answers, which the run starts
    reads_log: ClassVar[bool] = False  # True if it reads `self._seating.log`, the log of what its seat saw
    origin: ClassVar[str] = "unknown"  # who wrote the bot, for `dubito bots`
    interface: ClassVar[str] = ""  # set if the bot was written for another project
    usual: ClassVar[bool] = True  # False if it plays only when a config names it; not inherited

    defaults: ClassVar[Mapping[str, object]] = {}  # settings that a model or program player fixes
    _seating: Seating
    _rng: Loose[Random | None] = None  # a bot can set this to replace its seat's stream
    _rules: Any = None  # the game's rules, if its base class exposes them
    cards: Held
    id: Loose[int]

    def __init__(self, id: Loose[int]) -> None:
        self.id = id

    @property
    def rng(self) -> Loose[Random]:
        """The bot's own random stream (R27)."""
        return self._seating.streams.bot if self._rng is None else self._rng

    @rng.setter
    def rng(self, rng: Loose[Random]) -> None:
        self._rng = rng

    def play(self, view: Any) -> object:
        """Make a move. By default, calls the method that is named like the view's node."""
        answer = getattr(self, view.node, None)
        if answer is None:
            raise NotImplementedError(f"{type(self).__name__} does not implement play()")
        return answer(view)

    def observe(self, event: Any) -> None:
        """Receive what the table saw of a move. Called after every move. Does nothing by default."""

    def report_answers(self, listener: Listener) -> None:
        """Report all questions of a turn to the listener, if a turn can have several. Does nothing by default."""

    @classmethod
    def rules_incompatibility(cls, rules: object) -> str | None:
        """Return why bots of this class cannot play by these rules, or None if they can."""
        return None

    @classmethod
    def needs_events(cls) -> bool:
        """Return whether to send events. Events are not built if no player observes."""
        return cls.observe is not Player.observe


P = TypeVar("P", bound=Player)


def make_player(cls: type[P], seating: Seating, settings: Mapping[str, object]) -> P:
    """Create a bot in a seat, with its own copy of the settings."""
    player: Any = cls.__new__(cls)
    player._seating = seating
    player.cards = seating.look(seating.streams)
    player.id = seating.id
    player.__init__(seating.id, **(deepcopy(dict(settings)) if settings else {}))
    return player  # type: ignore[no-any-return]


def fallback_for(cls: type[P], seating: Seating) -> P:
    """Create a rule-based bot that moves in place of this seat's bot."""
    streams = seating.streams.for_fallback()
    return make_player(cls, replace(seating, streams=streams, services=None), {})
