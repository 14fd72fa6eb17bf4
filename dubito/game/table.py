"""A game with players at the table. `step` is the only place that calls players, and it trusts none.

Whatever a bot does wrong (R13) becomes a BotError with its name. Without a fallback it is raised; with
one, the whole turn is played by the fallback's rules on the fallback's stream, and the error is kept.

A deadline for bots: a call that takes too long is interrupted, and is the bot's error.

The system's alarm does it, which reaches the main thread of a process between two steps of Python: it ends
loops and waits, but no single call into C that never comes back. A bot without a deadline is not touched.
"""

import signal
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from types import FrameType
from typing import Any, Final, Protocol, TypeVar, cast

from dubito.errors import BotError, IllegalOutput, RunStopped, UsageError, one_line
from dubito.game import GameEvent, Node, Player, Seating, State, fallback_for, make_player
from dubito.game.streams import DealStreams


class _Forfeitable(Protocol):
    """A state of a game whose `Spec` says that it can be forfeited."""

    def forfeit(self, seat: int) -> None:
        """This seat has failed: the game is over, as the game has it."""


@dataclass(frozen=True, slots=True)
class Entrant:
    """A bot with its settings, under the name it plays by."""

    name: str
    bot: type[Player]
    settings: Mapping[str, Any] = field(default_factory=dict)


class Table:
    """One game and who sits at it, seat by seat."""

    def __init__(
        self,
        game: State,
        entrants: Sequence[Entrant],
        streams: DealStreams,
        *,
        deal: int = 0,
        number: int = 0,
        fallback: type[Player] | None = None,
        forfeits: bool = False,
        services: Sequence[object] = (),
    ) -> None:
        """Seat the players and tell those who observe that the game starts.

        `number` is the game's in its run, `services` what its model players need, by seat. Raises BotError
        if one fails, unless there is a `fallback` or the game `forfeits`.
        """
        self.game: Any = game  # the game's own package knows more of it than a State
        self.deal, self.number = deal, number
        self.entrants = entrants
        self.errors: list[BotError] = []
        self.fallback_turns = [0] * len(entrants)
        self._fallback, self.forfeits = fallback, forfeits
        self._seatings, rules = [], getattr(game, "rules", None)
        for seat in range(len(entrants)):
            service = services[seat] if services else None
            look = partial(game.cards, seat)
            self._seatings.append(Seating(seat, number, deal, streams.seat(seat), look, service, rules))
        self._substitutes: dict[int, Player] = {}
        self.players = [self._seat(seat, entrant) for seat, entrant in enumerate(entrants)]
        self.watchers = [seat for seat, player in enumerate(self.players) if player is not None and player.observes()]
        if self.watchers:
            self.tell([game.start], 1)

    def _seat(self, seat: int, entrant: Entrant) -> Player | None:
        try:
            return make_player(entrant.bot, self._seatings[seat], entrant.settings)
        except BaseException as error:  # see _blame
            self.failed(seat, 1, _blame("__init__", error))
            return None

    def substitute(self, seat: int) -> Player:
        """Who plays this seat's turn when its bot failed; all draws come from the fallback's stream."""
        if seat not in self._substitutes:
            assert self._fallback is not None  # failed() raised otherwise
            self._substitutes[seat] = fallback_for(self._fallback, self._seatings[seat])
        return self._substitutes[seat]

    def failed(self, seat: int, turn: int, reason: str) -> None:
        """Name the bot's error at this turn, counted from 1: raise it, or keep it where the table says what follows."""
        error = BotError(self.entrants[seat].name, seat, self.number, self.deal, turn, reason)
        if self._fallback is None and not self.forfeits:
            raise error
        self.errors.append(error)
        if self.forfeits and not self.game.over:
            cast(_Forfeitable, self.game).forfeit(seat)

    def tell(self, events: Sequence[GameEvent], turn: int) -> None:
        """Let everyone observe who is in the game at that moment; a winner sees its win, then no more (R26)."""
        for event in events:
            only, leaves = event.only, event.leaves
            for seat in self.watchers:
                if only is not None and only != seat:
                    continue
                player = self.players[seat]
                assert player is not None
                try:
                    player.observe(event)
                except BaseException as error:  # see _blame
                    self.failed(seat, turn, _blame("observe", error))
            if leaves in self.watchers:
                self.watchers.remove(leaves)


def step(table: Table, announce: bool = False) -> tuple[Any, Sequence[Any]]:
    """Play one turn: ask the player, apply its output, tell the table.

    Returns the output that was played and the events, which are built only if `announce` is set or
    somebody observes. Raises BotError if the player fails and the table has no fallback.
    """
    game = table.game
    seat = game.seat
    if table.watchers:
        announce = True
    player = table.players[seat]
    if player is not None:
        try:
            output = player.play(game.view())
            events = game.apply(output, announce)
        except BaseException as error:  # see _blame
            table.failed(seat, game.turns_played + 1, _blame("play", error))
        else:
            if announce:
                output = game.copy_of(output)  # its lists are the bot's own, who may change them when it observes
                table.tell(events, game.turns_played)
            return output, events
    if game.over:  # forfeited
        return None, []
    table.fallback_turns[seat] += 1
    output = table.substitute(seat).play(game.view())
    events = game.apply(output, announce)
    table.tell(events, game.turns_played)
    return output, events


