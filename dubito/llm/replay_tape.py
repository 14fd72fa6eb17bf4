"""A run's tape, played again: every question is compared with the one that was asked, every answer with the one taken.

Nothing here can reach a network: there is no provider.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import cast

from dubito.errors import RunStopped
from dubito.llm.explain import parts
from dubito.llm.failures import AttemptFailed, Cause
from dubito.llm.protocols import kept_reply
from dubito.llm.wire import Ask, Place, Reply
from dubito.store.model_log import Decision, ModelLog, TapedAttempt, answer_in_words

HearReply = Callable[[Place, str, Reply | AttemptFailed], None]  # told what was asked, and what came of it


class Differs(RunStopped):
    """The first difference between a run and its replay: where, what, and how in detail."""

    def __init__(self, where: str, what: str, details: list[str]) -> None:
        super().__init__(where, what, details)
        self.where, self.what, self.details = where, what, details

    def __str__(self) -> str:
        return f"{self.where}: {self.what}"


class ReplayTape:
    """The tape of a run as a way to ask, and as a log that compares; one for all its players."""

    def __init__(self, log: ModelLog, hear: HearReply = lambda place, question, end: None) -> None:
        self._log, self._hear = log, hear
        self._attempts = lru_cache(maxsize=1)(log.finished_attempts)  # of the game that is played
        self._decided = lru_cache(maxsize=1)(log.decisions)
        self.decisions = 0

    def ask(self, ask: Ask) -> Reply:
        """What was replied to this very question; raises AttemptFailed as it was then, or Differs."""
        kept = self._attempts(ask.place.game).get(ask.place.key)
        if kept is None:
            raise Differs(str(ask.place), "the run asked nothing at this point", [])
        if kept.request != ask.request.digest:
            raise Differs(str(ask.place), "the request differs from the recorded one", self._differences(kept, ask))
        if kept.draw != ask.draw:
            raise Differs(str(ask.place), "the draw differs", [f"recorded: {kept.draw}", f"replayed: {ask.draw}"])
        if kept.cause is not None:
            failed = AttemptFailed(cast(Cause, kept.cause), "recorded outcome")
            self._hear(ask.place, _question(ask), failed)
            raise failed
        reply = self._reply(kept, ask)
        self._hear(ask.place, _question(ask), reply)
        return reply

    def decision(self, decision: Decision) -> None:
        """Compare a decision with the one that was taken; raises Differs."""
        taken = self._decided(decision.game).get((decision.seat, decision.number))
        before, now = _in_words(taken), _in_words(decision)
        if before != now:
            said = [f"recorded: {before}", f"replayed: {now}"]
            where = f"game {decision.game}, seat {decision.seat}, decision {decision.number}"
            raise Differs(where, "the decision differs", said)
        self.decisions += 1

    def _reply(self, kept: TapedAttempt, ask: Ask) -> Reply:
        try:
            reply = kept_reply(ask.request.protocol, kept.raw and self._log.text(kept.raw), kept.reply)
        except RunStopped as error:
            raise Differs(str(ask.place), "the reply on the tape was changed or is damaged", [str(error)]) from None
        if reply.digest != kept.reply:
            said = [f"recorded: {kept.reply}", f"replayed: {reply.digest}"]
            raise Differs(str(ask.place), "the reply on the tape is now read differently (reply digest)", said)
        return reply

    def _differences(self, kept: TapedAttempt, ask: Ask) -> list[str]:
        found = []
        for part in parts(ask.request.text, self._log.text(kept.request)):
            found += [f"{_kind(part.part)} ({part.part})", f"  recorded: {part.stored}", f"  replayed: {part.wanted}"]
        return found


def _question(ask: Ask) -> str:
    """The end of what was asked: what follows the facts, or the re-ask."""
    messages = ask.request.body.get("messages") or ask.request.body.get("input") or [{}]
    content = messages[-1].get("content", "")
    text = content[-1].get("text", "") if isinstance(content, list) else content  # the last block is the question
    return str(text).rpartition("===")[2].strip()


def _kind(part: str) -> str:
    """What a part of a request is, for the reader of a difference."""
    if "content" in part or "system" in part:
        return "text of the prompt: its template, the history or the facts"
    return "the schema of the answer" if "schema" in part else "a parameter"


def _in_words(taken: Decision | None) -> str:
    """The decision, as far as a replay compares it."""
    if taken is None:
        return "no decision"
    return f"node {taken.node}: {answer_in_words(taken.answer)} ({taken.outcome})"
