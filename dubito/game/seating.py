"""The base class of all bots, and how a bot gets its seat."""

from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass, replace
from random import Random
from typing import Any, ClassVar, Generic, TypeVar

from dubito.game.native import Held, Loose, mypyc_attr  # the compiler's; read `Loose[T]` as T
from dubito.game.streams import SeatStreams


@dataclass(slots=True)
class Seating:
    """Data attached to a bot before its `__init__`, one object per seat and game."""

    id: int  # the seat
    game: int
    deal: int
    streams: SeatStreams
    look: Callable[[SeatStreams], Any]  # builds `self.cards`
    services: object | None = None  # for a model player: its access to the model, set up by the run
    rules: object | None = None  # of the game; None: the defaults


@mypyc_attr(allow_interpreted_subclasses=True, serializable=True)
class Player(Generic[Held]):
    """Base of all bots of all games: receives views and returns outputs.

    `self.id` is the seat, `self.cards` the cards that it holds and `self.rng` the bot's own random stream. All three
    are available in `__init__`.
    """

    is_model: ClassVar[bool] = False  # True: asks a model, and needs the run's services
    is_program: ClassVar[bool] = False  # True: a program answers, which the run starts
    origin: ClassVar[str] = "not said"  # who wrote the bot, for `dubito bots`
    interface: ClassVar[str] = ""  # another project's, if the bot was written for it
    usual: ClassVar[bool] = True  # False: plays only if a config names it; not inherited

    _seating: Seating
    _rng: Loose[Random | None] = None  # set by the bot to replace its seat's stream
    _rules: Any = None  # rules of the game, if the game's own base exposes them
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

    def play(self, view: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__} has no play()")

    def observe(self, event: Any) -> None:
        """Receive what the table saw of a move. This is called after every move and does nothing by default."""

    @classmethod
    def observes(cls) -> bool:
        """Return whether to send events. Without observers, events are not built."""
        return cls.observe is not Player.observe


P = TypeVar("P", bound=Player)


def make_player(cls: type[P], seating: Seating, settings: Mapping[str, Any]) -> P:
    """Create a bot in its seat, with its own copy of the settings."""
    player: Any = cls.__new__(cls)
    player._seating = seating
    player.cards = seating.look(seating.streams)
    player.id = seating.id
    player.__init__(seating.id, **(deepcopy(dict(settings)) if settings else {}))
    return player  # type: ignore[no-any-return]


def fallback_for(cls: type[P], seating: Seating) -> P:
    """Create a rule-based bot that moves for this seat's own bot."""
    streams = seating.streams.for_fallback()
    return make_player(cls, replace(seating, streams=streams, services=None), {})
