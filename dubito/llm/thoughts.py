"""What models think at a table, for those who may see everything: told as each decision is taken."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from dubito.errors import one_line
from dubito.game import FALLBACK_OUTCOME
from dubito.llm.answers import reasoning_of
from dubito.llm.decide import Decider, DecisionLog
from dubito.llm.request import Ask, Reply
from dubito.store.model_log import Decision, answer_in_words

if TYPE_CHECKING:
    from dubito.llm.gate import MakeAttempt

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
    p_bluff: float | None  # as it was stated
    reasoning: str  # that it gave with its last reply; empty: none

    def in_words(self, name: str, question: str, truth: bool | None) -> str:
        """The thought in a line; `truth` is whether what was stated a probability of is a bluff, None to leave it."""
        answer = one_line(answer_in_words(self.answer))
        again = f" (asked {self.asked} times)" if self.asked > 1 else ""
        if self.outcome.startswith(FALLBACK_OUTCOME):
            cause = self.outcome.removeprefix(FALLBACK_OUTCOME)
            return f"{name}: {question} No answer{again}, since {_WHY.get(cause, cause)}: its fallback says {answer}."
        words = [f"{name}: {question} {answer[:1].upper()}{answer[1:]}{again}."]
        if self.p_bluff is not None:
            really = "" if truth is None else f"; it was {'a bluff' if truth else 'honest'}"
            words.append(f"Stated: {100 * self.p_bluff:.0f} % a bluff{really}.")
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
        self._hear(Thought(*taken, asked, decision.p_bluff, reasoning))
