"""A seat whose questions an agent answers over a network, one game at a time.

The thread of a game leaves its messages here and waits for the answer. The agent's requests arrive through a server
(`dubito/web/agent.py`). Agents get the messages of programs (docs/programs.md), shortened unless they ask for all,
because everything that an agent reads stays in its context.
"""

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence, Set
from concurrent.futures import Future
from contextlib import suppress
from threading import Condition
from time import monotonic
from typing import Any, Final, Literal

from pydantic import BaseModel, Field

from dubito.errors import IllegalOutput, Interrupted, one_line
from dubito.files import CheckedModel
from dubito.seats.program import ProgramError
from dubito.seats.tokens import make_token

_MAX_WAIT: Final = 60.0  # maximum number of seconds that a request waits for a question
_POLL_SECONDS: Final = 0.5  # seconds between checks for a stop of the run
_LEAVING_SECONDS: Final = 1.0  # seconds without a request after the end of the run
_MAX_REFUSALS: Final = (
    100  # maximum number of refused answers to a question, since a faulty agent would repeat one forever
)


class ObserveOptions(CheckedModel):
    """Options for observing."""

    wait: float = Field(30, ge=0, le=_MAX_WAIT, description="maximum number of seconds to wait for a question")
    all: bool = Field(default=False, description="return this game from its start, with all facts and events")


class Observation(BaseModel):
    """The messages and the open question that an agent sees."""

    state: Literal["decide", "wait", "over"] = Field(
        description="`decide` if a question is open, `over` if the run has ended"
    )
    game: int | None = Field(description="number of the game in the run, from 0")
    question: int | None = Field(description="number of the open question, to be sent with your answer")
    seconds: float | None = Field(description="time left for the answer")
    messages: list[dict[str, object]] = Field(
        description=(
            "what has happened since your last answer: hello, event, decide and end, described in docs/programs.md. "
            "The last one is the open question. `history` in its facts has the new lines."
        )
    )


class LegalMoves(BaseModel):
    """The legal answers to the open question."""

    question: int
    node: str
    legal: list[object] | None = Field(description="all legal answers; null if there are too many to list")
    answer_schema: dict[str, object] = Field(alias="schema", description='JSON schema of {"answer": X}')
    seconds: float = Field(description="time left for the answer")


class AgentAnswer(CheckedModel):
    """An answer to a question."""

    question: int = Field(description="number of the question, from observe")
    answer: object = Field(description="one of the legal answers")

    @property
    def readings(self) -> Sequence[object]:
        """What the answer can mean. The first legal reading counts."""
        return [self.answer]


class Accepted(BaseModel):
    """Confirms that an answer was accepted."""

    accepted: Literal[True] = True
    question: int


class GameEnd(BaseModel):
    """A game that has ended."""

    game: int = Field(description="number of the game in the run, from 0")
    seat: int = Field(description="your seat in the game, from 0")
    results: list[str] | None = Field(
        description="result of each seat; null if the game ended without a result for you"
    )


class SeatProgress(BaseModel):
    """The results of the run so far."""

    state: Literal["playing", "over"]
    reason: str | None = Field(description="why the run has ended")
    games: int = Field(description="number of games of the run in which you have a seat")
    ended: list[GameEnd] = Field(
        description="number of your games that have ended since the server started and in which you had a question"
    )


class NotOpen(Exception):
    """Raised for an answer to a question that is not open."""


