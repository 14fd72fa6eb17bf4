"""A person at the table, and who can sit down with them: hand-written bots, and model players with a way to ask.

Bots are stepped by the code that a run uses; the person's output is checked before the move is made, so that a mistake
of theirs changes nothing. What models think is told as each decision is taken, to those who may see everything.
"""

import secrets
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from pydantic import BaseModel, ValidationError

from dubito.errors import DubitoError, IllegalOutput, UsageError, one_line, suggestion
from dubito.experiment.config import Config
from dubito.experiment.experiment import Experiment, PlayerSpec, kind_of_player
from dubito.experiment.resolve import player, resolve, unsettled
from dubito.files import fault
from dubito.game import FALLBACK_OUTCOME, Player, PlayerKind, Spec
from dubito.game.find import DUBITO, Registry
from dubito.game.person import Person
from dubito.game.record import Strict, output_of
from dubito.game.streams import DealStreams
from dubito.game.table import Entrant, Table
from dubito.game.words import in_words_to, labels, told_of
from dubito.llm.answers import reasoning_of
from dubito.llm.decide import Decider, DecisionLog, GameServices, Journal
from dubito.llm.request import Ask, Quoting, Reply, Suspended
from dubito.show.session import Moment, Session, moves_at
from dubito.store.model_log import Decision, answer_in_words

if TYPE_CHECKING:
    from dubito.experiment.models import Models
    from dubito.llm.gate import MakeAttempt

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

    def dealt(self, spec: Spec) -> tuple[Any, DealStreams]:
        """The game just dealt, and the streams it came from; raises UsageError if it cannot be dealt so."""
        try:
            rules = spec.rules(**self.rules)
        except (ValidationError, TypeError) as error:
            reason = fault(error, "rules") if isinstance(error, ValidationError) else "rules: no rules"
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


class Sitting(Session):
    """A game with a person at the table, told to them move by move."""

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
        self.setup, self.me = setup, setup.seat
        self.asks_models = any(bot.bot.is_model for bot in bots)
        self.number = number if self.asks_models else 0
        self.person = Person(spec)
        seats = [*bots[: self.me], Entrant(GUEST, Guest), *bots[self.me :]]
        given = [*services[: self.me], None, *services[self.me :]] if services else ()
        game, streams = setup.dealt(spec)
        label = labels(setup.players, self.me)
        self.teller = told_of(spec).Teller(game, label)
        self.start = in_words_to(spec, [game.start], label, self.me)
        self._table = table = Table(
            game, seats, streams, deal=setup.deal, number=self.number, fallback=fallback, services=given
        )
        super().__init__(spec, game, label, moves_at(table), table=table, rules=setup.rules)
        self.thinks = lambda seat: seats[seat].bot.is_model
        self.said: list[tuple[int, str]] = []  # what the person was told so far, with the turn

    @property
    def asked(self) -> bool:
        return not self.game.over and self.game.seat == self.me

    @property
    def errors(self) -> list[str]:
        """What bots did wrong so far. Not for the person before the end: it may tell of their cards."""
        return [str(error) for error in self._table.errors]

    def to_me(self, text: str) -> str:
        return told_of(self.spec).to_me(text)

    def rules(self) -> list[str]:
        return told_of(self.spec).rules(self.spec.rules(**self.setup.rules), len(self.setup.players))

    def why_not(self, output: Any) -> str | None:
        """Why the person may not do this on their move, in the engine's words; None if they may."""
        return self.person.why_illegal(self.game, output)

    def step(self, output: Any = None) -> tuple[Moment, list[str]]:
        """Make one move, the person's with their output; and tell it in words to them.

        Raises IllegalOutput, nothing changed, for what they may not do.
        """
        game, table, stood_in = self.game, self._table, sum(self._table.fallback_turns)
        if self.asked:
            reason = "it is your turn" if output is None else self.why_not(output)
            if reason is not None:
                raise IllegalOutput(reason)
            me = table.players[self.me]
            assert isinstance(me, Guest)
            me.given = output
        elif game.over or output is not None:
            raise IllegalOutput("the game is over" if game.over else "it is not your turn")
        moment = next(self)
        seat, played = moment.seat, moment.output
        self.teller.moved(seat, played, moment.events)
        words = in_words_to(self.spec, moment.events, self.label, self.me)
        if seat == self.me and isinstance(played, bool):  # which nobody observes
            words.insert(0, f"You answer {'yes' if played else 'no'}.")
        if sum(table.fallback_turns) > stood_in:
            words.insert(0, f"{self.label(seat)} has failed: {self.spec.fallback}'s rules play its turn.")
        if game.over:
            words.append(self.to_me(self.teller.ending()[0]))
        self.said += [(moment.turn, line) for line in words]
        return moment, words

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

    def ended(self) -> tuple[str, str]:
        """What the finished game was for the person: a bucket of the game's results, and the same in words."""
        ending, results = self.game.ending(), self.spec.results
        mark = ending.marks[self.me]
        bucket = results.buckets[results.bucket(mark, ending.capped)]
        return bucket, results.ended_in_words(mark, ending.capped)

    def finished(self) -> Any:
        setup, number = self.setup, self.number if self.asks_models else None
        return self.record(setup.players, setup.seed, setup.deal, number)


