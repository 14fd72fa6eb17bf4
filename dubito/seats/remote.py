"""A seat whose questions an agent answers over a network, one game at a time.

The thread of a game leaves its messages here and waits for the answer. The agent's requests arrive through a server
(`dubito/web/agent.py`). Agents get the same messages as programs (docs/programs.md).
"""

import asyncio
import json
import secrets
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from threading import Condition
from time import monotonic
from typing import Any, Final, Literal

from pydantic import BaseModel, Field

from dubito.errors import IllegalOutput
from dubito.files import CheckedModel
from dubito.llm.request import Interrupted
from dubito.seats.program import ProgramError

_MAX_WAIT: Final = 60.0  # maximum number of seconds that a request waits for a question
_POLL_SECONDS: Final = 0.5  # seconds between checks for a stop of the run
_LEAVING_SECONDS: Final = 1.0  # seconds without a request after the end of the run
_MAX_REFUSALS: Final = (
    100  # maximum number of refused answers to a question, since a faulty agent would repeat one forever
)


class ObserveOptions(CheckedModel):
    """Options for observing."""

    wait: float = Field(30, ge=0, le=_MAX_WAIT, description="maximum number of seconds to wait for a question")
    all: bool = Field(default=False, description="return all messages of this game, not only new ones")


class Observation(BaseModel):
    """The messages and the open question that an agent sees."""

    state: Literal["decide", "wait", "over"] = Field(
        description="`decide` if a question is open, `over` if the run has ended"
    )
    game: int | None = Field(description="number of the game in the run, from 0")
    question: int | None = Field(description="number of the open question, to be sent with your answer")
    seconds: float | None = Field(description="time left for the answer")
    messages: list[dict[str, Any]] = Field(
        description=(
            "the messages since your last answer, or all messages of this game (hello, event, decide and end, "
            "described in docs/programs.md). The last one is the open question."
        )
    )


class LegalMoves(BaseModel):
    """The legal answers to the open question."""

    question: int
    node: str
    legal: list[Any] | None = Field(description="all legal answers; null if there are too many to list")
    answer_schema: dict[str, Any] = Field(alias="schema", description='JSON schema of {"answer": X}')
    seconds: float = Field(description="time left for the answer")


class AgentAnswer(CheckedModel):
    """An answer to a question."""

    question: int = Field(description="number of the question, from observe")
    answer: Any = Field(description="one of the legal answers")


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

    def __init__(self, name: str, games: int, deadline: float) -> None:
        self.name, self.games, self.deadline = name, games, deadline
        self.token = secrets.token_urlsafe(24)
        self.stopped: Callable[[], bool] = lambda: False  # whether the run was stopped
        self._changed = Condition()
        self._listeners = set[Callable[[], None]]()
        self._queue = set[int]()  # games that wait for their turn
        self._game: int | None = None
        self._latest: int | None = None  # the current game, or the last one
        self._messages: list[Mapping[str, Any]] = []
        self._answered = 0  # number of messages before the last answer
        self._question = 0
        self._until: float | None = None  # deadline of the open question; None if no agent has connected
        self._is_open = self._saw_end = False
        self._last_request: float | None = None
        self._pending: tuple[str, Future[None]] | None = None
        self._ended: list[GameEnd] = []
        self._reason: str | None = None

    # The threads of games call these methods.

    def take(self, game: int) -> "AgentSeat":
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

    def answer(self, messages: Sequence[Mapping[str, Any]], check: Callable[[str], None]) -> str:
        """Show messages and return the line that answers the last one.

        Unlike a program, an agent receives questions with recorded answers only for information. If `check` refuses an
        answer, the agent can correct it until the time is up. Raises ProgramError if there is no answer in time, or
        Interrupted.
        """
        with self._changed:
            if messages[0]["type"] == "hello":
                # The agent may not have seen the end of the last game yet.
                self._messages, self._answered = self._messages[self._answered :], 0
            self._messages += messages
            self._question, self._is_open, self._until = self._question + 1, True, None
            self._notify()
            try:
                return self._await_answer(check)
            finally:
                self._is_open = False
                if self._pending is not None:
                    self._pending[1].set_exception(NotOpen(f"question {self._question} is no longer open"))
                    self._pending = None
                self._notify()

    def _await_answer(self, check: Callable[[str], None]) -> str:
        refusals, last_refusal = 0, ""
        while True:
            self._check_stop()
            if self._until is None and self._last_request is not None:
                self._until = monotonic() + self.deadline
            if self._pending is not None:
                (line, verdict), self._pending = self._pending, None
                try:
                    check(line)
                except IllegalOutput as error:
                    refusals, last_refusal = refusals + 1, f"; its last answer was refused: {error}"
                    verdict.set_exception(error)
                    if refusals >= _MAX_REFUSALS:
                        raise ProgramError(f"{refusals} of its answers were refused{last_refusal}") from None
                    continue
                except BaseException:
                    verdict.set_exception(NotOpen("the game failed"))
                    raise
                self._answered = len(self._messages)
                verdict.set_result(None)
                return line
            left = _POLL_SECONDS if self._until is None else self._until - monotonic()
            if left <= 0:
                raise ProgramError(f"it did not answer within {self.deadline:g} s{last_refusal}")
            self._changed.wait(min(left, _POLL_SECONDS))

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
        """Return the messages since the last answer (or all messages of the game) and the open question."""
        with self._changed:
            self._saw_end = self._reason is not None
            return Observation(
                state="over" if self._reason is not None else "decide" if self._is_open else "wait",
                game=self._latest,
                question=self._question if self._is_open else None,
                seconds=self._remaining_seconds() if self._is_open else None,
                messages=[dict(message) for message in self._messages[0 if whole else self._answered :]],
            )

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
        line = json.dumps({"answer": answer.answer})
        with self._changed:
            self._check_open(answer.question)
            if self._pending is not None:
                raise NotOpen(f"another answer to question {self._question} is being checked")
            verdict = Future[None]()
            # From now on, a client that disconnects cannot cancel the answer.
            verdict.set_running_or_notify_cancel()
            self._pending = (line, verdict)
            self._changed.notify_all()
            return verdict

    def progress(self) -> SeatProgress:
        with self._changed:
            self._saw_end = self._reason is not None
            state: Literal["playing", "over"] = "playing" if self._reason is None else "over"
            return SeatProgress(state=state, reason=self._reason, games=self.games, ended=[*self._ended])

    def _check_open(self, question: int) -> None:
        """Raise NotOpen unless this question is open."""
        if self._reason is not None:
            raise NotOpen("the run is over")
        if not self._is_open:
            raise NotOpen("no question is open: call observe until one is")
        if question != self._question:
            raise NotOpen(f"question {question} is not open, but question {self._question} is")

    def _remaining_seconds(self) -> float:
        return self.deadline if self._until is None else round(max(0.0, self._until - monotonic()), 1)
