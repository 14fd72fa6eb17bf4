"""A game as a series of moments, one per move.

The moves come from players at a table or from the outputs of a record. Viewers and recorders read the moments.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from dubito.errors import BotError, UsageError
from dubito.game import Game, GameEvent, PlayerKind, State
from dubito.game.bot_deadline import limit_bot_time
from dubito.game.events import EVERYTHING
from dubito.game.find import Registry
from dubito.game.moves import Forfeit, make_move
from dubito.game.reader import Reader, table_reader
from dubito.game.record import GameRecord, Recorder, Records
from dubito.game.seeds import Seed
from dubito.game.streams import DealStreams
from dubito.game.table import Entrant, GameCode, Table, step

if TYPE_CHECKING:
    from pydantic import BaseModel

    from dubito.show.opponents import OnDecision, OnText, Opponents

MoveSource = Callable[[], tuple[object, Sequence[GameEvent]]]  # makes the next move and returns its output and events


class Moment(NamedTuple):
    """A move that was made."""

    turn: int  # turn of the move, from 1; a forfeit after a turn's last move belongs to the next turn
    seat: int
    output: object  # a Forfeit if a mistake ended the game
    events: Sequence[GameEvent]
    faults: Sequence[str] = ()  # bot errors since the last moment, in sentences


class Session(Iterator[Moment]):
    """An iterator over the moments of a game. Each step makes the next move."""

    def __init__(
        self,
        game: Game,
        state: State,
        reader: Reader,
        move: MoveSource,
        *,
        table: Table | None = None,
        rules: Mapping[str, object] | None = None,
    ) -> None:
        """Set up the game.

        `move` raises StopIteration when no moves are left, and returns None as the output of a forfeit. Errors at the
        `table` are added to the moments. If `rules` are given, the game is recorded.
        """
        self.game, self.state, self.reader, self.move = game, state, reader, move
        self.thinks: Callable[[int], bool] = lambda seat: False  # whether a seat's player may take long
        self.outputs: list[object] = []  # for a recorded game, in the game's JSON format
        self._errors: Sequence[BotError] = table.errors if table else ()
        self._read, self._forfeits = 0, table is not None and table.forfeits
        self.code = GameCode(  # public, because the code that narrates a game also runs the game's code
            game, table.number if table else 0, table.deal if table else 0
        )
        self.code.state = state
        self._recorder: Recorder | None = None
        if rules is not None:
            self.start_recording(rules)

    def start_recording(self, rules: Mapping[str, object]) -> None:
        self._recorder = Recorder(self.game, self.state, rules)

    @property
    def over(self) -> bool:
        return self.state.over and not (self._forfeits and len(self._errors) > self._read)

    def __next__(self) -> Moment:
        seat, turn, output = self.state.seat, self.state.turns_played + 1, None
        events: Sequence[GameEvent] = ()
        # Do not move if a bot has already failed while it observed or was created.
        if not self._forfeits or len(self._errors) == self._read:
            with self.code:
                output, events = self.move()
        faults: list[str] = []
        if output is None or len(self._errors) > self._read:
            errors = self._errors[self._read :]
            if output is None:
                output, faults = Forfeit(errors[0].seat if errors else seat), [str(error) for error in errors[:1]]
            elif not self._forfeits:
                faults = [f"{error}; {self.game.fallback}'s rules played the turn" for error in errors]
            if faults:
                self._read = len(self._errors)
        moment = Moment(turn, seat, output, events, faults)
        if self._recorder is not None:
            self._recorder.add(turn, output, moment.events)
            self.outputs.append(asdict(output) if isinstance(output, Forfeit) else self.game.output_to_json(output))
        return moment

    def record(self, players: Sequence[str], seed: Seed | None, deal: int, number: int | None) -> GameRecord:
        assert self._recorder is not None
        return self._recorder.record(self.state, players, seed, deal, number)


def table_moves(table: Table) -> MoveSource:
    """Return a source of moves that lets the players at a table move."""

    def move() -> tuple[object, Sequence[GameEvent]]:
        if table.state.over:
            raise StopIteration
        return step(table, EVERYTHING)

    return move


def session_of_outputs(game: Game, state: State, outputs: Iterable[object], reader: Reader) -> Session:
    moves = ((output, make_move(state, output)) for output in outputs)
    return Session(game, state, reader, moves.__next__)


def session_of_record(game: Game, record: GameRecord, reader: Reader) -> Session:
    state, outputs = Records(game).deal_record(record)
    return session_of_outputs(game, state, outputs, reader)


@dataclass(frozen=True, slots=True)
class _GuardedCallback:
    """Collects a callback's errors, since a bot would be blamed for an error raised on its turn."""

    callback: Callable[..., None]
    errors: list[Exception]

    def __call__(self, *arguments: object) -> None:
        try:
            self.callback(*arguments)
        except Exception as error:  # for example, the reader has exited or the disk is full
            self.errors.append(error)


