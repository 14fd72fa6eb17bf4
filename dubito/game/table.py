"""A game with players at the table: seated and told by `Table`, asked for moves by `step`; neither trusts any.

Whatever a bot does wrong (R13) becomes a BotError with its name. With neither fallback nor forfeits it is raised; else
it is kept, and the fallback makes that one move on its own stream, or the game is forfeited. What the game's own code
raises is nobody's move: `GameCode` makes a GameError of it, and nothing is played on.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from typing import Any, Final, Protocol, cast

from dubito.errors import OUT_OF_MEMORY, BotError, DubitoError, GameError, IllegalOutput, RunStopped, one_line
from dubito.game import Game, GameEvent, Player, Seating, State, fallback_for, make_player
from dubito.game.streams import DealStreams

MOST_MOVES: Final = 1_000_000  # of a game between bots


class _Forfeitable(Protocol):
    """A state of a game whose `Game` says that it can be forfeited."""

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
        state: State,
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
        self.state: Any = state  # the game's own package knows more of it than a State
        self.deal, self.number = deal, number
        self.entrants = entrants
        self.errors: list[BotError] = []
        self.fallback_turns = [0] * len(entrants)
        self._fallback, self.forfeits = fallback, forfeits
        self._seatings, rules = [], getattr(state, "rules", None)
        for seat in range(len(entrants)):
            service = services[seat] if services else None
            look = partial(state.cards, seat)
            self._seatings.append(Seating(seat, number, deal, streams.seat(seat), look, service, rules))
        self._substitutes: dict[int, Player] = {}
        self.players = [self._seat(seat, entrant) for seat, entrant in enumerate(entrants)]
        self.watchers = [seat for seat, player in enumerate(self.players) if player is not None and player.observes()]
        if self.watchers:
            self.tell([state.start], 1)

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
        error = self.error(seat, turn, reason)
        if self._fallback is None and not self.forfeits:
            raise error
        self.errors.append(error)
        if self.forfeits and not self.state.over:
            cast(_Forfeitable, self.state).forfeit(seat)

    def error(self, seat: int, turn: int, reason: str) -> BotError:
        return BotError(self.entrants[seat].name, seat, self.number, self.deal, turn, reason)

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
                    self.failed(seat, turn, _blame("observe", error, player))
            if leaves in self.watchers:
                self.watchers.remove(leaves)


def step(table: Table, announce: bool = False) -> tuple[Any, Sequence[Any]]:
    """Make one move, of which a turn may take several: ask the player, apply its output, tell the table.

    Returns the output that was played, None where its seat forfeited instead, and the events, which are built only if
    `announce` is set or somebody observes. Raises BotError if the player fails and the table has neither fallback nor
    forfeits.
    """
    state = table.state
    seat = state.seat
    if table.watchers:
        announce = True
    player = table.players[seat]
    if player is not None:
        view = state.view()
        try:
            output = player.play(view)
        except BaseException as error:  # see _blame
            table.failed(seat, state.turns_played + 1, _blame("play", error, player))
        else:
            try:
                events = state.apply(output, announce)
            except IllegalOutput as error:
                table.failed(seat, state.turns_played + 1, one_line(str(error)))
            else:
                if announce:
                    output = state.copy_of(output)  # its lists are the bot's own, who may change them when it observes
                    table.tell(events, state.turns_played)
                return output, events
    if state.over:  # forfeited
        return None, []
    return _stood_in(table, seat, announce)


def _stood_in(table: Table, seat: int, announce: bool) -> tuple[Any, Sequence[Any]]:
    """The same move by the fallback; raises BotError where that fails too, and nobody is left to play it."""
    state = table.state
    table.fallback_turns[seat] += 1
    view, turn = state.view(), state.turns_played + 1
    try:
        output = table.substitute(seat).play(view)
    except BaseException as error:  # see _blame
        raise table.error(seat, turn, f"its fallback failed too: {_blame('play', error)}") from None
    try:
        events = state.apply(output, announce)
    except IllegalOutput as error:
        raise table.error(seat, turn, f"its fallback failed too: {one_line(str(error))}") from None
    table.tell(events, state.turns_played)
    return output, events


def play_game(table: Table) -> Any:
    """Step the game to its end and return it; raises Endless where it seems to have none."""
    state = table.state
    for _ in range(MOST_MOVES):
        if state.over:
            return state
        step(table)
    raise Endless


class Endless(Exception):
    """A game has gone on for so long that it is taken for one without an end; `GameCode` makes a GameError of it."""


def _blame(method: str, error: BaseException, player: Player | None = None) -> str:
    """Return the bot's fault in words, whatever it raised, sys.exit() included; raise what is not its fault.

    If there is no memory for a model player's turn, the run's many calls have used it up.
    """
    kind = type(error)  # an exception may lie about its __class__
    if issubclass(kind, (KeyboardInterrupt, RunStopped)):
        raise error
    if issubclass(kind, MemoryError) and player is not None and player.is_model:
        raise RunStopped(OUT_OF_MEMORY) from None
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
    if issubclass(type(error), NotImplementedError) and not text:
        text = one_line(f"{last.name} is not written")
    where = one_line(f"({last.filename.rsplit('/', 1)[-1]}, line {last.lineno})")
    return f"{method} raised {one_line(type(error).__name__)}: {text} {where}"


class GameCode:
    """Within, what the code of a game raises becomes a GameError that names the last of its lines that was run.

    What is raised on purpose passes, and so does what is raised where none of the game's lines was run.
    """

    def __init__(self, game: Game, number: int, deal: int) -> None:
        self._game, self._number, self._deal = game, number, deal
        self.state: Any = None  # once it is dealt

    def __enter__(self) -> "GameCode":
        return self

    def __exit__(self, kind: object, error: BaseException | None, where: object) -> None:
        if not isinstance(error, Exception) or isinstance(error, DubitoError):
            return
        import traceback  # late, as above

        if isinstance(error, Endless):
            raise self.fault(f"it has not ended after {MOST_MOVES:,} moves: give it a cap, and say so by Ending.capped")
        folder = str(import_module(self._game.package).__path__[0])
        own = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename.startswith(folder)]
        if own:
            last = own[-1]
            place = f"{folder.rsplit('/', 1)[-1]}/{last.filename.rsplit('/', 1)[-1]}, line {last.lineno}: {last.line}"
            raise self.fault(f"{last.name} raised {type(error).__name__}: {error} ({place})") from error

    def fault(self, reason: str) -> GameError:
        """What is wrong, as the error that stops the game."""
        try:
            turn = self.state.turns_played + 1 if self.state else 0
        except Exception:  # it is half made
            turn = 0
        return GameError(self._game.name, self._number, self._deal, turn, one_line(reason, 600))
