"""A game in which one seat's questions are answered from outside, one at a time.

The player in that seat is the harness's own model player, with its prompt, its reading of answers, its re-asks and its
fallback. It asks and waits, as everything at a table does; so each game is played in a thread of its own, which stands
still while a question is open.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import Any, Final, NamedTuple

from pydantic import ValidationError

from dubito.errors import UsageError, one_line
from dubito.files import in_our_words
from dubito.game import Game
from dubito.game.find import Registry, find_bots
from dubito.game.flaws import flaws_of_ending
from dubito.game.streams import DealStreams
from dubito.game.table import Entrant, GameCode, Table, play_game
from dubito.llm.decide import Decider, GameServices, Journal
from dubito.llm.prompts import Prompt, load_prompt
from dubito.llm.request import Ask, Interrupted, RawReply, Reply
from dubito.llm.settings import ModelSettings, settings_for
from dubito.stats.tally import outcome_of
from dubito.store.model_log import Decision

_MODEL: Final = "LLMBot"  # the player whose model is asked from outside


class ChatQuestion(NamedTuple):
    """What the player sends, as a chat server takes it."""

    messages: Sequence[Mapping[str, str]]  # with `role` and `content`
    response_format: Mapping[str, Any] | None  # the form of the answer; None: only the messages say it


class Said(NamedTuple):
    """What came back for a question."""

    text: str | None
    cut_off: bool = False  # by a limit of tokens


def checked_rules(game: Game, said: Mapping[str, Any]) -> Any:
    """The game's rules with these; raises UsageError where it has no such rule."""
    try:
        return game.rules_of_run(said)
    except ValidationError as error:
        first = error.errors()[0]
        raise UsageError(f"{'.'.join(map(str, first['loc']))}: {in_our_words(dict(first))}") from None


@dataclass(frozen=True, slots=True)
class AskedSeat:
    """A seat of a game whose player is asked from outside, among hand-written bots."""

    registry: Registry
    entrants: Sequence[Entrant]
    seat: int
    settings: ModelSettings
    prompt: Prompt
    rules: Any
    seed: int

    def in_words(self, deal: int) -> str:
        """Which game of it this is, in a line."""
        names = ", ".join(one_line(entrant.name) for entrant in self.entrants)
        return f"{self.registry.game.name}, deal {deal}, seat {self.seat} of {names}"

    def table(self, deal: int, asked: "AskedGame") -> Table:
        """The table of a deal before its first turn; the seat's questions go to this game."""
        decider = Decider(
            name=_MODEL,
            settings=self.settings,
            prompt=self.prompt,
            fallback=self.registry.find(self.settings.fallback).cls,
            asks=asked,
            log=asked,
            seed=self.seed,
            rules=self.rules,
            counted=lambda outcome: None,
        )
        services = [None] * len(self.entrants)
        streams = DealStreams(self.seed, deal)
        return Table(
            self.registry.game.dealt(self.rules, len(self.entrants), streams.deck()),
            self.entrants,
            streams,
            deal=deal,
            number=deal,
            services=[*services[: self.seat], GameServices(decider, Journal()), *services[self.seat + 1 :]],
        )


def asked_seat(
    game: str,
    seat: int,
    opponents: Sequence[str],
    rules: Mapping[str, Any],
    seed: int,
    **said: Any,
) -> AskedSeat:
    """The seat of that number; `opponents` are bots by name, seat by seat with this one left out.

    `said` are settings of a model player: `prompt`, `reasks`, `response_format`. Games, bots and prompts are
    looked for as the command line does. Raises UsageError.
    """
    registry = find_bots(Path.cwd(), game)
    found, seats = [registry.find(name) for name in opponents], len(opponents) + 1
    for bot in found:
        if bot.cls.is_model:
            raise UsageError(f"{bot.name} asks a model, and opponents are written by hand: choose another bot")
    checked = checked_rules(registry.game, rules)
    registry.game.dealt(checked, seats, DealStreams(seed, 0).deck())  # raises UsageError where so many cannot play
    if not 0 <= seat < seats:
        of = f"{len(found)} opponent{'s' if len(found) > 1 else ''}"
        raise UsageError(f"seat {seat}: there are the seats 0 to {seats - 1}, of {of} and the model")
    player = registry.find(_MODEL).cls
    said = {"model": "asked", "api": "chat", **said}
    settings = settings_for(player, _MODEL, said, registry.game)
    entrants = [Entrant(bot.name, bot.fastest) for bot in found]
    entrants.insert(seat, Entrant(_MODEL, player, said))
    prompt = load_prompt(settings.prompt, registry.working_directory, registry.game)
    prompt.check_rules(checked)
    return AskedSeat(registry, entrants, seat, settings, prompt, checked, seed)


class AskedGame:
    """One game: each call of `answer` gives the next question."""

    def __init__(self, seat: AskedSeat, deal: int) -> None:
        self.score: float | None = None  # the seat's first measure, from 0 to 1; None: the game is not over
        self.outcomes = Counter[str]()  # the seat's decisions, by what came of them
        self._seat, self._deal, self._thread = seat, deal, Thread(target=self._play, daemon=True)
        self._said = SimpleQueue[Said | None]()
        self._asked = SimpleQueue[ChatQuestion | BaseException | None]()

    def begin(self) -> ChatQuestion | None:
        """The first question; None: the game came to its end without one. Raises as `answer` does."""
        self._thread.start()
        return self._next()

    def answer(self, said: Said) -> ChatQuestion | None:
        """The question that follows this answer to the last one; None: the game is over.

        Raises BotError or GameError where an opponent or the game fails: the game is then at its end, without a score.
        """
        self._said.put(said)
        return self._next()

    def leave(self) -> None:
        """Let a game end here that nobody will go on with."""
        self._said.put(None)

    def ask(self, ask: Ask) -> Reply:
        """Called by the player: its question out, the answer in."""
        self._asked.put(ChatQuestion(ask.request.body["messages"], ask.request.body.get("response_format")))
        said = self._said.get()
        if said is None:
            raise Interrupted("the game was left before its end")
        return Reply(said.text, "length" if said.cut_off else "stop", None, RawReply(200, said.text or ""))

    def decision(self, decision: Decision) -> None:
        """Called by the player: what came of a question and its re-asks."""
        self.outcomes[decision.outcome] += 1

    def _next(self) -> ChatQuestion | None:
        asked = self._asked.get()
        if isinstance(asked, BaseException):
            raise asked
        return asked

    def _play(self) -> None:
        try:
            self.score = self._played()
            self._asked.put(None)
        except BaseException as error:  # whoever waits for a question gets it
            self._asked.put(error)

    def _played(self) -> float:
        seat, game = self._seat, self._seat.registry.game
        with GameCode(game, self._deal, self._deal) as code:
            table = seat.table(self._deal, self)
            code.state = table.state
            state = play_game(table)
            for flaw in flaws_of_ending(state.ending(), game.results, len(seat.entrants)):
                raise code.fault(flaw)
            outcome = outcome_of(state, [*range(len(seat.entrants))], None, table.fallback_turns)
            score: float = outcome.measured(game.results)[seat.seat][0] / game.results.measures[0].scale
        return score
