"""A person at the table: their seat among bots, what they may do there, and the game in words to them.

Bots are stepped by the code that a run uses; the person's output is checked before the move is made, so
that a mistake of theirs changes nothing.
"""

import secrets
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from pydantic import BaseModel, ValidationError

from dubito.errors import IllegalOutput, UsageError
from dubito.game import Player, Spec
from dubito.game.find import DUBITO
from dubito.game.person import Person
from dubito.game.record import Strict, first_fault, output_of, records_of
from dubito.game.streams import DealStreams
from dubito.game.table import Entrant, Table, step
from dubito.game.words import Panel, in_words_to, labels, told_of

GUEST: Final = "Guest"  # what a record calls the person
SEEDS: Final = 2**53  # whole numbers that every browser can hold


class Guest(Player):
    """The person, as the table sees them: plays what was typed."""

    given: Any

    def play(self, view: Any) -> Any:
        """What the person decided."""
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
        """Who sits at the table, seat by seat."""
        return [*self.bots[: self.seat], GUEST, *self.bots[self.seat :]]

    def dealt(self, spec: Spec) -> tuple[Any, DealStreams]:
        """The game just dealt, and the streams it came from; raises UsageError if it cannot be dealt so."""
        try:
            rules = spec.rules(**self.rules)
        except (ValidationError, TypeError) as error:
            reason = first_fault(error, "rules") if isinstance(error, ValidationError) else "rules: no rules"
            raise UsageError(f"these rules of {spec.name} are invalid: {reason}") from None
        streams = DealStreams(self.seed, self.deal)
        return spec.deal(rules, len(self.bots) + 1, streams.deck()), streams


def set_up(
    spec: Spec, bots: Sequence[str], rules: BaseModel, seat: int | None, seed: int | None, deal: int = 0
) -> Setup:
    """A game with the person in that seat; what they do not say, chance does. Raises UsageError if there is no such."""
    seed = secrets.randbelow(SEEDS) if seed is None else seed
    if seat is None:
        seat = DealStreams(seed, deal).seating().randrange(len(bots) + 1)
    setup = Setup(list(bots), seat, seed, deal, rules.model_dump(), spec.name)
    setup.dealt(spec)
    return setup


