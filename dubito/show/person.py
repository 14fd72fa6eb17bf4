"""A game with a person at the table.

Bots move through the same code as in a run. The person's output is checked before the move is made, so that mistakes
change nothing.
"""

import secrets
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from pydantic import BaseModel, ValidationError

from dubito.commands import build_command
from dubito.errors import IllegalOutput, UsageError
from dubito.files import describe_fault
from dubito.game import Game, Player, State
from dubito.game.events import GameEvent
from dubito.game.find import DUBITO
from dubito.game.moves import Forfeit, output_of, repeat_move
from dubito.game.reader import Reader, table_reader
from dubito.game.record import DealChange, GameRecord, Strict, deal_seats
from dubito.game.seeds import Seed
from dubito.game.streams import DealStreams
from dubito.game.table import Entrant, Table
from dubito.game.words import person_sentences
from dubito.packages import games_path_words
from dubito.settings import Setting
from dubito.show.lie_review import LieReview, review_lies
from dubito.show.opponents import Opponents
from dubito.show.session import Moment, Session, session_of_record, table_moves

GUEST: Final = "Guest"  # the person's name in records
MAX_NAME: Final = 24  # maximum length of the name that a person enters
SEEDS: Final = 2**53  # upper limit of random seeds: integers that every browser represents exactly


class Guest(Player):
    """The player for the person at the table. It plays the output that was set."""

    output: object = None

    def play(self, view: object) -> object:
        return self.output


@dataclass(frozen=True, slots=True)
class Setup(Strict):
    """Everything that determines a game, except for the person's moves."""

    bots: list[str]
    seat: int
    seed: Seed
    deal: int = 0
    rules: dict[str, Any] = field(default_factory=dict)  # rules of the game
    game: str = DUBITO
    moment: str = ""  # the recorded turn that the person plays on from, as RUN:GAME:TURN
    begun: list[Any] = field(default_factory=list)  # the outputs before it, in the game's JSON format
    change: DealChange | None = None  # if the seed deals other hidden cards

    def __post_init__(self) -> None:
        if GUEST in self.bots:
            raise UsageError(f"the name {GUEST} is reserved for the person at the table")
        if not 0 <= self.seat <= len(self.bots):
            raise UsageError(f"seat: {self.seat} is not between 0 and {len(self.bots)}")

    @property
    def players(self) -> list[str]:
        return [*self.bots[: self.seat], GUEST, *self.bots[self.seat :]]

    def changed_rules(self, game: Game) -> dict[str, object]:
        defaults = game.rules().model_dump()
        return {key: value for key, value in self.rules.items() if value != defaults.get(key)}

    def replay_command(self, game: Game, program: str | None = None) -> str:
        """Return the command that deals the same cards in the terminal. `program` is as in `build_command`."""
        if self.moment:
            words = ["play", "--from", self.moment, "--seat", self.seat]
            for setting in self.change.settings if self.change else ():
                words += ["--set", setting]
            if self.change and self.change.sample is not None:
                words += ["--worlds", "sampled", "--seed", self.change.sample]
            return build_command(*words, *games_path_words(), program=program)
        words = ["play", *self.bots, "--seed", self.seed, "--deal", self.deal, "--seat", self.seat]
        words += [] if game.name == DUBITO else ["--game", game.name]
        fields = type(game.rules()).model_fields
        for key, value in self.changed_rules(game).items():
            words += Setting(key, fields[key]).to_words(value)
        return build_command(*words, *games_path_words(), program=program)

    def deal_game(self, game: Game) -> tuple[State, DealStreams]:
        """Deal the game and return it with its random streams. Raises UsageError."""
        try:
            rules = game.rules(**self.rules)
        except (ValidationError, TypeError) as error:
            reason = describe_fault(error, "rules") if isinstance(error, ValidationError) else "rules: not valid"
            raise UsageError(f"these rules of {game.name} are invalid: {reason}") from None
        return deal_seats(game, rules, len(self.players), self.seed, self.deal, self.change)


