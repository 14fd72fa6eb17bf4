"""Replays of a run's recording, and the differences between two requests.

`ReplayRecording` compares every request and decision of a replay with the recorded one. It has no provider, so it
cannot reach a network. `find_nearest` and `differing_parts` show why the cache has no reply to a request. The nearest
entry has the same request, or else the same draw, or else the longest common beginning.
"""

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import zip_longest
from typing import Any, AnyStr, Final

from dubito.errors import RunStopped, one_line
from dubito.llm.cache import CacheEntry
from dubito.llm.protocols import conversation, read_recorded_reply
from dubito.llm.request import CAUSES, Attempt, AttemptFailed, Place, Reply
from dubito.store.model_log import Decision, ModelLog, describe_answer
from dubito.store.spend import TOKENS

_MAX_SHOWN: Final = 100  # characters of each part
_SHOWN_BEFORE: Final = 30  # number of characters shown before the first difference of two texts
_MISSING: Final = object()


@dataclass(frozen=True, slots=True)
class RequestDifference:
    """A part of a request that differs from another request."""

    part: str  # such as `body.model`, or `body.input.1.content, line 12`
    wanted: str
    stored: str


def find_nearest(entries: Iterable[CacheEntry], server: str, request: str, draw: str) -> CacheEntry | None:
    """Return the entry that is most similar to a request, or None if there are no entries."""

    def similarity(entry: CacheEntry) -> tuple[bool, bool, int, bool]:
        same = entry.request == request
        return (
            same,
            entry.draw == draw,
            len(request) if same else common_length(entry.request, request),
            entry.server == server,
        )

    return max(entries, key=similarity, default=None)


def differing_parts(server: str, request: str, draw: str, entry: CacheEntry) -> list[RequestDifference]:
    """Return all parts in which a request differs from an entry."""
    differences = []
    if server != entry.server:
        differences.append(RequestDifference("server", server, entry.server))
    if draw != entry.draw:
        differences.append(RequestDifference("draw (seed, deal, seat, decision, attempt or sample)", draw, entry.draw))
    return differences + compare_requests(request, entry.request)


def compare_requests(wanted: str, stored: str) -> list[RequestDifference]:
    return list(_differences("", json.loads(wanted), json.loads(stored)))


def _differences(where: str, wanted: Any, stored: Any) -> Iterator[RequestDifference]:
    values = (wanted, stored)
    one, other = ("(nothing)" if each is _MISSING else json.dumps(each, sort_keys=True) for each in values)
    if one == other:
        return
    if isinstance(wanted, dict) and isinstance(stored, dict):
        for key in sorted({*wanted, *stored}):
            yield from _differences(f"{where}.{key}".lstrip("."), wanted.get(key, _MISSING), stored.get(key, _MISSING))
    elif isinstance(wanted, list) and isinstance(stored, list):
        for place, items in enumerate(zip_longest(wanted, stored, fillvalue=_MISSING)):
            yield from _differences(f"{where}.{place}", *items)
    elif isinstance(wanted, str) and isinstance(stored, str):
        # Show the first line in which the texts differ, starting shortly before the difference.
        pairs = enumerate(zip_longest(wanted.split("\n"), stored.split("\n"), fillvalue="(no such line)"), start=1)
        number, (line, other_line) = next(pair for pair in pairs if pair[1][0] != pair[1][1])
        is_long = max(len(line), len(other_line)) > _MAX_SHOWN
        start = max(0, common_length(line, other_line) - _SHOWN_BEFORE) if is_long else 0
        part = f"{where}, line {number}" if "\n" in wanted + stored else where
        yield RequestDifference(part, _shorten(line, start), _shorten(other_line, start))
    else:
        yield RequestDifference(where, _shorten(one), _shorten(other))


def _shorten(text: str, start: int = 0) -> str:
    end = start + _MAX_SHOWN
    return f"{'...' if start else ''}{text[start:end]}{'...' if len(text) > end else ''}"


