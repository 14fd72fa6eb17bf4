"""Opponents for a table: hand-written bots and model players.

Viewers who can see all cards are also shown a model's reasoning.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from pydantic import BaseModel

from dubito.errors import DubitoError, UsageError, end_sentence, format_error, one_line, suggestion
from dubito.experiment.config import Config, parse_config
from dubito.experiment.experiment import kind_of_player
from dubito.experiment.resolve import default_player, parse_player, resolve, rules_of_config
from dubito.experiment.resolved import ResolvedPlayer, ResolvedRun
from dubito.game import FALLBACK_OUTCOME, Game, Node, Player, PlayerKind, Text
from dubito.game.find import Registry, find_bots, find_games
from dubito.game.seeds import Seed
from dubito.game.speech import quoted
from dubito.game.table import Entrant
from dubito.llm.adviser import adviser_name
from dubito.llm.answers import extract_reasoning
from dubito.llm.decide import DecisionLog, GameServices, Journal
from dubito.llm.request import Asks, Attempt, Reply, Suspended
from dubito.llm.streamed import stream_to
from dubito.store.model_log import Decision, describe_answer

if TYPE_CHECKING:
    from dubito.experiment.models import Models

_NO_RULES: Final[Mapping[str, object]] = {}
_MAX_REASONING: Final = 2000  # maximum length of the shown reasoning, in characters
_CAUSES: Final = {  # why the fallback decided, by cause
    "unreachable": "it could not be reached",
    "refused": "it declined",
    "truncated": "its reply was cut off",
    "too_long": "the request was too long",
    "malformed": "its reply could not be read",
    "illegal": "its answer was illegal",
}


def as_sentence(reason: str) -> str:
    first = reason[:1] if "/" in reason.partition(" ")[0] else reason[:1].upper()
    return end_sentence(f"{first}{reason[1:]}")


@dataclass(frozen=True, slots=True)
class Thought:
    """A model's decision, for display."""

    seat: int
    node: str
    answer: object  # the answer that was used, which is the fallback's if the model gave none
    outcome: str
    asked: int  # number of requests, re-asks included
    stated: float | None  # the probability stated by the model
    reasoning: str  # the reasoning in its last reply, or an empty text

    def to_line(self, name: str, question: str, node: Node, truth: bool | None) -> str:
        """Format the decision as one line, with the model's words in quotation marks.

        `truth` is the value of the first of the node's `truths`, or None to omit it.
        """
        spoken, truths = isinstance(node.answer, Text), node.truths
        answer = quoted(str(self.answer)) if spoken else one_line(describe_answer(self.answer))
        again = f" (asked {self.asked} times)" if self.asked > 1 else ""
        if self.outcome.startswith(FALLBACK_OUTCOME):
            cause = self.outcome.removeprefix(FALLBACK_OUTCOME)
            return (
                f"{name}: {question} No answer{again} because {_CAUSES.get(cause, cause)}. Its fallback says {answer}."
            )
        words = [f"{name}: {question} {answer[:1].upper()}{answer[1:]}{again}{'' if spoken and not again else '.'}"]
        if self.stated is not None:
            really = "" if truth is None else f"; it was {truths[0] if truth else truths[1]}"
            words.append(f"Stated: {100 * self.stated:.0f} % {truths[0]}{really}.")
        if self.reasoning:
            words.append(f"“{one_line(self.reasoning, _MAX_REASONING)}”")
        return " ".join(words)


OnDecision = Callable[[Thought], None]  # called with each decision as soon as it is made
OnText = Callable[[int, str], None]  # called with a seat and its model's text so far, during streaming


@dataclass(eq=False)
class _Listener:
    """Forwards a decider's requests and decisions and reports them to callbacks."""

    asks: Asks
    log: DecisionLog
    on_decision: OnDecision
    on_text: OnText
    asked: int = 0  # requests for the current decision
    text: str = ""  # of the last reply

    def ask(self, ask: Attempt) -> Reply:
        self.asked, self.text = self.asked + 1, ""
        with stream_to(lambda words: self.on_text(ask.place.seat, words)):
            reply = self.asks.ask(ask)
        self.text = reply.text or ""
        return reply

    def decision(self, decision: Decision) -> None:
        self.log.decision(decision)
        asked, reasoning = self.asked, extract_reasoning(self.text)
        self.asked, self.text = 0, ""
        taken = (decision.seat, decision.node, decision.answer, decision.outcome)
        self.on_decision(Thought(*taken, asked, decision.stated, reasoning))


def _ignore(thought: Thought) -> None:
    """Ignore the decision."""


def build_company(config: Config, registry: Registry, names: Sequence[str] | None = None) -> ResolvedRun:
    """Build a run whose `bots` are the possible opponents.

    By default these are the config's players and all hand-written bots that can play by these rules. Otherwise they are
    `names`, which can be names of these players, or entries as in a config's `bots`, such as `openai:MODEL@PROMPT`.
    Raises UsageError.
    """
    run = resolve(config if config.bots else config.model_copy(update={"bots": []}), registry, fills_tables=False)
    manual, rules = (
        [bot for bot in registry.bots.values() if bot.kind == "manual" and not bot.cls.is_program],
        rules_of_config(config, registry.game),
    )
    known = {bot.name: default_player(bot) for bot in manual if not bot.cls.rules_incompatibility(rules)}
    known |= {player.name: player for player in run.players if kind_of_player(player.spec) != "agent"}
    if names is not None:
        chosen = {}
        for name in names:
            can_parse = name in registry.bots or ":" in name or any(broken.has_name(name) for broken in registry.broken)
            if name not in known and not can_parse:
                raise UsageError(f"unknown player {one_line(name)!r}", hint=suggestion(name, known))
            chosen[name] = known.get(name) or parse_player(name, registry, config)
        known = chosen
    # The fallback does not replace an unreachable model, because the person can wait and try again. It replaces failed
    # programs.
    experiment = replace(
        run.experiment,
        bots=tuple(player.spec for player in known.values()),
        contenders=(),
        provider_errors="suspend",
        on_bot_error="fallback",
    )
    return replace(run, experiment=experiment, players=[*known.values()])


