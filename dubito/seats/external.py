"""Play a game in which one seat's questions are answered from outside, one at a time.

The player in that seat is an ordinary model player, with its prompt, parser, re-asks and fallback. It blocks while it
waits for an answer, so each game runs in its own thread.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import Any, Final, NamedTuple

from pydantic import ValidationError

from dubito.errors import Interrupted, UsageError, one_line
from dubito.files import describe_invalid
from dubito.game import Game
from dubito.game.find import Registry, find_bots
from dubito.game.flaws import find_ending_flaws
from dubito.game.streams import DealStreams
from dubito.game.table import Entrant, GameCode, Table, play_game
from dubito.llm.adviser import refuse_adviser
from dubito.llm.decide import Decider, GameServices, Journal
from dubito.llm.prompts import Prompt, load_prompt
from dubito.llm.request import Attempt, RawReply, Reply
from dubito.llm.settings import build_settings
from dubito.model_settings import ModelSettings
from dubito.stats.tally import build_outcome
from dubito.store.model_log import Decision

_MODEL: Final = "LLMBot"  # the player whose questions are answered from outside


class ChatQuestion(NamedTuple):
    """A question in the format of a chat API."""

    messages: Sequence[Mapping[str, str]]  # messages with `role` and `content`
    response_format: Mapping[str, Any] | None  # schema of the answer, or None if only the messages describe it


class ChatAnswer(NamedTuple):
    """The reply to a question."""

    text: str | None
    cut_off: bool = False  # whether the token limit cut off the reply


def build_rules(game: Game, rules: Mapping[str, object]) -> object:
    """Build the game's rules. Raises UsageError for unknown or invalid rules."""
    try:
        return game.rules_of_run(game.rules(**rules).model_dump())
    except ValidationError as error:
        first = error.errors()[0]
        raise UsageError(f"{'.'.join(map(str, first['loc']))}: {describe_invalid(dict(first))}") from None


@dataclass(frozen=True, slots=True)
class ExternalSeat:
    """A seat controlled from outside, among hand-written bots."""

    registry: Registry
    entrants: Sequence[Entrant]
    seat: int
    settings: ModelSettings
    prompt: Prompt
    rules: object
    seed: int

    def describe(self, deal: int) -> str:
        """Describe this deal's game in one line."""
        names = ", ".join(one_line(entrant.name) for entrant in self.entrants)
        return f"{self.registry.game.name}, deal {deal}, seat {self.seat} of {names}"

    def build_table(self, deal: int, game: "ExternalGame") -> Table:
        """Return the table of a deal before its first turn.

        The seat's questions are sent to `game`.
        """
        decider = Decider(
            name=_MODEL,
            settings=self.settings,
            prompt=self.prompt,
            fallback=self.registry.find(self.settings.fallback).cls,
            asks=game,
            log=game,
            seed=self.seed,
            rules=self.rules,
            count_outcome=lambda outcome: None,
        )
        services = [None] * len(self.entrants)
        streams = DealStreams(self.seed, deal)
        return Table(
            self.registry.game.deal_game(self.rules, len(self.entrants), streams.deck()),
            self.entrants,
            streams,
            deal=deal,
            number=deal,
            services=[*services[: self.seat], GameServices(decider, Journal()), *services[self.seat + 1 :]],
        )


def set_up_seat(
    game: str,
    seat: int,
    opponents: Sequence[str],
    rules: Mapping[str, object],
    seed: int,
    **player_settings: object,
) -> ExternalSeat:
    """Set up a seat. Games, bots and prompts are found as on the command line.

    `opponents` names the bots in seat order, without this seat. `player_settings` are a model player's settings, such
    as `prompt`, `reasks` and `response_format`. Raises UsageError.
    """
    registry = find_bots(Path.cwd(), game)
    bots, seats = [registry.find(name) for name in opponents], len(opponents) + 1
    for bot in bots:
        if bot.cls.is_model or bot.cls.is_program:
            kind = "asks a model" if bot.cls.is_model else "is a program"
            raise UsageError(f"{bot.name} {kind}, but opponents must be hand-written", hint="choose another bot")
    checked = build_rules(registry.game, rules)
    # This raises UsageError if the number of players is wrong.
    registry.game.deal_game(checked, seats, DealStreams(seed, 0).deck())
    if not 0 <= seat < seats:
        raise UsageError(f"seat {seat}: must be from 0 to {seats - 1}")
    player = registry.find(_MODEL).cls
    player_settings = {"model": "asked", "api": "chat", **player_settings}
    settings = build_settings(player, _MODEL, player_settings, registry.game)
    refuse_adviser(settings, "a seat that is controlled from outside")
    entrants = [Entrant(bot.name, bot.fastest) for bot in bots]
    entrants.insert(seat, Entrant(_MODEL, player, player_settings))
    prompt = load_prompt(settings.prompt, registry.working_directory, registry.game)
    prompt.check_rules(checked)
    return ExternalSeat(registry, entrants, seat, settings, prompt, checked, seed)


@dataclass(eq=False, slots=True)
class ExternalGame:
    """A game whose questions are answered by calls to `answer`."""

    seat: ExternalSeat
    deal: int
    score: float | None = None  # the seat's first measure, from 0 to 1; None if the game is not over
    outcomes: Counter[str] = field(default_factory=Counter)  # number of the seat's decisions by outcome
    _thread: Thread = field(init=False, repr=False)
    _answers: SimpleQueue[ChatAnswer | None] = field(default_factory=SimpleQueue)
    _questions: SimpleQueue[ChatQuestion | BaseException | None] = field(default_factory=SimpleQueue)

    def __post_init__(self) -> None:
        self._thread = Thread(target=self._play, daemon=True)

    def begin(self) -> ChatQuestion | None:
        """Start the game and return its first question, or None if it ended without one.

        Raises the same errors as `answer`.
        """
        self._thread.start()
        return self._next_question()

    def answer(self, answer: ChatAnswer) -> ChatQuestion | None:
        """Answer the last question and return the next one, or None if the game is over.

        Raises BotError or GameError if an opponent or the game fails, which ends the game without a score.
        """
        self._answers.put(answer)
        return self._next_question()

    def leave(self) -> None:
        """End the game early."""
        self._answers.put(None)

    def ask(self, attempt: Attempt) -> Reply:
        """Send out a question and wait for its answer. Called by the player."""
        self._questions.put(ChatQuestion(attempt.request.body["messages"], attempt.request.body.get("response_format")))
        answer = self._answers.get()
        if answer is None:
            raise Interrupted("the game was stopped early")
        return Reply(answer.text, "length" if answer.cut_off else "stop", None, RawReply(200, answer.text or ""))

    def decision(self, decision: Decision) -> None:
        """Count a decision's outcome and re-asks. Called by the player."""
        self.outcomes[decision.outcome] += 1

    def _next_question(self) -> ChatQuestion | None:
        question = self._questions.get()
        if isinstance(question, BaseException):
            raise question
        return question

    def _play(self) -> None:
        seat, game = self.seat, self.seat.registry.game
        try:
            with GameCode(game, self.deal, self.deal) as code:
                table = seat.build_table(self.deal, self)
                code.state = table.state
                state = play_game(table)
                for flaw in find_ending_flaws(state.ending(), game.results, len(seat.entrants)):
                    raise code.fault(flaw)
                outcome = build_outcome(state, [*range(len(seat.entrants))], None, table.fallback_turns)
                score = outcome.measure_seats(game.results)[seat.seat][0] / game.results.measures[0].scale
            self.score = score
            self._questions.put(None)
        except BaseException as error:  # raised in the thread that waits for a question
            self._questions.put(error)
