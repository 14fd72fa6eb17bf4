"""Who sits at a table besides a person: hand-written bots, and model players with a way to ask; and what these think.

A thought is told as its decision is taken, to those who may see everything.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from dubito.errors import DubitoError, UsageError, one_line, suggestion, with_stop
from dubito.experiment.config import Config
from dubito.experiment.experiment import Experiment, PlayerSpec, kind_of_player
from dubito.experiment.resolve import cannot_play_by, player, resolve, rules_of, unsettled
from dubito.game import FALLBACK_OUTCOME, Game, Node, Player, PlayerKind, Text
from dubito.game.find import Registry
from dubito.game.speech import quoted
from dubito.game.table import Entrant
from dubito.llm.answers import reasoning_of
from dubito.llm.decide import Decider, DecisionLog, GameServices, Journal
from dubito.llm.request import Ask, Asks, Quoting, Reply, Suspended
from dubito.llm.streamed import told_to
from dubito.store.model_log import Decision, answer_in_words

if TYPE_CHECKING:
    from dubito.experiment.models import Models

_NO_RULES: Final[Mapping[str, Any]] = {}
_REASONS: Final = 2000  # characters of a reasoning that are told
_WHY: Final = {  # a decision was left to the fallback, by the cause
    "unreachable": "it could not be reached",
    "refused": "it declined",
    "truncated": "its reply was cut off",
    "too_long": "the question is too long for it",
    "malformed": "its reply could not be read",
    "illegal": "the rules refuse its answer",
}


def as_sentence(reason: str) -> str:
    first = reason[:1] if "/" in reason.partition(" ")[0] else reason[:1].upper()
    return with_stop(f"{first}{reason[1:]}")


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

    def in_words(self, name: str, question: str, node: Node, truth: bool | None) -> str:
        """The thought in a line; of the node's `truths` it was the first, if `truth` is yes; None leaves that out.

        What is said is quoted.
        """
        spoken, truths = isinstance(node.answer, Text), node.truths
        answer = quoted(self.answer) if spoken else one_line(answer_in_words(self.answer))
        again = f" (asked {self.asked} times)" if self.asked > 1 else ""
        if self.outcome.startswith(FALLBACK_OUTCOME):
            cause = self.outcome.removeprefix(FALLBACK_OUTCOME)
            return f"{name}: {question} No answer{again}, since {_WHY.get(cause, cause)}: its fallback says {answer}."
        words = [f"{name}: {question} {answer[:1].upper()}{answer[1:]}{again}{'' if spoken and not again else '.'}"]
        if self.stated is not None:
            really = "" if truth is None else f"; it was {truths[0] if truth else truths[1]}"
            words.append(f"Stated: {100 * self.stated:.0f} % {truths[0]}{really}.")
        if self.reasoning:
            words.append(f"“{one_line(self.reasoning, _REASONS)}”")
        return " ".join(words)


Hear = Callable[[Thought], None]  # told each decision as soon as it is taken
Speak = Callable[[int, str], None]  # told a seat, and the words of its model so far, as they come


def with_listener(decider: Decider, hear: Hear, speak: Speak) -> Decider:
    listener = _Listener(decider.asks, decider.log, hear, speak)
    return replace(decider, asks=listener, log=listener)


class _Listener:
    """Stands between a decider and what it asks and logs; what passes is as it was."""

    def __init__(self, asks: Asks, log: DecisionLog, hear: Hear, speak: Speak) -> None:
        self._asks, self._log, self._hear, self._speak = asks, log, hear, speak
        self._asked, self._text = 0, ""

    def ask(self, ask: Ask) -> Reply:
        self._asked, self._text = self._asked + 1, ""
        with told_to(lambda words: self._speak(ask.place.seat, words)):
            reply = self._asks.ask(ask)
        self._text = reply.text or ""
        return reply

    def decision(self, decision: Decision) -> None:
        self._log.decision(decision)
        asked, reasoning = self._asked, reasoning_of(self._text)
        self._asked, self._text = 0, ""
        taken = (decision.seat, decision.node, decision.answer, decision.outcome)
        self._hear(Thought(*taken, asked, decision.stated, reasoning))


def _nobody(thought: Thought) -> None:
    """Nobody is told of the decisions."""


def company(config: Config, registry: Registry, names: Sequence[str] | None = None) -> Experiment:
    """An experiment whose field are those who may sit down: everybody, or those of these names.

    Everybody is the players of the config and, under their own names, all hand-written bots that play by these rules. A
    name is one of theirs, or an entry as in a config's `bots`, such as `openai:MODEL@PROMPT`. Raises UsageError.
    """
    said = resolve(config if config.bots else config.model_copy(update={"bots": []}), registry, fills_tables=False)
    manual, rules = [bot for bot in registry.bots.values() if bot.kind == "manual"], rules_of(config, registry.game)
    known = {bot.name: unsettled(bot) for bot in manual if not cannot_play_by(rules, bot.cls)}
    known |= {spec.name: spec for spec in said.players}
    if names is not None:
        known = {name: known.get(name) or _entry(name, known, config, registry) for name in names}
    # Nobody stands in for a model that cannot be reached: the person can wait, and try again.
    return replace(said, bots=tuple(known.values()), contenders=(), provider_errors="suspend")


def _entry(name: str, known: Iterable[str], config: Config, registry: Registry) -> PlayerSpec:
    there = name in registry.bots or ":" in name or any(broken.is_called(name) for broken in registry.broken)
    if not there:
        raise UsageError(f"nobody is named {one_line(name)!r}: {suggestion(name, known)}")
    return player(name, registry, config)


def trouble(error: DubitoError) -> str:
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

    def __init__(
        self,
        company: Experiment,
        registry: Registry,
        models: "Models | None" = None,
        settled: Mapping[str, Any] = _NO_RULES,
    ) -> None:
        """`models` are the company's model players; None where there are none. Who sits there plays by the rules that
        are `settled`; the others may be chosen."""
        self.settled = settled
        self._specs = {spec.name: spec for spec in company.bots}
        self._registry, self._models = registry, models

    def choices(self) -> list[Opponent]:
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
        if self._models is not None:
            self._models.try_again()

    def alone(self, name: str, seed: int) -> tuple[Entrant, object | None]:
        (entrant,), services = self.among_themselves([name], seed, self.game.rules())
        return entrant, next(iter(services), None)

    def among_themselves(
        self, names: Sequence[str], seed: int, rules: Any, hear: Hear = _nobody, speak: Speak | None = None
    ) -> tuple[list[Entrant], list[object]]:
        """These, seat by seat, each with what it needs in one game: a model player its way to ask, others nothing.

        With `speak` replies are streamed. Without models nothing is needed at all. Raises UsageError for a bot that
        is none of these.
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
                own = own if speak is None else with_listener(own, hear, speak)
            services.append(own and GameServices(own, journal))
        return entrants, services

    def kinds(self, names: Sequence[str]) -> list[PlayerKind]:
        return [kind_of_player(self._find(name)) for name in names]

    @property
    def game(self) -> Game:
        return self._registry.game

    @property
    def fallback(self) -> type[Player]:
        return self._registry.fallback

    def _find(self, name: str) -> PlayerSpec:
        if name not in self._specs:
            raise UsageError(f"nobody here is named {one_line(name)!r}: {suggestion(name, self._specs)}")
        return self._specs[name]