class AgentSeat:
    """One player's seat in all games of a run, used by the games' threads and by its agent's requests."""

    def __init__(
        self, name: str, games: int, deadline: float, token: str | None = None, brief: Set[str] | None = None
    ) -> None:
        """Create a seat. `brief` names the facts that every question shows, or is None for all facts."""
        self.name, self.games, self.deadline = name, games, deadline
        self.token = token or make_token()
        self._brief = brief
        self.stopped: Callable[[], bool] = lambda: False  # whether the run was stopped
        self._changed = Condition()
        self._listeners = set[Callable[[], None]]()
        self._queue = set[int]()  # games that wait for their turn
        self._game: int | None = None
        self._latest: int | None = None  # the current game, or the last one
        self._messages: list[Mapping[str, Any]] = []
        self._answered = 0  # number of messages before the last answer
        self._shown_lines = 0  # number of lines of this game's history before the last answer
        self._shown_facts: Mapping[str, object] = {}  # facts of the last game's `hello`
        self._question = 0
        self._until: float | None = None  # deadline of the open question; None if no agent has connected
        self._is_open = self._saw_end = False
        self._last_request: float | None = None
        self._pending: tuple[Sequence[str], Future[None]] | None = None
        self._missed: tuple[int, str] | None = None  # the last question without an answer, and what happened
        self._ended: list[GameEnd] = []
        self._reason: str | None = None

    # The threads of games call these methods.

    def take(self, game: int, *_: int) -> "AgentSeat":
        """Wait until this game is first in the queue. Raises Interrupted."""
        with self._changed:
            self._queue.add(game)
            try:
                while self._game is not None or game > min(self._queue):
                    self._check_stop()
                    self._changed.wait(_POLL_SECONDS)
                self._game = self._latest = game
            finally:
                self._queue.discard(game)
        return self

    def answer(self, messages: Sequence[Mapping[str, object]], check: Callable[[str], None]) -> str:
        """Show messages and return the line that answers the last one.

        Unlike a program, an agent receives questions with recorded answers only for information. If `check` refuses an
        answer, the agent can correct it until the time is up. Raises ProgramError if there is no answer in time, or
        Interrupted.
        """
        with self._changed:
            if messages[0]["type"] == "hello":
                # The agent may not have seen the end of the last game yet.
                self._messages, self._answered, self._shown_lines = self._messages[self._answered :], 0, 0
            self._messages += messages
            self._question, self._is_open, self._until = self._question + 1, True, None
            self._notify()
            try:
                return self._await_answer(check)
            except ProgramError as error:
                self._missed = self._question, str(error)
                raise
            finally:
                self._is_open = False
                if self._pending is not None:
                    self._pending[1].set_exception(NotOpen(self._describe_closed(self._question)))
                    self._pending = None
                self._notify()

    def _await_answer(self, check: Callable[[str], None]) -> str:
        refusals, last_refusal = 0, ""
        while True:
            self._check_stop()
            if self._until is None and self._last_request is not None:
                self._until = monotonic() + self.deadline
            if self._pending is not None:
                (lines, verdict), self._pending = self._pending, None
                try:
                    line = _first_legal(lines, check)
                except IllegalOutput as error:
                    refusals, last_refusal = refusals + 1, f"; its last answer was refused: {error}"
                    verdict.set_exception(error)
                    if refusals >= _MAX_REFUSALS:
                        raise ProgramError(f"{refusals} of its answers were refused{last_refusal}") from None
                    continue
                except BaseException:
                    verdict.set_exception(NotOpen("the game failed"))
                    raise
                self._remember_shown()
                verdict.set_result(None)
                return line
            left = _POLL_SECONDS if self._until is None else self._until - monotonic()
            if left <= 0:
                raise ProgramError(f"it did not answer within {self.deadline:g} s{last_refusal}")
            self._changed.wait(min(left, _POLL_SECONDS))

    def _remember_shown(self) -> None:
        """Remember that the agent knows all messages so far, since it has answered the last one."""
        for message in self._messages[self._answered :]:
            if message["type"] == "hello":
                self._shown_facts = message.get("facts", {})
        self._shown_lines = len(self._messages[-1].get("facts", {}).get("history", ()))
        self._answered = len(self._messages)

    def send(self, message: Mapping[str, Any]) -> None:
        with self._changed:
            self._messages.append(message)
            if message["type"] == "end" and self._game is not None:
                hello = next(earlier for earlier in reversed(self._messages) if earlier["type"] == "hello")
                self._ended.append(GameEnd(game=self._game, seat=hello["seat"], results=message["results"]))
            self._notify()

    def stop(self) -> None:
        """End the game without a result."""
        self.send({"type": "end", "results": None})

    def give_back(self, seat: "AgentSeat") -> None:
        """Let the next game in the queue begin."""
        with self._changed:
            self._game = None
            self._notify()

    def end_run(self, reason: str) -> None:
        """Tell the agent that the run is over. Only the first reason is kept."""
        with self._changed:
            self._reason = self._reason or reason
            self._notify()

    def _check_stop(self) -> None:
        if self.stopped():
            raise Interrupted("stopped by Ctrl-C")

    def _notify(self) -> None:
        self._changed.notify_all()
        for listener in self._listeners:
            listener()

    # The agent's requests call these methods.

    def connect(self) -> None:
        """Record that a request has arrived. The first request starts the clock for the first question."""
        with self._changed:
            self._last_request = monotonic()
            self._changed.notify_all()

    def has_left(self, now: float) -> bool:
        """Return whether the agent never connected, or stopped sending requests after it saw the end of the run."""
        return self._last_request is None or (self._saw_end and now - self._last_request > _LEAVING_SECONDS)

    async def wait(self, seconds: float) -> None:
        """Wait until a question is open or the run has ended, but at most this many seconds."""
        loop, changed = asyncio.get_running_loop(), asyncio.Event()

        def wake() -> None:
            # The event loop may have ended.
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(changed.set)

        with self._changed:
            self._listeners.add(wake)
        try:
            async with asyncio.timeout(seconds):
                while not self._is_open and self._reason is None:
                    changed.clear()
                    if not self._is_open and self._reason is None:
                        await changed.wait()
        except TimeoutError:
            pass
        finally:
            with self._changed:
                self._listeners.discard(wake)

    def observe(self, whole: bool) -> Observation:
        """Return the open question and what is new since the last answer, or the whole game with all facts."""
        with self._changed:
            self._saw_end = self._reason is not None
            return Observation(
                state="over" if self._reason is not None else "decide" if self._is_open else "wait",
                game=self._latest,
                question=self._question if self._is_open else None,
                seconds=self._remaining_seconds() if self._is_open else None,
                messages=_strip_earlier(self._messages) if whole else self._shorten(self._messages[self._answered :]),
            )

    def _shorten(self, messages: Sequence[Mapping[str, object]]) -> list[dict[str, object]]:
        """Return messages without what the agent has seen, and without the events that the history tells.

        Of the facts, `hello` keeps those that differ from the last game's, and the last question keeps the game's brief
        ones and the new lines of the history.
        """
        kept, is_told = list[dict[str, Any]](), False
        for message in reversed(_strip_earlier(messages)):
            match message["type"]:
                case "hello":
                    new = [fact for fact in message["facts"].items() if fact not in self._shown_facts.items()]
                    message["facts"] = dict(new)
                case "event" if is_told:
                    continue
                case "end":
                    is_told = False
                case "decide" if "facts" in message:
                    facts, legal = message["facts"], message["legal"]
                    brief = (facts.keys() if self._brief is None else self._brief) - _NOT_BRIEF
                    shown = {key: facts[key] for key in facts if key in brief}
                    shown |= {key: round(fact, 3) for key, fact in shown.items() if isinstance(fact, float)}
                    if "history" in facts:
                        is_told, shown["history"] = True, facts["history"][self._shown_lines :]
                    form = {} if legal is not None else {"schema": message["schema"]}
                    message = {"type": "decide", "node": message["node"], "facts": shown, "legal": legal, **form}
            kept.append(message)
        return kept[::-1]

    def legal_moves(self) -> LegalMoves:
        """Return the legal answers to the open question. Raises NotOpen."""
        with self._changed:
            self._check_open(self._question)
            decide = self._messages[-1]
            return LegalMoves(
                question=self._question,
                node=decide["node"],
                legal=decide["legal"],
                schema=decide["schema"],
                seconds=self._remaining_seconds(),
            )

    def submit(self, answer: AgentAnswer) -> "Future[None]":
        """Pass an answer to its game. Raises NotOpen.

        The result raises IllegalOutput for an unusable answer and NotOpen for a late one.
        """
        lines = [json.dumps({"answer": reading}) for reading in answer.readings]
        with self._changed:
            self._check_open(answer.question)
            if self._pending is not None:
                raise NotOpen(f"another answer to question {self._question} is being checked")
            verdict = Future[None]()
            # From now on, a client that disconnects cannot cancel the answer.
            verdict.set_running_or_notify_cancel()
            self._pending = (lines, verdict)
            self._changed.notify_all()
            return verdict

    def progress(self) -> SeatProgress:
        with self._changed:
            self._saw_end = self._reason is not None
            state: Literal["playing", "over"] = "playing" if self._reason is None else "over"
            return SeatProgress(state=state, reason=self._reason, games=self.games, ended=[*self._ended])

    def _check_open(self, question: int) -> None:
        """Raise NotOpen unless this question is open."""
        if self._is_open and question == self._question and self._reason is None:
            return
        raise NotOpen(self._describe_closed(question))

    def _describe_closed(self, question: int) -> str:
        """Return why a question is not open."""
        why = (
            f": your agent failed: {self._missed[1]}"
            if self._missed is not None and self._missed[0] == question
            else ""
        )
        if self._reason is not None:
            return f"the run is over ({one_line(self._reason)})" if not why else f"the run is over{why}"
        if why or (self._is_open and question == self._question):
            return f"question {question} is no longer open{why}"
        if self._is_open:
            return f"question {question} is not open, but question {self._question} is"
        return "no question is open: call observe until one is"

    def _remaining_seconds(self) -> float:
        return self.deadline if self._until is None else round(max(0.0, self._until - monotonic()), 1)


# Facts that a shortened question gives in another place, or that only matter with the whole history.
_NOT_BRIEF: Final = frozenset({"history", "own_moves", "node", "legal"})


def _strip_earlier(messages: Sequence[Mapping[str, object]]) -> list[dict[str, Any]]:
    """Return messages with only the name of each question but the last, since later facts include earlier ones."""
    last = max((place for place, message in enumerate(messages) if message["type"] == "decide"), default=-1)
    return [
        {"type": "decide", "node": message["node"]} if message["type"] == "decide" and place < last else dict(message)
        for place, message in enumerate(messages)
    ]


def _first_legal(lines: Sequence[str], check: Callable[[str], None]) -> str:
    """Return the first line that can be used. Raises IllegalOutput for the last one if all are unusable."""
    for line in lines[:-1]:
        with suppress(IllegalOutput):
            check(line)
            return line
    check(lines[-1])
    return lines[-1]