def set_up(
    game: Game, bots: Sequence[str], rules: BaseModel, seat: int | None, seed: Seed | None, deal: int = 0
) -> Setup:
    """Create a setup. A missing seat or seed is chosen at random.

    Raises UsageError if the game cannot be dealt.
    """
    seed = secrets.randbelow(SEEDS) if seed is None else seed
    if seat is None:
        seat = DealStreams(seed, deal).seating().randrange(len(bots) + 1)
    setup = Setup(list(bots), seat, seed, deal, rules.model_dump(), game.name)
    setup.deal_game(game)
    return setup


class Sitting(Session):
    """A game with a person at the table, narrated to that person move by move."""

    def __init__(
        self,
        setup: Setup,
        game: Game,
        bots: Sequence[Entrant],
        fallback: type[Player],
        services: Sequence[object] = (),
        number: int = 0,
        spoken: dict[int, int] | None = None,
    ) -> None:
        """Deal the cards to the person and the bots of `setup`.

        If a bot fails, `fallback` makes its move and the error is added to `errors`. `services` contains one entry per
        bot. `number` is the game's number in the database of model calls. `spoken` maps each seat to the number of
        words that its model has streamed before its current move.
        """
        self.setup, self.me = setup, setup.seat
        self.asks_models = any(bot.bot.is_model for bot in bots)
        self.number = number if services else 0
        self.words = words = game.words
        seats = [*bots[: self.me], Entrant(GUEST, Guest), *bots[self.me :]]
        seat_services = [*services[: self.me], None, *services[self.me :]] if services else ()
        state, streams = setup.deal_game(game)
        reader = table_reader(setup.players, self.me)
        self.teller = words.teller(state, reader)
        self.start = person_sentences(words, state.start, reader)
        self._table = table = Table(
            state, seats, streams, deal=setup.deal, number=self.number, fallback=fallback, services=seat_services
        )
        self._next_move = table_moves(table)
        super().__init__(game, state, reader, self._move, table=table, rules=setup.rules)
        self.thinks = lambda seat: seats[seat].bot.is_model or seats[seat].bot.is_program
        self.spoken = {} if spoken is None else spoken
        self.log: list[tuple[int, str]] = []  # all lines shown to the person, with the turn

    @property
    def repeats(self) -> bool:
        """Whether the next move is one before the moment that the person plays on from."""
        return len(self.outputs) < len(self.setup.begun)

    @property
    def is_asked(self) -> bool:
        return not self.state.over and self.state.seat == self.me and not self.repeats

    def _move(self) -> tuple[object, Sequence[GameEvent]]:
        if not self.repeats:
            return self._next_move()
        output = output_of(self.game, self.setup.begun[len(self.outputs)])
        return output, repeat_move(self._table, output)

    @property
    def errors(self) -> list[str]:
        return [str(error) for error in self._table.errors]

    def rules(self) -> list[str]:
        return self.words.rules(self.game.rules(**self.setup.rules), len(self.setup.players))

    def why_illegal(self, output: object) -> str | None:
        return self.words.why_illegal(self.state, output)

    def step(self, output: object = None) -> tuple[Moment, list[str]]:
        """Make a move, with `output` if it is the person's, and describe it to them.

        Raises IllegalOutput and changes nothing if the move is illegal.
        """
        state, table, stood_in = self.state, self._table, sum(self._table.fallback_turns)
        if self.is_asked:
            reason = "it is your turn" if output is None else self.why_illegal(output)
            if reason is not None:
                raise IllegalOutput(reason)
            me = table.players[self.me]
            assert isinstance(me, Guest)
            me.output = output
        elif state.over or output is not None:
            raise IllegalOutput("the game is over" if state.over else "it is not your turn")
        self.spoken.clear()
        moment = next(self)
        seat, played = moment.seat, moment.output
        lines = self.teller.describe_move(seat, played, moment.events)
        words = person_sentences(self.words, moment.events, self.reader)
        if not words and seat != self.me:
            words = [line.sentence for line in lines if line.sentence]
        # No event describes this, because other seats do not observe it.
        if seat == self.me and isinstance(played, bool):
            words.insert(0, f"You answered {'yes' if played else 'no'}.")
        if sum(table.fallback_turns) > stood_in:
            words.insert(0, f"{self.reader.starts(seat)} failed, so {self.game.fallback}'s rules played its turn.")
        if state.over:
            if table.services:
                from dubito.seats.program import end_programs  # imported late because few games have programs

                end_programs(table.services, self.game.results, state.ending())
            words.append(self.teller.ending()[0])
        self.log += [(moment.turn, line) for line in words]
        return moment, words

    def stop_programs(self) -> None:
        """Stop the programs at the table. They restart when they are asked to move."""
        if self._table.services:
            from dubito.seats.program import close_programs  # imported late because few games have programs

            close_programs(self._table.services)

    def replay(self, outputs: Iterable[object], take: Callable[[object], object]) -> None:
        """Repeat recorded moves, starting at the deal.

        `take` makes each move, with the output if it is the person's. Raises UsageError if a bot now plays differently.
        """
        for kept in outputs:
            seat, output = self.state.seat, output_of(self.game, kept)
            take(output if self.is_asked else None)
            if self.outputs[-1] != self.game.output_to_json(output):
                name = self.reader.starts(seat)
                raise UsageError(f"{name} plays differently now because its file has changed or it is not repeatable")

    def result(self) -> tuple[str, str]:
        """Return the person's result as a bucket and as a sentence."""
        ending, results = self.state.ending(), self.game.results
        bucket = results.buckets[results.bucket(ending.marks[self.me], ending.capped)]
        return bucket, self.words.verdict(self.state, self.me)

    def review_lies(self) -> LieReview:
        state, _ = self.setup.deal_game(self.game)
        outputs = [output_of(self.game, kept) for kept in self.outputs]
        return review_lies(self.game, state, outputs, self.me, self.reader, len(self.setup.begun))

    def make_record(self) -> GameRecord:
        setup, number = self.setup, self.number or None
        return replace(self.record(setup.players, setup.seed, setup.deal, number), change=setup.change)


