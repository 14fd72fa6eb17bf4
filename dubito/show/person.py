"""A person at the table: their seat among bots, what they may do there, and the game in words to them.

Bots are stepped by the code that a run uses; the person's output is checked before the move is made, so that a mistake
of theirs changes nothing.
"""

import secrets
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from pydantic import BaseModel, ValidationError

from dubito.errors import IllegalOutput, UsageError
from dubito.files import fault
from dubito.game import Game, Player
from dubito.game.find import DUBITO
from dubito.game.record import Strict, output_of
from dubito.game.streams import DealStreams
from dubito.game.table import Entrant, Table
from dubito.game.words import in_words_to, labels, words_of
from dubito.show.company import Opponents
from dubito.show.session import Moment, Session, moves_at

GUEST: Final = "Guest"  # what a record calls the person
SEEDS: Final = 2**53  # whole numbers that every browser can hold


class Guest(Player):
    """The person, as the table sees them: plays what was typed."""

    given: Any

    def play(self, view: Any) -> Any:
        return self.given


@dataclass(frozen=True, slots=True)
class Setup(Strict):
    """All that fixes a game beside the person's own moves."""

    bots: list[str]
    seat: int
    seed: int
    deal: int = 0
    rules: dict[str, Any] = field(default_factory=dict)  # those of the game
    game: str = DUBITO

    def __post_init__(self) -> None:
        if GUEST in self.bots:
            raise UsageError(f"nobody else may be named {GUEST}: a record calls the person at the table so")
        if not 0 <= self.seat <= len(self.bots):
            raise UsageError(f"seat: {self.seat} is not between 0 and {len(self.bots)}")

    @property
    def players(self) -> list[str]:
        return [*self.bots[: self.seat], GUEST, *self.bots[self.seat :]]

    def dealt(self, game: Game) -> tuple[Any, DealStreams]:
        """The game just dealt, and the streams it came from; raises UsageError if it cannot be dealt so."""
        try:
            rules = game.rules(**self.rules)
        except (ValidationError, TypeError) as error:
            reason = fault(error, "rules") if isinstance(error, ValidationError) else "rules: no rules"
            raise UsageError(f"these rules of {game.name} are invalid: {reason}") from None
        streams = DealStreams(self.seed, self.deal)
        return game.dealt(rules, len(self.bots) + 1, streams.deck()), streams


def set_up(
    game: Game, bots: Sequence[str], rules: BaseModel, seat: int | None, seed: int | None, deal: int = 0
) -> Setup:
    """A game with the person in that seat; what they do not say, chance does. Raises UsageError if there is no such."""
    seed = secrets.randbelow(SEEDS) if seed is None else seed
    if seat is None:
        seat = DealStreams(seed, deal).seating().randrange(len(bots) + 1)
    setup = Setup(list(bots), seat, seed, deal, rules.model_dump(), game.name)
    setup.dealt(game)
    return setup