def describe_trouble(error: DubitoError) -> str:
    text = format_error(error, with_quote=False)
    return as_sentence(f"waiting {text}" if isinstance(error, Suspended) else text)


@dataclass(frozen=True, slots=True)
class Opponent:
    """A player who can be chosen as an opponent."""

    name: str
    summary: str
    kind: PlayerKind
    asks: str | None  # the player's model, if any


class Opponents:
    """The possible opponents by name, ready to be seated."""

    def __init__(
        self,
        run: ResolvedRun,
        models: "Models | None" = None,
        settled: Mapping[str, object] = _NO_RULES,
    ) -> None:
        """Prepare the players of `run`.

        `models` are its model players, if any. `settled` are the rules that the server fixes; users can choose the
        others.
        """
        self.settled = settled
        self._players = {player.name: player for player in run.players}
        self._registry, self._models = run.registry, models

    def choices(self) -> list[Opponent]:
        found = []
        for player in self._players.values():
            if not player.bot.repeatable:
                continue
            spec, bot, kind = player.spec, player.bot, kind_of_player(player.spec)
            summary, model = bot.summary, None
            if bot.cls.is_model:
                model, prompt = (one_line(str(spec.settings[key])) for key in ("model", "prompt"))
                summary = f"{model} with the prompt {prompt}."
            elif kind == "program":
                summary = f"The program {one_line(' '.join(spec.settings.get('process', [])), 80)}."
            found.append(Opponent(spec.name, summary, kind, model))
        return sorted(found, key=lambda choice: choice.name.casefold())

    def check(self, names: Sequence[str]) -> None:
        """Raise UsageError unless all of these players can play a game that can be resumed."""
        for name in names:
            if not self._find(name).bot.repeatable:
                raise UsageError(f"{one_line(name)} uses unseeded randomness, so its games cannot be saved")

    def require_movable(self, names: Sequence[str]) -> None:
        """Raise UsageError unless all of these players can begin in the middle of a game."""
        for name, kind in zip(names, self.kinds(names), strict=True):
            if kind in ("program", "agent"):
                raise UsageError(f"{one_line(name)} is a {kind}, which can only play a game from its start")

    def try_again(self) -> None:
        if self._models is not None:
            self._models.try_again()

    def seat_bot(self, name: str, seed: Seed) -> tuple[Entrant, object | None]:
        (entrant,), services = self.seat_bots([name], seed, self.game.rules())
        return entrant, next(iter(services), None)

    def seat_bots(
        self,
        names: Sequence[str],
        seed: Seed,
        rules: BaseModel,
        on_decision: OnDecision = _ignore,
        on_text: OnText | None = None,
        persons: int = 0,
    ) -> tuple[list[Entrant], list[object]]:
        """Return the entrants, seat by seat, and the services that each needs for a game.

        A model player needs access to its model, a program needs its process, and other bots need nothing (None). If no
        entrant needs services, the list is empty. If `on_text` is given, replies are streamed. `persons` is the number
        of additional seats for people. Raises UsageError for an unknown name.
        """
        players = [self._find(name) for name in names]
        entrants = [Entrant(player.name, player.bot.cls, player.spec.settings) for player in players]
        if self._models is None:
            return entrants, []
        journal, services = Journal(), list[object]()
        for name in names:
            if name in self._models.programs:
                program = replace(self._models.programs[name], seed=seed, rules=rules)
                services.append(program.open_game(len(names) + persons))
                continue
            own = self._models.deciders.get(name)
            if own is not None:
                own = replace(own, seed=seed, rules=rules)
                if on_text is not None:
                    listener = _Listener(own.asks, own.log, on_decision, on_text)
                    own = replace(own, asks=listener, log=listener)
            adviser = self._models.programs.get(adviser_name(name))
            advising = adviser and replace(adviser, seed=seed, rules=rules).open_game(len(names) + persons)
            services.append(own and GameServices(own, journal, adviser=advising))
        return entrants, services

    def kinds(self, names: Sequence[str]) -> list[PlayerKind]:
        return [kind_of_player(self._find(name).spec) for name in names]

    @property
    def game(self) -> Game:
        return self._registry.game

    @property
    def fallback(self) -> type[Player]:
        return self._registry.fallback

    def _find(self, name: str) -> ResolvedPlayer:
        if name not in self._players:
            raise UsageError(f"unknown player {one_line(name)!r}", hint=suggestion(name, self._players))
        return self._players[name]


def bots_of_other_games(first: Game) -> dict[str, Opponents]:
    """Return the hand-written bots of the other games, by game name. Games without bots are omitted."""
    names = [spec.name for spec in find_games(Path.cwd()) if spec.name != first.name]
    by_game = {name: bots_of_game(name) for name in names}
    return {name: opponents for name, opponents in by_game.items() if opponents.choices()}


def bots_of_game(name: str) -> Opponents:
    """Return the hand-written bots of a game. Raises UsageError."""
    return Opponents(build_company(parse_config({"game": name}, "the command"), find_bots(Path.cwd(), name)))


class FamilyGames(NamedTuple):
    """The games of a family, such as OpenSpiel's."""

    names: Sequence[str]  # names of all games that can be played, such as openspiel:kuhn_poker
    featured: Sequence[str]  # names of the games to show with a picture
    find: Callable[[str], Opponents]
    open: Collection[str] = ()  # names of the games in which nothing is hidden
