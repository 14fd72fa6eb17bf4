"""Play games between bots: `Table` seats and notifies the bots, and `step` makes a move.

Bots are not trusted. A mistake (R13) becomes a BotError with the bot's name. If the table has neither a fallback nor
forfeits, the error is raised. Otherwise it is recorded, and either the fallback makes this one move, using its own
random stream, or the seat forfeits the game.

Errors in the game's own code are not blamed on a player. `GameCode` turns them into a GameError, and the game stops.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from typing import Any, Final, Generic, Protocol, cast

from dubito.errors import OUT_OF_MEMORY, BotError, DubitoError, GameError, IllegalOutput, RunStopped, one_line
from dubito.game.base import AnyState, BaseGame, State
from dubito.game.events import ANNOUNCED, EVERYTHING, GameEvent
from dubito.game.log import AnswerNotes, Log
from dubito.game.seating import Player, Seating, fallback_for, make_player
from dubito.game.streams import DealStreams

MAX_MOVES: Final = 1_000_000  # in a game between bots


class Forfeitable(Protocol):
    """A state of a game with forfeits."""

    def forfeit(self, seat: int) -> None:
        """End the game because this seat failed."""


@dataclass(frozen=True, slots=True)
class Entrant:
    """A bot with its settings and its display name."""

    name: str
    bot: type[Player]
    settings: Mapping[str, object] = field(default_factory=dict)


class Table(Generic[AnyState]):
    """A game and the players at its table, in seat order."""

    def __init__(
        self,
        state: AnyState,
        entrants: Sequence[Entrant],
        streams: DealStreams,
        *,
        deal: int = 0,
        number: int = 0,
        fallback: type[Player] | None = None,
        forfeits: bool = False,
        services: Sequence[object] = (),
    ) -> None:
        """Create the players and announce the start of the game.

        `number` is the game's number in its run. `services` gives the model players access to their models, by
        seat. Raises BotError if a bot fails and there is neither a `fallback` nor `forfeits`.
        """
        self.state = state
        self.deal, self.number = deal, number
        self.entrants, self.services = entrants, services
        self.errors: list[BotError] = []
        self.fallback_turns = [0] * len(entrants)
        self._fallback, self.forfeits = fallback, forfeits
        bots = [*(entrant.bot for entrant in entrants), *([fallback] if fallback else ())]
        is_read = any(bot.is_model or bot.is_program or bot.reads_log for bot in bots)
        self.log = Log(state.start) if is_read else None
        self._seatings, rules = [], getattr(state, "rules", None)
        for seat in range(len(entrants)):
            service = services[seat] if services else None
            look = partial(state.cards, seat)
            log = None if self.log is None else self.log.of(seat)
            self._seatings.append(Seating(seat, number, deal, streams.seat(seat), look, service, rules, log))
        self._substitutes: dict[int, Player] = {}
        self.players = [self._seat(seat, entrant) for seat, entrant in enumerate(entrants)]
        self.watchers = [
            seat for seat, player in enumerate(self.players) if player is not None and player.needs_events()
        ]
        self.announce = 0  # how much the table needs to know of each move
        self._set_announce()
        if self.log is not None:
            self._log_answers(self.log)
        if self.watchers:
            self._notify_watchers(state.start, 1)

    def keep_log(self) -> Log:
        """Keep a log from now on, and return it. Call this before the first move."""
        if self.log is None:
            self.log = Log(self.state.start)
            self._log_answers(self.log)
            self._set_announce()
        return self.log

    def _log_answers(self, log: Log) -> None:
        for seat, player in enumerate(self.players):
            if player is not None:
                player.report_answers(AnswerNotes(log, seat))

    def _set_announce(self) -> None:
        self.announce = EVERYTHING if self.log is not None else ANNOUNCED if self.watchers else 0

    def _seat(self, seat: int, entrant: Entrant) -> Player | None:
        try:
            return make_player(entrant.bot, self._seatings[seat], entrant.settings)
        except BaseException as error:  # see _blame
            self.record_failure(seat, 1, _blame("__init__", error))
            return None

    def substitute(self, seat: int) -> Player:
        """Return the bot that moves when this seat's bot fails.

        All its draws come from the seat's fallback stream.
        """
        if seat not in self._substitutes:
            assert self._fallback is not None  # otherwise `record_failure` raised an error
            player = self._substitutes[seat] = fallback_for(self._fallback, self._seatings[seat])
            if self.log is not None:
                player.report_answers(AnswerNotes(self.log, seat))
        return self._substitutes[seat]

    def record_failure(self, seat: int, turn: int, reason: str) -> None:
        """Handle a bot's error on this turn, counted from 1.

        Raises the error if the table has neither a fallback nor forfeits. Otherwise records it, and forfeits the game
        if the table has forfeits.
        """
        error = self.bot_error(seat, turn, reason)
        if self._fallback is None and not self.forfeits:
            raise error
        self.errors.append(error)
        if self.forfeits and not self.state.over:
            cast(Forfeitable, self.state).forfeit(seat)

    def bot_error(self, seat: int, turn: int, reason: str) -> BotError:
        return BotError(self.entrants[seat].name, seat, self.number, self.deal, turn, reason)

    def send_events(self, events: Sequence[GameEvent], turn: int) -> None:
        """Add events to the log, if one is kept, and send them to the players who observe."""
        if self.log is not None:
            self.log.add(events)
        if self.watchers:
            self._notify_watchers(events, turn)

    def _notify_watchers(self, events: Sequence[GameEvent], turn: int) -> None:
        """Send events to the players who observe. A winner observes nothing after its win (R26)."""
        for event in events:
            if event.silent:
                continue
            only, leaves = event.only, event.leaves
            for seat in self.watchers:
                if only is not None and only != seat:
                    continue
                player = self.players[seat]
                assert player is not None
                try:
                    player.observe(event)
                except BaseException as error:  # see _blame
                    self.record_failure(seat, turn, _blame("observe", error, player))
            if leaves in self.watchers:
                self.watchers.remove(leaves)
                self._set_announce()


def step(table: Table, announce: int = 0) -> tuple[Any, Sequence[GameEvent]]:
    """Make a single move; turns can consist of several.

    Asks the player, applies its output and notifies the table. Returns the output, or None after a forfeit, and the
    events. Events are only built if `announce` is set, a player observes or the table keeps a log. Raises BotError if
    the player fails and the table has neither a fallback nor forfeits.
    """
    state = table.state
    seat = state.seat
    if table.announce > announce:
        announce = table.announce
    player = table.players[seat]
    if player is not None:
        view = state.view()
        try:
            output = player.play(view)
        except BaseException as error:  # see _blame
            table.record_failure(seat, state.turns_played + 1, _blame("play", error, player))
        else:
            try:
                events = state.apply(output, announce)
            except IllegalOutput as error:
                table.record_failure(seat, state.turns_played + 1, one_line(str(error)))
            else:
                if announce:
                    # The bot may modify its lists while it observes, so keep a copy.
                    output = copy_output(state, output)
                    table.send_events(events, state.turns_played)
                return output, events
    if state.over:  # the seat forfeited
        return None, []
    return _play_fallback(table, seat, announce)


def _play_fallback(table: Table, seat: int, announce: int) -> tuple[object, Sequence[GameEvent]]:
    """Let the fallback make the move. Raises BotError if the fallback also fails."""
    state = table.state
    table.fallback_turns[seat] += 1
    view, turn = state.view(), state.turns_played + 1
    try:
        output = table.substitute(seat).play(view)
    except BaseException as error:  # see _blame
        raise table.bot_error(seat, turn, f"its fallback also failed: {_blame('play', error)}") from None
    try:
        events = state.apply(output, announce)
    except IllegalOutput as error:
        raise table.bot_error(seat, turn, f"its fallback also failed: {one_line(str(error))}") from None
    table.send_events(events, state.turns_played)
    return output, events


def play_game(table: Table[AnyState]) -> AnyState:
    """Play the game until it is over and return its state.

    Raises EndlessGame after `MAX_MOVES` moves.
    """
    state = table.state
    for _ in range(MAX_MOVES):
        if state.over:
            return state
        step(table)
    raise EndlessGame


class EndlessGame(Exception):
    """Raised when a game has too many moves. `GameCode` turns it into a GameError."""


def _blame(method: str, error: BaseException, player: Player | None = None) -> str:
    """Describe anything that a bot raised, including sys.exit().

    Re-raises errors that are not the bot's fault, such as running out of memory on a model player's turn because of the
    run's parallel calls.
    """
    kind = type(error)  # an exception may fake its __class__
    if issubclass(kind, (KeyboardInterrupt, RunStopped)):
        raise error
    if issubclass(kind, MemoryError) and player is not None and player.is_model:
        raise RunStopped(OUT_OF_MEMORY) from None
    try:
        return _describe(method, error)
    except BaseException:  # describing the error ran the bot's code, which failed again
        return f"{method} raised an error that cannot be described"


def _describe(method: str, error: BaseException) -> str:
    try:
        text = one_line(str(error))
    except BaseException:  # the exception is the bot's, and so is its __str__
        text = "(its text cannot be read)"
    if type(error) is IllegalOutput:
        return text
    import traceback  # imported late because few bots fail and the import is slow

    last = traceback.extract_tb(error.__traceback__)[-1]
    if issubclass(type(error), NotImplementedError) and not text:
        text = one_line(f"{last.name} is not implemented")
    where = one_line(f"({last.filename.rsplit('/', 1)[-1]}, line {last.lineno})")
    return f"{method} raised {one_line(type(error).__name__)}: {text} {where}"


@dataclass(eq=False, slots=True)
class GameCode:
    """Context manager that turns errors in a game's code into a GameError with the last line of that code.

    Deliberate errors pass through, and so do errors whose traceback does not contain the game's code.
    """

    game: BaseGame
    number: int
    deal: int
    state: State | None = None  # set when the game is dealt

    def __enter__(self) -> "GameCode":
        return self

    def __exit__(self, kind: object, error: BaseException | None, where: object) -> None:
        if not isinstance(error, Exception) or isinstance(error, DubitoError):
            return
        import traceback  # imported late, as above

        if isinstance(error, EndlessGame):
            raise self.fault(
                f"it has not ended after {MAX_MOVES:,} moves; limit the number of moves and set Ending.capped"
            )
        folder = str(import_module(self.game.package).__path__[0])
        own = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename.startswith(folder)]
        if own:
            last = own[-1]
            place = f"{folder.rsplit('/', 1)[-1]}/{last.filename.rsplit('/', 1)[-1]}, line {last.lineno}: {last.line}"
            raise self.fault(f"{last.name} raised {type(error).__name__}: {error} ({place})") from error

    def fault(self, reason: str) -> GameError:
        """Return the error that stops the game."""
        try:
            turn = self.state.turns_played + 1 if self.state else 0
        except Exception:  # the state is only partly built
            turn = 0
        return GameError(self.game.name, self.number, self.deal, turn, one_line(reason, 600))


class Copying(Protocol):
    """A state of a game whose outputs can be changed by the bots that returned them."""

    def copy_of(self, output: Any) -> object:
        """Return a copy of an applied output that no bot holds a reference to."""


def copy_output(state: State, output: object) -> object:
    """Return an applied output, or a copy if it is not a string or a number."""
    return output if isinstance(output, str | int) else cast(Copying, state).copy_of(output)
