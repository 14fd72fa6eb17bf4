"""A run's tape, played again: every question is compared with the one that was asked, every answer with the one taken.

Nothing here can reach a network: there is no provider.

Why the cache has no reply to a request: the entry nearest to it, and which of its parts differ.

Nearest is, in this order: the same request, the same draw, the longest common beginning of the texts.
"""

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import zip_longest
from typing import Any, AnyStr, Final, cast

from dubito.errors import RunStopped, one_line
from dubito.llm.cache import CacheEntry
from dubito.llm.protocols import read_recorded_reply
from dubito.llm.request import CAUSES, Attempt, AttemptFailed, Cause, Place, Reply
from dubito.store.model_log import TOKENS, Decision, ModelLog, RecordedAttempt, answer_in_words

_SHOWN: Final = 100  # characters of a part, on either side
_BEFORE: Final = 30  # of them before the place where two texts part
_NOTHING: Final = object()  # there is no such part


@dataclass(frozen=True, slots=True)
class RequestDifference:
    """A part in which a request and an entry differ."""

    part: str  # such as `body.model`, or `body.input.1.content, line 12`
    wanted: str
    stored: str


def nearest(entries: Iterable[CacheEntry], server: str, request: str, draw: str) -> CacheEntry | None:
    """The entry nearest to the request of this text; None if there is none. Goes through all of them."""

    def likeness(entry: CacheEntry) -> tuple[bool, bool, int, bool]:
        same = entry.request == request
        return (
            same,
            entry.draw == draw,
            len(request) if same else common(entry.request, request),
            entry.server == server,
        )

    return max(entries, key=likeness, default=None)


def differing_parts(server: str, request: str, draw: str, entry: CacheEntry) -> list[RequestDifference]:
    """All parts in which they differ."""
    found = []
    if server != entry.server:
        found.append(RequestDifference("server", server, entry.server))
    if draw != entry.draw:
        found.append(RequestDifference("draw (seed, deal, seat, decision, attempt or sample)", draw, entry.draw))
    return found + parts(request, entry.request)


def parts(wanted: str, stored: str) -> list[RequestDifference]:
    return list(_differences("", json.loads(wanted), json.loads(stored)))


def _differences(where: str, wanted: Any, stored: Any) -> Iterator[RequestDifference]:
    one, other = _json(wanted), _json(stored)
    if one == other:
        return
    if isinstance(wanted, dict) and isinstance(stored, dict):
        for key in sorted({*wanted, *stored}):
            yield from _differences(f"{where}.{key}".lstrip("."), wanted.get(key, _NOTHING), stored.get(key, _NOTHING))
    elif isinstance(wanted, list) and isinstance(stored, list):
        for place, items in enumerate(zip_longest(wanted, stored, fillvalue=_NOTHING)):
            yield from _differences(f"{where}.{place}", *items)
    elif isinstance(wanted, str) and isinstance(stored, str):
        yield _first_line(where, wanted, stored)
    else:
        yield RequestDifference(where, _brief(one), _brief(other))


def _json(value: Any) -> str:
    return "(nothing)" if value is _NOTHING else json.dumps(value, sort_keys=True)


def _first_line(where: str, wanted: str, stored: str) -> RequestDifference:
    """The first line in which two texts differ, from shortly before the place on."""
    pairs = enumerate(zip_longest(wanted.split("\n"), stored.split("\n"), fillvalue="(no such line)"), start=1)
    line, (one, other) = next(pair for pair in pairs if pair[1][0] != pair[1][1])
    start = max(0, common(one, other) - _BEFORE) if max(len(one), len(other)) > _SHOWN else 0
    shown = (_brief(one, start), _brief(other, start))
    return RequestDifference(f"{where}, line {line}" if "\n" in wanted + stored else where, *shown)


def _brief(text: str, start: int = 0) -> str:
    end = start + _SHOWN
    return f"{'...' if start else ''}{text[start:end]}{'...' if len(text) > end else ''}"


