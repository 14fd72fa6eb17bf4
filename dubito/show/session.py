"""One game before somebody: its source makes the moves, and whoever shows or keeps the game reads them as moments.

Sources are players at a table (of a person, of a run, of bots alone) and the outputs of a record.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from dubito.errors import BotError
from dubito.game import Spec
from dubito.game.record import Forfeit, play, records_of
from dubito.game.table import Table, step
from dubito.game.words import Label

MoveSource = Callable[[], tuple[Any, Sequence[Any]]]  # makes the next move: what was given back, and what was observed


@dataclass(frozen=True, slots=True)
class Moment:
    """A move that was made."""

    turn: int  # that it belongs to, from 1
    seat: int
    output: Any  # a Forfeit where a mistake has ended the game
    events: Sequence[Any]
    faults: Sequence[str] = ()  # what bots have done wrong since the last one, in sentences


class Session(Iterator[Moment]):
    """A game from its deal on; taking the next moment makes the next move."""

    def __init__(
        self,
        spec: Spec,
        game: Any,
        label: Label,
        move: MoveSource,
        *,
        errors: Sequence[BotError] = (),
        forfeits: bool = False,
        rules: Mapping[str, Any] | None = None,
    ) -> None:
        """`move` raises StopIteration where there is none left, and gives back None by a forfeit.

        `errors` are what bots do wrong, a list that grows; each ends the game where it `forfeits`. With `rules` the
        game is recorded.
        """
        self.spec, self.game, self.label, self.move = spec, game, label, move
        self.thinks: Callable[[int], bool] = lambda seat: False  # whether a seat's player may take its time
        self.outputs: list[Any] = []  # of a game that is recorded, as the game writes them
        self._errors, self._read, self._forfeits = errors, 0, forfeits
        self._recorder = None if rules is None else records_of(spec).recorder(game, rules)
        self._turn = 1

    @property
    def over(self) -> bool:
        """Whether a game at a table has no moment left: also a mistake that has ended it is told."""
        return self.game.over and not self._is_forfeited()

    def _is_forfeited(self) -> bool:
        return self._forfeits and len(self._errors) > self._read

    def __next__(self) -> Moment:
        seat, output = self.game.seat, None
        events: Sequence[Any] = ()
        if not self._is_forfeited():  # by who only observed, or sat down
            self._turn = self.game.turns_played + 1
            output, events = self.move()
        faults: list[str] = []
        errors = self._errors[self._read :]
        if output is None:
            output = Forfeit(errors[0].seat if errors else seat)
            faults = [str(error) for error in errors[:1]]
        elif not self._forfeits:
            faults = [f"{error}; {self.spec.fallback}'s rules played the turn" for error in errors]
        if isinstance(output, Forfeit) or faults:
            self._read = len(self._errors)
        moment = Moment(self._turn, seat, output, events, faults)
        if self._recorder is not None:
            self._recorder.add(moment.turn, output, events)
            forfeit = isinstance(output, Forfeit)
            self.outputs.append(asdict(output) if forfeit else self.spec.output_to_json(output))
        return moment

    def record(self, players: Sequence[str], seed: int, deal: int, number: int | None) -> Any:
        """The finished game, as its game keeps it; `number` is its own where what models are asked is kept."""
        assert self._recorder is not None
        return self._recorder.record(self.game, players, seed, deal, number)


def moves_at(table: Table) -> MoveSource:
    """Those of the players at a table."""

    def move() -> tuple[Any, Sequence[Any]]:
        if table.game.over:
            raise StopIteration
        return step(table, announce=True)

    return move


def of_outputs(spec: Spec, game: Any, outputs: Iterable[Any], label: Label) -> Session:
    """A game just dealt in which these are given back; an error of a move that cannot be made is passed on."""
    moves = ((output, play(game, output)) for output in outputs)
    return Session(spec, game, label, moves.__next__)


def of_record(spec: Spec, record: Any, label: Label) -> Session:
    """A saved game; raises UsageError if it is not dealt so."""
    game, outputs = records_of(spec).opened(record)
    return of_outputs(spec, game, outputs, label)
