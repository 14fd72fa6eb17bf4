"""Who sits where: the base of every bot of every game, and how an instance gets its seat."""

from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass, replace
from random import Random
from typing import Any, ClassVar, Generic, TypeVar

from dubito.game.native import Held, Loose, mypyc_attr  # the compiler's; read `Loose[T]` as T
from dubito.game.streams import SeatStreams


@dataclass(slots=True)
class Seating:
    """Where an instance sits: attached before its `__init__`, one per seat and game."""

    id: int  # the seat
    game: int
    deal: int
    streams: SeatStreams
    look: Callable[[SeatStreams], Any]  # makes what the bot holds as `self.cards`
    services: object | None = None  # for a model player: its way to ask, made by the run
    rules: object | None = None  # of the game; None: as the game's defaults have them


@mypyc_attr(allow_interpreted_subclasses=True, serializable=True)
class Player(Generic[Held]):
    """The base of every bot of every game: answers what it sees with an output.

    `self.id` is the seat, `self.cards` what it holds, `self.rng` the bot's own random stream; all three are there
    already in `__init__`.
    """

    is_model: ClassVar[bool] = False  # True: asks a model, and needs the run's services
    origin: ClassVar[str] = "not said"  # who wrote the bot, for `dubito bots`
    usual: ClassVar[bool] = True  # False: only where a config names it; not inherited

    _seating: Seating
    _rng: Loose[Random | None] = None  # of its own choice, in place of its seat's
    _rules: Any = None  # of its game, where the game's own base says them
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
        """Called after every move with what the table saw; does nothing by default."""

    @classmethod
    def observes(cls) -> bool:
        """Whether its instances are to be told anything; events are not built for nobody."""
        return cls.observe is not Player.observe


P = TypeVar("P", bound=Player)


def make_player(cls: type[P], seating: Seating, settings: Mapping[str, Any]) -> P:
    """A new instance in its seat; each gets settings of its own, so that none can reach another's."""
    player: Any = cls.__new__(cls)
    player._seating = seating
    player.cards = seating.look(seating.streams)
    player.id = seating.id
    player.__init__(seating.id, **(deepcopy(dict(settings)) if settings else {}))
    return player  # type: ignore[no-any-return]


def fallback_for(cls: type[P], seating: Seating) -> P:
    """A new instance of a rule-based bot, to play in the place of this seat's own."""
    streams = seating.streams.for_fallback()
    return make_player(cls, replace(seating, streams=streams, services=None), {})