def seat_of_guest(players: Sequence[str]) -> int | None:
    """Where the person sat, by a record's players; None where nobody or several may have been they."""
    return players.index(GUEST) if players.count(GUEST) == 1 else None


def as_sentence(reason: str) -> str:
    """The engine's reason with a capital, unless an address or a path begins it, and a full stop."""
    first = reason[:1] if "/" in reason.partition(" ")[0] else reason[:1].upper()
    return f"{first}{reason[1:]}{'' if reason.endswith(('.', '?', '!')) else '.'}"


_REASONS: Final = 2000  # characters of a reasoning that are told
_WHY: Final = {  # a decision was left to the fallback, by the cause
    "unreachable": "it could not be reached",
    "refused": "it declined",
    "truncated": "its reply was cut off",
    "too_long": "the question is too long for it",
    "malformed": "its reply could not be read",
    "illegal": "the rules refuse its answer",
}


@dataclass(frozen=True, slots=True)
class Thought:
    """A decision of a model, as it can be told."""

    seat: int
    node: str
    answer: Any  # that was taken: the fallback's, where the model gave none
    outcome: str
    asked: int  # how often, re-asks included
    stated: float | None  # as it was stated
    reasoning: str  # that it gave with its last reply; empty: none

    def in_words(self, name: str, question: str, truth: bool | None) -> str:
        """The thought in a line; `truth` is whether what was stated a probability of is a bluff, None to leave it."""
        answer = one_line(answer_in_words(self.answer))
        again = f" (asked {self.asked} times)" if self.asked > 1 else ""
        if self.outcome.startswith(FALLBACK_OUTCOME):
            cause = self.outcome.removeprefix(FALLBACK_OUTCOME)
            return f"{name}: {question} No answer{again}, since {_WHY.get(cause, cause)}: its fallback says {answer}."
        words = [f"{name}: {question} {answer[:1].upper()}{answer[1:]}{again}."]
        if self.stated is not None:
            really = "" if truth is None else f"; it was {'a bluff' if truth else 'honest'}"
            words.append(f"Stated: {100 * self.stated:.0f} % a bluff{really}.")
        if self.reasoning:
            words.append(f"“{one_line(self.reasoning, _REASONS)}”")
        return " ".join(words)


def with_listener(decider: Decider, hear: Callable[[Thought], None]) -> Decider:
    """The same for one seat of one game, where `hear` is told each decision as soon as it is taken."""
    listener = _Listener(decider.ask, decider.log, hear)
    return replace(decider, ask=listener.ask, log=listener)


class _Listener:
    """Stands between a decider and what it asks and logs; what passes is as it was."""

    def __init__(self, ask: "MakeAttempt", log: DecisionLog, hear: Callable[[Thought], None]) -> None:
        self._ask, self._log, self._hear = ask, log, hear
        self._asked, self._text = 0, ""

    def ask(self, ask: Ask) -> Reply:
        self._asked, self._text = self._asked + 1, ""
        reply = self._ask(ask)
        self._text = reply.text or ""
        return reply

    def decision(self, decision: Decision) -> None:
        self._log.decision(decision)
        asked, reasoning = self._asked, reasoning_of(self._text)
        self._asked, self._text = 0, ""
        taken = (decision.seat, decision.node, decision.answer, decision.outcome)
        self._hear(Thought(*taken, asked, decision.stated, reasoning))


def company(config: Config, registry: Registry, names: Sequence[str] | None = None) -> Experiment:
    """An experiment whose field are those who may sit down: everybody, or those of these names.

    Everybody is the players of the config and, under their own names, all hand-written bots that can be used. A
    name is one of theirs, or an entry as in a config's `bots`, such as `openai:MODEL@PROMPT`. Raises UsageError.
    """
    said = resolve(config if config.bots else config.model_copy(update={"bots": []}), registry, fills_tables=False)
    known = {bot.name: unsettled(bot) for bot in registry.bots.values() if bot.kind == "manual"}
    known |= {spec.name: spec for spec in said.players}
    if names is not None:
        known = {name: known.get(name) or _entry(name, known, config, registry) for name in names}
    # Nobody stands in for a model that cannot be reached: the person can wait, and try again.
    return replace(said, field=tuple(known.values()), contenders=(), provider_errors="suspend")