def common_length(one: AnyStr, other: AnyStr) -> int:
    """Return the length of the common prefix of two texts."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if one[:middle] == other[:middle] else (low, middle - 1)
    return low


ReplyCallback = Callable[[Place, str, Reply | AttemptFailed], None]  # receives place, question and result


class Differs(RunStopped):
    """The first difference between a run and its replay."""

    def __init__(self, where: str, what: str, details: list[str]) -> None:
        super().__init__(what, where=where)
        self.what, self.details = what, details

    def __reduce__(self) -> Any:
        return type(self), (self.where, self.what, self.details)


class RecordingEnded(Differs):
    """Raised when the recording ends. This is normal in an unfinished game, and otherwise a difference."""


class ReplayRecording:
    """A run's recording, which answers requests and compares decisions. All players share it."""

    def __init__(self, log: ModelLog, on_reply: ReplyCallback = lambda place, question, end: None) -> None:
        self._log, self._on_reply = log, on_reply
        # For the current game only.
        self._attempts = lru_cache(maxsize=1)(log.finished_attempts)
        self._recorded_decisions = lru_cache(maxsize=1)(log.decisions)
        self.decisions = self.attempts = 0  # compared so far

    def ask(self, attempt: Attempt) -> Reply:
        """Return the recorded reply to this request. Raises the recorded AttemptFailed or Differs."""
        where, recorded = str(attempt.place), self._attempts(attempt.place.game).get(attempt.place.key)
        if recorded is None:
            raise RecordingEnded(where, "the run asked no question at this point", [])
        self.attempts += 1
        if recorded.player != attempt.place.player:
            players = [f"recorded: {one_line(recorded.player)}", f"replayed: {one_line(attempt.place.player)}"]
            raise Differs(where, "a different player was asked", players)
        if recorded.request != attempt.request.digest:
            lines = []
            for part in compare_requests(attempt.request.text, self._log.text(recorded.request)):
                kind = "the schema of the answer" if "schema" in part.part else "a parameter"
                if "content" in part.part or "system" in part.part:
                    kind = "the prompt's text: its template, the history or the facts"
                lines += [f"{kind} ({part.part})", f"  recorded: {part.stored}", f"  replayed: {part.wanted}"]
            raise Differs(where, "the request differs from the recorded one", lines)
        if recorded.draw != attempt.draw:
            raise Differs(where, "the draw differs", [f"recorded: {recorded.draw}", f"replayed: {attempt.draw}"])
        messages = conversation(attempt.request)
        question = messages[-1][1].rpartition("===")[2].strip() if messages else ""
        if recorded.cause is not None:
            fields_of_reply = [recorded.reply, recorded.raw, recorded.model, *recorded.usage]
            if recorded.cause not in CAUSES or any(value is not None for value in fields_of_reply):
                raise Differs(where, "the recorded cause of failure was changed or is damaged", [])
            failed = AttemptFailed(recorded.cause, "recorded outcome")
            self._on_reply(attempt.place, question, failed)
            raise failed
        try:
            reply = read_recorded_reply(attempt.request.protocol, recorded.raw and self._log.text(recorded.raw))
        except RunStopped as error:
            raise Differs(where, "the recorded reply was changed or is damaged", [str(error)]) from None
        if reply.digest != recorded.reply:
            digests = [f"recorded: {recorded.reply}", f"replayed: {reply.digest}"]
            raise Differs(where, "the recorded reply is now parsed differently (reply digest)", digests)
        stated = (reply.usage.counts if reply.usage else (None,) * len(TOKENS), reply.model)
        if (recorded.usage, recorded.model) != stated:
            details = [f"recorded: {recorded.usage}, {recorded.model}", f"in the reply: {stated[0]}, {stated[1]}"]
            raise Differs(where, "the recorded tokens or model do not match the reply", details)
        self._on_reply(attempt.place, question, reply)
        return reply

    def decision(self, decision: Decision) -> None:
        """Compare a decision with the recorded one. Raises Differs."""
        recorded = self._recorded_decisions(decision.game).get((decision.seat, decision.number))
        before, now = _describe_decision(recorded), _describe_decision(decision)
        if before != now:
            where = f"game {decision.game}, seat {decision.seat}, decision {decision.number}"
            error = RecordingEnded if recorded is None else Differs
            raise error(where, "the decision differs", [f"recorded: {before}", f"replayed: {now}"])
        self.decisions += 1


def _describe_decision(decision: Decision | None) -> str:
    if decision is None:
        return "no decision"
    stated = "" if decision.stated is None else f", probability {decision.stated!r}"
    return (
        f"turn {decision.turn}, node {decision.node}: {describe_answer(decision.answer)} ({decision.outcome}){stated}"
    )