@dataclass(frozen=True)
class BotsGame:
    """A game between bots that has not started yet."""

    registry: Registry
    opponents: "Opponents | None"  # the players if any of them uses a model, otherwise None
    names: Sequence[str]  # player names, seat by seat
    rules: "BaseModel"
    seed: Seed
    deal: int
    on_bot_error: str
    bot_deadline: float | None
    number: int | None  # the game's number in the database of model calls

    def __post_init__(self) -> None:
        """Raise UsageError if the game cannot be played with these settings."""
        if self.on_bot_error == "forfeit" and not self.game.forfeits:
            raise UsageError(
                f"--on-bot-error forfeit: games of {self.game.name} cannot be forfeited; choose stop or fallback"
            )
        self.deal_state()  # raises UsageError if the number of players is wrong

    @property
    def game(self) -> Game:
        return self.registry.game

    @property
    def reader(self) -> Reader:
        return table_reader(list(self.names))

    @property
    def kinds(self) -> list[PlayerKind]:
        return ["hand-written" for _ in self.names] if self.opponents is None else self.opponents.kinds(self.names)

    def deal_state(self) -> State:
        with GameCode(self.game, self.number or 0, self.deal):
            state: State = self.game.deal_game(self.rules, len(self.names), DealStreams(self.seed, self.deal).deck())
            return state

    def start(
        self, on_decision: "OnDecision" = lambda thought: None, on_text: "OnText" = lambda seat, words: None
    ) -> Session:
        """Seat all players and return the session. Raises BotError.

        `on_decision` is called with models' decisions, and `on_text` with their streamed text. If one of these
        callbacks fails, the game ends with its error. If a bot fails and `on_bot_error` is "stop", its move raises
        BotError.
        """
        from dubito.seats.program import end_programs  # imported late because few games have programs

        callback_errors: list[Exception] = []
        callbacks = (_GuardedCallback(one, callback_errors) for one in (on_decision, on_text))
        entrants, services = self._entrants_and_services(*callbacks)
        table = Table(
            self.deal_state(),
            entrants,
            DealStreams(self.seed, self.deal),
            deal=self.deal,
            number=self.number or 0,
            fallback=self.registry.fallback if self.on_bot_error == "fallback" else None,
            forfeits=self.on_bot_error == "forfeit",
            services=services,
        )

        at_table = table_moves(table)

        def move() -> tuple[object, Sequence[GameEvent]]:
            made = at_table()
            if table.state.over:
                end_programs(services, self.game.results, table.state.ending())
            if callback_errors:
                raise callback_errors[-1]
            return made

        session = Session(self.game, table.state, self.reader, move, table=table, rules=self.rules.model_dump())
        session.thinks = lambda seat: entrants[seat].bot.is_model or entrants[seat].bot.is_program
        return session

    def _entrants_and_services(
        self, on_decision: "OnDecision", on_text: "OnText"
    ) -> tuple[list[Entrant], list[object]]:
        services = list[object]()
        if self.opponents is None:
            entrants = [Entrant(name, self.registry.find(name).cls) for name in self.names]
        else:
            entrants, services = self.opponents.seat_bots(self.names, self.seed, self.rules, on_decision, on_text)
        if (deadline := self.bot_deadline) is not None:
            entrants = [
                each
                if each.bot.is_model or each.bot.is_program
                else replace(each, bot=limit_bot_time(each.bot, deadline, self.game.nodes))
                for each in entrants
            ]
        return entrants, services

    def record(self, played: Session) -> GameRecord:
        return played.record(self.names, self.seed, self.deal, self.number)