def seat_person(opponents: Opponents, setup: Setup, number: int) -> Sitting:
    """Deal the person's game.

    `number` is its number in the database of model calls. The person only sees how much a model has written before its
    move, because the text may reveal its cards. Raises UsageError for unknown opponents.
    """
    rules = opponents.game.rules(**setup.rules)
    spoken: dict[int, int] = {}

    def speak(seat: int, words: str) -> None:
        spoken[seat] = len(words.split())

    entrants, services = opponents.seat_bots(setup.bots, setup.seed, rules, on_text=speak, persons=1)
    return Sitting(setup, opponents.game, entrants, opponents.fallback, services, number, spoken)


def seat_of_guest(players: Sequence[str]) -> int | None:
    return players.index(GUEST) if players.count(GUEST) == 1 else None


def start_of_turn(moves: Sequence[Moment], turn: int) -> int | None:
    """Return how many moves were made before a turn, or None if the turn has no move."""
    place = next((place for place, move in enumerate(moves) if move.turn == turn), None)
    return None if place is None or isinstance(moves[place].output, Forfeit) else place


def set_up_saved(game: Game, record: GameRecord, turn: int, seat: int) -> Setup:
    """Return the setup in which a person takes a seat at the start of a turn of a saved game. Raises UsageError."""
    if seat_of_guest(record.players) not in (None, seat):
        raise UsageError("a person played this game, so only their seat can be taken over")
    place = start_of_turn([*session_of_record(game, record, Reader())], turn)
    if place is None or seat >= len(record.players):
        raise UsageError(f"this game has no turn {turn} or no seat {seat}")
    assert record.seed is not None  # otherwise the game cannot be dealt
    bots = [name for other, name in enumerate(record.players) if other != seat]
    begun = record.outputs[:place]
    return Setup(bots, seat, record.seed, record.deal, record.rules, game.name, "", begun, record.change)