def _entry(name: str, known: Iterable[str], config: Config, registry: Registry) -> PlayerSpec:
    there = name in registry.bots or ":" in name or any(broken.is_called(name) for broken in registry.broken)
    if not there:
        raise UsageError(f"nobody is named {one_line(name)!r}: {suggestion(name, known)}")
    return player(name, registry, config)


def trouble(error: DubitoError) -> str:
    """Why the bots of a person's game cannot go on, as a sentence without a server's words: they may hold cards."""
    text = error.brief if isinstance(error, Quoting) else str(error)
    return as_sentence(f"it waits {text}" if isinstance(error, Suspended) else text)


@dataclass(frozen=True, slots=True)
class Opponent:
    """One who may sit down."""

    name: str
    summary: str
    kind: PlayerKind
    asks: str | None  # the model that it asks


class Opponents:
    """The players of a company, by name, ready to be seated."""

    def __init__(self, company: Experiment, registry: Registry, models: "Models | None" = None) -> None:
        """`models` are the company's model players; None where there are none."""
        self._specs = {spec.name: spec for spec in company.field}
        self._registry, self._models = registry, models

    def choices(self) -> list[Opponent]:
        """All whose games can be taken up again, by name."""
        found = [self._choice(spec) for spec in self._specs.values() if self._registry.find(spec.bot).repeatable]
        return sorted(found, key=lambda choice: choice.name.casefold())

    def _choice(self, spec: PlayerSpec) -> Opponent:
        bot = self._registry.find(spec.bot)
        if not bot.cls.is_model:
            return Opponent(spec.name, bot.summary, kind_of_player(spec), None)
        model, prompt = (one_line(str(spec.settings[key])) for key in ("model", "prompt"))
        return Opponent(spec.name, f"Asks {model} with the prompt {prompt}.", kind_of_player(spec), model)

    def check(self, names: Sequence[str]) -> None:
        """Raise UsageError unless all of them may sit down to a game that can be taken up again."""
        for name in names:
            if not self._registry.find(self._find(name).bot).repeatable:
                raise UsageError(
                    f"{one_line(name)} draws from randomness that no seed reaches, so no game of it can be kept"
                )

    def try_again(self) -> None:
        """What was in the way may be fixed now: ask again, even where an outage had ended all asking."""
        if self._models is not None:
            self._models.try_again()

    def seat(self, setup: Setup, number: int) -> Sitting:
        """Deal the person's game, which has this number where what models are asked is kept.

        Raises UsageError for a bot that is none of these.
        """
        entrants, services = self.among_themselves(setup.bots, setup.seed, self.game.rules(**setup.rules))
        return Sitting(setup, self.game, entrants, self._registry.fallback, services, number)

    def alone(self, name: str, seed: int) -> tuple[Entrant, object | None]:
        """One of them for a seat at somebody else's table; if it is a model player, with its way to ask."""
        (entrant,), services = self.among_themselves([name], seed, self.game.rules())
        return entrant, next(iter(services), None)

    def among_themselves(
        self, names: Sequence[str], seed: int, rules: Any, hear: Callable[[Thought], None] | None = None
    ) -> tuple[list[Entrant], list[object]]:
        """These, seat by seat, each with what it needs in one game: a model player its way to ask, others nothing.

        `hear` is told what models think. Without models nothing is needed at all. Raises UsageError for a bot that is
        none of these.
        """
        specs = [self._find(name) for name in names]
        entrants = [Entrant(spec.name, self._registry.find(spec.bot).cls, spec.settings) for spec in specs]
        if self._models is None:
            return entrants, []
        journal, services = Journal(), list[object]()
        for name in names:
            own = self._models.deciders.get(name)
            if own is not None:
                own = replace(own, seed=seed, rules=rules)
                own = own if hear is None else with_listener(own, hear)
            services.append(own and GameServices(own, journal))
        return entrants, services

    def kinds(self, names: Sequence[str]) -> list[PlayerKind]:
        """What decides for each of them; raises UsageError for a bot that is none of these."""
        return [kind_of_player(self._find(name)) for name in names]

    @property
    def game(self) -> Spec:
        return self._registry.game

    def _find(self, name: str) -> PlayerSpec:
        if name not in self._specs:
            raise UsageError(f"nobody here is named {one_line(name)!r}: {suggestion(name, self._specs)}")
        return self._specs[name]