def play_game(table: Table) -> Any:
    """Step the game to its end and return it."""
    game = table.game
    while not game.over:
        step(table)
    return game


def _blame(method: str, error: BaseException) -> str:
    """The bot's fault in words, whatever it raised, sys.exit() included; what is not its fault is re-raised."""
    kind = type(error)  # an exception may lie about its __class__
    if issubclass(kind, (KeyboardInterrupt, RunStopped)):
        raise error
    try:
        return _describe(method, error)
    except BaseException:  # describing it ran its own code; it has no more to say
        return f"{method} raised an error that cannot be described"


def _describe(method: str, error: BaseException) -> str:
    try:
        text = one_line(str(error))
    except BaseException:  # the exception is the bot's, and so is its __str__
        text = "(its text cannot be read)"
    if type(error) is IllegalOutput:
        return text
    import traceback  # late: few bots fail, and it takes a while to load

    last = traceback.extract_tb(error.__traceback__)[-1]
    where = one_line(f"({last.filename.rsplit('/', 1)[-1]}, line {last.lineno})")
    return f"{method} raised {one_line(type(error).__name__)}: {text} {where}"


_STEP: Final = 1e-6  # seconds

T = TypeVar("T")
P = TypeVar("P", bound=Player)


class _TooLate(BaseException):  # no Exception: bots catch those
    """Raised in a bot's code when its time is over."""


def in_time(cls: type[P], seconds: float, nodes: Sequence[Node]) -> type[P]:
    """The same bot, of a game with these nodes, whose `__init__`, turns and events may take so many seconds each.

    A call that takes longer raises IllegalOutput with the node or the method, and the line. Raises UsageError
    where nothing can interrupt a bot.
    """
    if not hasattr(signal, "setitimer"):
        raise UsageError("bot_deadline: this system has no alarm that could interrupt a bot: leave it out")
    if threading.current_thread() is not threading.main_thread():
        raise UsageError("bot_deadline: only the main thread of a process can be interrupted: leave it out")

    letters = {node.method: node.name for node in nodes}

    def call(method: str, call: Callable[[], T]) -> T:
        return _call(seconds, letters, method, call)

    def __init__(self: Player, id: int, **settings: Any) -> None:  # noqa: N807, it becomes a method
        call("__init__", lambda: cast(Any, cls).__init__(self, id, **settings))

    def play(self: Player, view: Any) -> Any:
        return call("play", lambda: cast(Any, cls).play(self, view))

    def observe(self: Player, event: Any) -> None:
        call("observe", lambda: cast(Any, cls).observe(self, event))

    methods: dict[str, Any] = {"__module__": cls.__module__, "__doc__": cls.__doc__, "__init__": __init__, "play": play}
    if cls.observes():  # who does not observe is told nothing
        methods["observe"] = observe
    timed: type[P] = cast(Any, type(cls))(cls.__name__, (cls,), methods)
    return timed


def _call(seconds: float, letters: Mapping[str, str], method: str, call: Callable[[], T]) -> T:
    """What the call returns, if it does in time."""
    running, reason, rings = True, "", 0

    def ring(_: int, frame: FrameType | None) -> None:
        nonlocal reason, rings
        if not running:
            return
        reason = reason or _reason(seconds, letters, method, frame)
        # A bot may catch this one. The next comes at once, then a step later and later: one of them falls between.
        rings = rings % 1000 + 1
        signal.setitimer(signal.ITIMER_REAL, rings * _STEP)
        raise _TooLate

    handler, timer = signal.signal(signal.SIGALRM, ring), signal.getitimer(signal.ITIMER_REAL)
    try:
        signal.setitimer(signal.ITIMER_REAL, seconds)
        returned = call()
        running = False  # Python looks for signals at calls and loops: none rings between the call and this
        if not reason:  # else the bot caught the alarm, and answered late
            return returned
    except _TooLate:
        pass
    except Exception:
        if not reason:  # else it was interrupted, and failed for that
            raise
    finally:
        running = False
        signal.setitimer(signal.ITIMER_REAL, *timer)
        signal.signal(signal.SIGALRM, handler)
    raise IllegalOutput(reason)


def _reason(seconds: float, letters: Mapping[str, str], method: str, frame: FrameType | None) -> str:
    """What the bot was at, the node if it was asked one, and in which line."""
    assert frame is not None  # the main thread runs
    file, line = frame.f_code.co_filename.rsplit("/", 1)[-1], frame.f_lineno
    while frame is not None and frame.f_code is not _call.__code__:
        if (name := frame.f_code.co_name) in letters:
            method = f"node {letters[name]} ({name})"
        frame = frame.f_back
    return f"{method} took longer than {seconds:g} s {one_line(f'({file}, line {line})')}"