def common(one: AnyStr, other: AnyStr) -> int:
    """How many characters, or bytes, both begin with."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if one[:middle] == other[:middle] else (low, middle - 1)
    return low


ReplyCallback = Callable[[Place, str, Reply | AttemptFailed], None]  # told what was asked, and what came of it


class Differs(RunStopped):
    """The first difference between a run and its replay: where, what, and how in detail."""

    def __init__(self, where: str, what: str, details: list[str]) -> None:
        super().__init__(where, what, details)
        self.where, self.what, self.details = where, what, details

    def __str__(self) -> str:
        return f"{self.where}: {self.what}"


class RecordingEnded(Differs):
    """The recording has nothing here: as it should be where an unfinished game stopped, else a difference."""


class ReplayRecording:
    """The tape of a run as a way to ask, and as a log that compares; one for all its players."""

    def __init__(self, log: ModelLog, hear: ReplyCallback = lambda place, question, end: None) -> None:
        self._log, self._hear = log, hear
        self._attempts = lru_cache(maxsize=1)(log.finished_attempts)  # of the game that is played
        self._decided = lru_cache(maxsize=1)(log.decisions)
        self.decisions = self.attempts = 0  # compared so far

    def ask(self, ask: Attempt) -> Reply:
        """What was replied to this very question; raises AttemptFailed as it was then, or Differs."""
        kept = self._attempts(ask.place.game).get(ask.place.key)
        if kept is None:
            raise RecordingEnded(str(ask.place), "the run asked nothing at this point", [])
        self.attempts += 1
        if kept.player != ask.place.player:
            said = [f"recorded: {one_line(kept.player)}", f"replayed: {one_line(ask.place.player)}"]
            raise Differs(str(ask.place), "another player was asked", said)
        if kept.request != ask.request.digest:
            raise Differs(str(ask.place), "the request differs from the recorded one", self._differences(kept, ask))
        if kept.draw != ask.draw:
            raise Differs(str(ask.place), "the draw differs", [f"recorded: {kept.draw}", f"replayed: {ask.draw}"])
        if kept.cause is not None:
            self._check_without_reply(kept, ask)
            failed = AttemptFailed(cast(Cause, kept.cause), "recorded outcome")
            self._hear(ask.place, _question(ask), failed)
            raise failed
        reply = self._reply(kept, ask)
        said_by_reply = (reply.usage.counts if reply.usage else (None,) * len(TOKENS), reply.model)
        if (kept.usage, kept.model) != said_by_reply:
            details = [f"recorded: {kept.usage}, {kept.model}", f"in the reply: {said_by_reply[0]}, {said_by_reply[1]}"]
            raise Differs(str(ask.place), "the tokens or the model are not those that the reply states", details)
        self._hear(ask.place, _question(ask), reply)
        return reply

    def decision(self, decision: Decision) -> None:
        """Compare a decision with the one that was taken; raises Differs."""
        taken = self._decided(decision.game).get((decision.seat, decision.number))
        before, now = _as_compared(taken), _as_compared(decision)
        if before != now:
            said = [f"recorded: {before}", f"replayed: {now}"]
            where = f"game {decision.game}, seat {decision.seat}, decision {decision.number}"
            raise (RecordingEnded if taken is None else Differs)(where, "the decision differs", said)
        self.decisions += 1

    def _check_without_reply(self, kept: RecordedAttempt, ask: Attempt) -> None:
        beside = [kept.reply, kept.raw, kept.model, *kept.usage]
        if kept.cause not in CAUSES or any(value is not None for value in beside):
            raise Differs(str(ask.place), "the recorded cause of failure was changed or is damaged", [])

    def _reply(self, kept: RecordedAttempt, ask: Attempt) -> Reply:
        try:
            reply = read_recorded_reply(ask.request.protocol, kept.raw and self._log.text(kept.raw))
        except RunStopped as error:
            raise Differs(str(ask.place), "the reply on the tape was changed or is damaged", [str(error)]) from None
        if reply.digest != kept.reply:
            said = [f"recorded: {kept.reply}", f"replayed: {reply.digest}"]
            raise Differs(str(ask.place), "the reply on the tape is now read differently (reply digest)", said)
        return reply

    def _differences(self, kept: RecordedAttempt, ask: Attempt) -> list[str]:
        found = []
        for part in parts(ask.request.text, self._log.text(kept.request)):
            found += [f"{_kind(part.part)} ({part.part})", f"  recorded: {part.stored}", f"  replayed: {part.wanted}"]
        return found


def _question(ask: Attempt) -> str:
    messages = ask.request.body.get("messages") or ask.request.body.get("input") or [{}]
    content = messages[-1].get("content", "")
    text = content[-1].get("text", "") if isinstance(content, list) else content  # the last block is the question
    return str(text).rpartition("===")[2].strip()


def _kind(part: str) -> str:
    if "content" in part or "system" in part:
        return "text of the prompt: its template, the history or the facts"
    return "the schema of the answer" if "schema" in part else "a parameter"


def _as_compared(taken: Decision | None) -> str:
    if taken is None:
        return "no decision"
    stated = "" if taken.stated is None else f", probability {taken.stated!r}"
    return f"turn {taken.turn}, node {taken.node}: {answer_in_words(taken.answer)} ({taken.outcome}){stated}"