class Sitting:
    """One game with a person at the table, told move by move."""

    def __init__(
        self,
        setup: Setup,
        spec: Spec,
        bots: Sequence[Entrant],
        fallback: type[Player],
        services: Sequence[object] = (),
        number: int = 0,
    ) -> None:
        """Deal the cards to the person and these bots, those of `setup`.

        A bot that fails is stood in for by `fallback`, and what it did kept in `errors`. `services` are what the
        bots need who ask a model, one each, and `number` the game's in the store of what they are asked.
        """
        self.setup, self.spec = setup, spec
        self.me = setup.seat
        self.asks_models = any(bot.bot.is_model for bot in bots)
        self.number = number if self.asks_models else 0
        self.person = Person(spec)
        seats = [*bots[: self.me], Entrant(GUEST, Guest), *bots[self.me :]]
        given = [*services[: self.me], None, *services[self.me :]] if services else ()
        self.game, streams = setup.dealt(spec)
        self.label = labels(setup.players, self.me)
        self.recorder = records_of(spec).recorder(self.game, setup.rules)
        self.outputs: list[Any] = []  # as the game writes them
        self.said: list[tuple[int, str]] = []  # what the person was told so far, with the turn
        self._teller = told_of(spec).Teller(self.game, self.label)
        self.start = in_words_to(spec, [self.game.start], self.label, self.me)
        self._table = Table(
            self.game, seats, streams, deal=setup.deal, number=self.number, fallback=fallback, services=given
        )

    @property
    def asked(self) -> bool:
        """Whether it is the person's move."""
        return not self.game.over and self.game.seat == self.me

    @property
    def errors(self) -> list[str]:
        """What bots did wrong so far. Not for the person before the end: it may tell of their cards."""
        return [str(error) for error in self._table.errors]

    @property
    def waits_for(self) -> str | None:
        """The player whose move it is, in words, if it asks a model and so may take its time."""
        game = self.game
        if game.over or not self._table.entrants[game.seat].bot.is_model:
            return None
        return self.label(game.seat)

    def to_me(self, text: str) -> str:
        """The sentence with the person spoken to."""
        return told_of(self.spec).to_me(text)

    def panels(self) -> list[Panel]:
        """The whole state in words; of the person's own eyes are only the public ones."""
        return self._teller.panels()

    def rules(self) -> list[str]:
        """The rules of this game, in sentences."""
        return told_of(self.spec).rules(self.spec.rules(**self.setup.rules), len(self.setup.players))

    def why_not(self, output: Any) -> str | None:
        """Why the person may not do this on their move, in the engine's words; None if they may."""
        return self.person.why_illegal(self.game, output)

    def step(self, output: Any = None) -> tuple[Any, Sequence[Any], list[str]]:
        """Make one move, the person's with their output: what was given, the events, and both in words to them.

        Raises IllegalOutput, nothing changed, for what they may not do.
        """
        game, table = self.game, self._table
        seat, turn, stood_in = game.seat, game.turns_played + 1, sum(table.fallback_turns)
        if self.asked:
            reason = "it is your turn" if output is None else self.why_not(output)
            if output is None or reason is not None:
                raise IllegalOutput(reason)
            me = table.players[self.me]
            assert isinstance(me, Guest)
            me.given = output
        elif output is not None:
            raise IllegalOutput("the game is over" if game.over else "it is not your turn")
        played, events = step(table, announce=True)
        self.recorder.add(turn, played, events)
        self.outputs.append(self.spec.output_to_json(played))
        self._teller.moved(seat, played, events)
        words = in_words_to(self.spec, events, self.label, self.me)
        if seat == self.me and isinstance(played, bool):  # which nobody observes
            words.insert(0, f"You answer {'yes' if played else 'no'}.")
        if sum(table.fallback_turns) > stood_in:
            words.insert(0, f"{self.label(seat)} has failed: {self.spec.fallback}'s rules play its turn.")
        if game.over:
            words.append(self.to_me(self._teller.ending()[0]))
        self.said += [(turn, line) for line in words]
        return played, events, words

    def play_again(self, outputs: Iterable[Any], take: Callable[[Any], object]) -> None:
        """Make moves that were made before, from the deal on; `take` makes each, the person's with their output.

        Raises UsageError where a bot does something else than it did.
        """
        for kept in outputs:
            seat, output = self.game.seat, output_of(self.spec, kept)
            take(output if self.asked else None)
            if self.outputs[-1] != self.spec.output_to_json(output):
                name = self.label(seat)
                raise UsageError(f"{name} does not play as it did: its file was changed, or it is not repeatable")

    def ended(self) -> str:
        """What the finished game was for the person: the name of a bucket of the game's results."""
        ending, results = self.game.ending(), self.spec.results
        return results.buckets[results.bucket(ending.marks[self.me], ending.capped)]

    def ended_in_words(self) -> str:
        """The same in words."""
        ending = self.game.ending()
        return self.spec.results.ended_in_words(ending.marks[self.me], ending.capped)

    def record(self) -> Any:
        """The finished game, as its game keeps it."""
        number = self.number if self.asks_models else None
        return self.recorder.record(self.game, self.setup.players, self.setup.seed, self.setup.deal, number)


def as_sentence(reason: str) -> str:
    """The engine's reason with a capital, unless an address or a path begins it, and a full stop."""
    first = reason[:1] if "/" in reason.partition(" ")[0] else reason[:1].upper()
    return f"{first}{reason[1:]}{'' if reason.endswith(('.', '?', '!')) else '.'}"
