"""One game before somebody: its source makes the moves, and whoever shows or keeps the game reads them as moments.

Sources are players at a table (of a person, of a run, of bots alone) and the outputs of a record.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from dubito.errors import BotError, UsageError
from dubito.game import Game, PlayerKind
from dubito.game.bot_deadline import in_time
from dubito.game.find import Registry
from dubito.game.record import Forfeit, make_move, records_of
from dubito.game.streams import DealStreams
from dubito.game.table import Entrant, GameCode, Table, step
from dubito.game.words import Label, labels

if TYPE_CHECKING:
    from pydantic import BaseModel

    from dubito.show.company import Hear, Opponents, Speak

MoveSource = Callable[[], tuple[Any, Sequence[Any]]]  # makes the next move: what was given back, and what was observed


class Moment(NamedTuple):
    """A move that was made."""

    turn: int  # that it belongs to, from 1; a forfeit after a turn's last move counts to the next
    seat: int
    output: Any  # a Forfeit where a mistake has ended the game
    events: Sequence[Any]
    faults: Sequence[str] = ()  # what bots have done wrong since the last one, in sentences


class Session(Iterator[Moment]):
    """A game from its deal on; taking the next moment makes the next move."""

    def __init__(
        self,
        game: Game,
        state: Any,
        label: Label,
        move: MoveSource,
        *,
        table: Table | None = None,
        rules: Mapping[str, Any] | None = None,
    ) -> None:
        """`move` raises StopIteration where there is none left, and gives back None by a forfeit.

        What goes wrong at the `table` is told with the moves; with `rules` the game is recorded.
        """
        self.game, self.state, self.label, self.move = game, state, label, move
        self.thinks: Callable[[int], bool] = lambda seat: False  # whether a seat's player may take its time
        self.outputs: list[Any] = []  # of a game that is recorded, as the game writes them
        self._errors: Sequence[BotError] = table.errors if table else ()
        self._read, self._forfeits = 0, table is not None and table.forfeits
        self.code = GameCode(  # for whoever tells it: the game's words are its code too
            game, table.number if table else 0, table.deal if table else 0
        )
        self.code.state = state
        self._recorder: Any = None
        if rules is not None:
            self.keep(rules)

    def keep(self, rules: Mapping[str, Any]) -> None:
        self._recorder = records_of(self.game).recorder(self.state, rules)

    @property
    def over(self) -> bool:
        return self.state.over and not (self._forfeits and len(self._errors) > self._read)

    def __next__(self) -> Moment:
        seat, turn, output = self.state.seat, self.state.turns_played + 1, None
        events: Sequence[Any] = ()
        if not self._forfeits or len(self._errors) == self._read:  # else by who only observed, or sat down
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
            self._recorder.add(turn, output, events)
            forfeit = isinstance(output, Forfeit)
            self.outputs.append(asdict(output) if forfeit else self.game.output_to_json(output))
        return moment

    def record(self, players: Sequence[str], seed: int, deal: int, number: int | None) -> Any:
        assert self._recorder is not None
        return self._recorder.record(self.state, players, seed, deal, number)


def moves_at(table: Table) -> MoveSource:
    """Those of the players at a table."""

    def move() -> tuple[Any, Sequence[Any]]:
        if table.state.over:
            raise StopIteration
        return step(table, announce=True)

    return move


def of_outputs(game: Game, state: Any, outputs: Iterable[Any], label: Label) -> Session:
    moves = ((output, make_move(state, output)) for output in outputs)
    return Session(game, state, label, moves.__next__)


def of_record(game: Game, record: Any, label: Label) -> Session:
    state, outputs = records_of(game).opened(record)
    return of_outputs(game, state, outputs, label)


@dataclass(frozen=True)
class BotsGame:
    """A game of bots among themselves that has not begun."""

    registry: Registry
    company: "Opponents | None"  # of those that ask models, None where nobody does
    names: Sequence[str]  # of the players, seat by seat
    rules: "BaseModel"
    seed: int
    deal: int
    on_bot_error: str
    bot_deadline: float | None
    number: int | None  # its own, where what models are asked is kept

    def __post_init__(self) -> None:
        """Raise UsageError where it cannot be played so."""
        if self.on_bot_error == "forfeit" and not self.game.forfeits:
            raise UsageError(
                f"--on-bot-error forfeit: a game of {self.game.name} cannot be forfeited: choose stop or fallback"
            )
        self.dealt()  # raises UsageError where so many cannot play it

    @property
    def game(self) -> Game:
        return self.registry.game

    @property
    def label(self) -> Label:
        return labels(list(self.names), None)

    @property
    def kinds(self) -> list[PlayerKind]:
        return ["hand-written" for _ in self.names] if self.company is None else self.company.kinds(self.names)

    def dealt(self) -> Any:
        with GameCode(self.game, self.number or 0, self.deal):
            return self.game.dealt(self.rules, len(self.names), DealStreams(self.seed, self.deal).deck())

    def begin(self, hear: "Hear" = lambda thought: None, speak: "Speak" = lambda seat, words: None) -> Session:
        """Seat everybody; `hear` is told what models decide and `speak` what they say before it, as it comes; what
        either raises ends the game. Raises BotError.

        A move raises BotError where a bot fails and nothing else was asked for.
        """
        unsaid: list[Exception] = []  # raised within a bot's turn it would be blamed on the bot

        def guarded(tell: Callable[..., None]) -> Callable[..., None]:
            def told(*what: Any) -> None:
                try:
                    tell(*what)
                except Exception as error:  # nobody reads on, the disk is full
                    unsaid.append(error)

            return told

        entrants, services = self._entrants_and_services(guarded(hear), guarded(speak))
        table = Table(
            self.dealt(),
            entrants,
            DealStreams(self.seed, self.deal),
            deal=self.deal,
            number=self.number or 0,
            fallback=self.registry.fallback if self.on_bot_error == "fallback" else None,
            forfeits=self.on_bot_error == "forfeit",
            services=services,
        )

        at_table = moves_at(table)

        def move() -> Any:
            made = at_table()
            if unsaid:
                raise unsaid[-1]
            return made

        session = Session(self.game, table.state, self.label, move, table=table, rules=self.rules.model_dump())
        session.thinks = lambda seat: entrants[seat].bot.is_model
        return session

    def _entrants_and_services(self, hear: "Hear", speak: "Speak") -> tuple[list[Entrant], list[object]]:
        services = list[object]()
        if self.company is None:
            entrants = [Entrant(name, self.registry.find(name).cls) for name in self.names]
        else:
            entrants, services = self.company.among_themselves(self.names, self.seed, self.rules, hear, speak)
        if (deadline := self.bot_deadline) is not None:
            entrants = [
                each if each.bot.is_model else replace(each, bot=in_time(each.bot, deadline, self.game.nodes))
                for each in entrants
            ]
        return entrants, services

    def record(self, played: Session) -> Any:
        return played.record(self.names, self.seed, self.deal, self.number)