class Sitting(Session):
    """A game with a person at the table, told to them move by move."""

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
        """Deal the cards to the person and these bots, those of `setup`.

        A bot that fails is stood in for by `fallback`, and what it did kept in `errors`. `services` are what the
        bots need who ask a model, one each, and `number` the game's in the store of what they are asked. How many
        words a model has `spoken` before the move that it is at stands there by its seat.
        """
        self.setup, self.me = setup, setup.seat
        self.asks_models = any(bot.bot.is_model for bot in bots)
        self.number = number if self.asks_models else 0
        self.words = words = words_of(game)
        seats = [*bots[: self.me], Entrant(GUEST, Guest), *bots[self.me :]]
        given = [*services[: self.me], None, *services[self.me :]] if services else ()
        state, streams = setup.dealt(game)
        label = labels(setup.players, self.me)
        self.teller = words.Teller(state, label)
        self.start = in_words_to(words, [state.start], label, self.me)
        self._table = table = Table(
            state, seats, streams, deal=setup.deal, number=self.number, fallback=fallback, services=given
        )
        super().__init__(game, state, label, moves_at(table), table=table, rules=setup.rules)
        self.thinks = lambda seat: seats[seat].bot.is_model
        self.spoken = {} if spoken is None else spoken
        self.said: list[tuple[int, str]] = []  # what the person was told so far, with the turn
        self._judged: list[tuple[bool, bool]] = []  # plays the person answered: was it a lie, did they call it one

    @property
    def asked(self) -> bool:
        return not self.state.over and self.state.seat == self.me

    @property
    def errors(self) -> list[str]:
        return [str(error) for error in self._table.errors]

    def to_me(self, text: str) -> str:
        return self.words.to_me(text)

    def rules(self) -> list[str]:
        return self.words.rules(self.game.rules(**self.setup.rules), len(self.setup.players))

    def why_not(self, output: Any) -> str | None:
        return self.words.why_illegal(self.state, output)

    def step(self, output: Any = None) -> tuple[Moment, list[str]]:
        """Make one move, the person's with their output; and tell it in words to them.

        Raises IllegalOutput, nothing changed, for what they may not do.
        """
        state, table, stood_in = self.state, self._table, sum(self._table.fallback_turns)
        if self.asked:
            reason = "it is your turn" if output is None else self.why_not(output)
            if reason is not None:
                raise IllegalOutput(reason)
            me = table.players[self.me]
            assert isinstance(me, Guest)
            me.given = output
            deed = self.game.deed(state, output) if self.game.deed else None
            if deed is not None and deed.of is not None:
                self._judged.append((deed.is_lie, deed.called))
        elif state.over or output is not None:
            raise IllegalOutput("the game is over" if state.over else "it is not your turn")
        self.spoken.clear()
        moment = next(self)
        seat, played = moment.seat, moment.output
        told = self.teller.moved(seat, played, moment.events)
        words = in_words_to(self.words, moment.events, self.label, self.me)
        if not words and seat != self.me:
            words = [self.to_me(line.said) for line in told if line.said]
        if seat == self.me and isinstance(played, bool):  # which nobody observes
            words.insert(0, f"You answer {'yes' if played else 'no'}.")
        if sum(table.fallback_turns) > stood_in:
            words.insert(0, f"{self.label(seat)} has failed: {self.game.fallback}'s rules play its turn.")
        if state.over:
            words.append(self.to_me(self.teller.ending()[0]))
        self.said += [(moment.turn, line) for line in words]
        return moment, words

    def play_again(self, outputs: Iterable[Any], take: Callable[[Any], object]) -> None:
        """Make moves that were made before, from the deal on; `take` makes each, the person's with their output.

        Raises UsageError where a bot does something else than it did.
        """
        for kept in outputs:
            seat, output = self.state.seat, output_of(self.game, kept)
            take(output if self.asked else None)
            if self.outputs[-1] != self.game.output_to_json(output):
                name = self.label(seat)
                raise UsageError(f"{name} does not play as it did: its file was changed, or it is not repeatable")

    def ended(self) -> tuple[str, str]:
        """What the finished game was for the person: a bucket of the game's results, and the same in words."""
        ending, results = self.state.ending(), self.game.results
        mark = ending.marks[self.me]
        bucket = results.buckets[results.bucket(mark, ending.capped)]
        return bucket, results.ended_in_words(mark, ending.capped)

    def lies_in_words(self) -> str:
        """Return how many lies the person faced, called out and told; empty in a game without lies."""
        results = self.game.results
        if not results.lies or self.game.deed is None:
            return ""
        lies, (lie, call) = results.habit(results.lies), results.lie_words
        counts = dict(zip(results.seat_counts, self.state.ending().counts[self.me], strict=True))
        faced = sum(is_lie for is_lie, _ in self._judged)
        caught = sum(is_lie and called for is_lie, called in self._judged)
        calls = sum(called for _, called in self._judged)
        made = counts[lies.count] or "none"
        if not faced:
            wrong = f", so your {_count(calls, call)} were wrong" if calls > 1 else ""
            wrong = f", so your {call} was wrong" if calls == 1 else wrong
            return f"You faced no {lies.name}{wrong}. You made {made} yourself."
        return (
            f"You caught {caught} of the {_count(faced, lie)} you faced, with {_count(calls, call)}, "
            f"and made {made} yourself."
        )

    def finished(self) -> Any:
        setup, number = self.setup, self.number if self.asks_models else None
        return self.record(setup.players, setup.seed, setup.deal, number)


def _count(number: int, word: str) -> str:
    return f"{number} {word}{'s' * (number != 1)}"


def seat_person(opponents: Opponents, setup: Setup, number: int) -> Sitting:
    """Deal the person's game, which has this number where what models are asked is kept.

    Of what a model says before its move the person hears no more than how much it is: it may tell of its cards.
    Raises UsageError for a bot that is none of these opponents.
    """
    rules = opponents.game.rules(**setup.rules)
    spoken: dict[int, int] = {}

    def speak(seat: int, words: str) -> None:
        spoken[seat] = len(words.split())

    entrants, services = opponents.among_themselves(setup.bots, setup.seed, rules, speak=speak)
    return Sitting(setup, opponents.game, entrants, opponents.fallback, services, number, spoken)


def seat_of_guest(players: Sequence[str]) -> int | None:
    return players.index(GUEST) if players.count(GUEST) == 1 else None
