"""A decision: ask, re-ask as the cause suggests, and say what came of it.

Nothing is played without a recorded outcome: `model`, `model_after_reask`, or `fallback:<cause>`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Any, Final

from dubito.errors import RunStopped, UsageError, one_line
from dubito.llm.answers import REASKS, read_answer
from dubito.llm.failures import AttemptFailed
from dubito.llm.prompts import Prompt, Rendered
from dubito.llm.protocols import Exchange, build_request
from dubito.llm.retry import Attempt
from dubito.llm.settings import ModelSettings
from dubito.llm.wire import Ask, Place, canonical, draw_of
from dubito.player import PlayerAI
from dubito.rules import Rules
from dubito.store.model_log import ModelLog

_SAID: Final = 500  # characters of an unreadable reply that a re-ask quotes


@dataclass(slots=True)
class Journal:
    """The decisions of one game, for its part of the results digest."""

    decisions: list[object] = field(default_factory=list)

    def digest(self) -> bytes:
        """A hash over each decision's node, answer, outcome, request and reply digests."""
        return sha256(canonical(self.decisions).encode()).digest()


@dataclass(frozen=True, slots=True)
class ModelPlayer:
    """One model player of a run, shared by its games."""

    name: str
    settings: ModelSettings
    prompt: Prompt
    fallback: type[PlayerAI]
    ask: Attempt
    log: ModelLog
    seed: int
    rules: Rules
    counted: Callable[[str], None]  # told each outcome, for the progress line

    def render(self, facts: Mapping[str, Any]) -> Rendered:
        """The prompt for these facts; raises RunStopped where a template fails on a position it meets first here."""
        try:
            return self.prompt.fill(facts)
        except UsageError as error:
            raise RunStopped(f"the prompt of {one_line(self.name)} failed under way: {error}") from None

    def decide(
        self, rendered: Rendered, place: Place, turn: int, journal: Journal, otherwise: Callable[[], bool]
    ) -> bool:
        """The answer of a decision; `otherwise` is the fallback's."""
        digests: list[list[str | None]] = []
        answer, outcome = self._model(rendered, place, digests)
        if answer is None:
            answer = otherwise()
        journal.decisions.append([place.seat, place.decision, place.node, answer, outcome, digests])
        self.log.decision((place.game, place.seat, place.decision), turn, place.node, answer, outcome)
        self.counted(outcome)
        return answer

    def _model(self, rendered: Rendered, place: Place, digests: list[list[str | None]]) -> tuple[bool | None, str]:
        again: list[tuple[str, str]] = []
        for attempt in range(self.settings.reasks + 1):
            here = replace(place, attempt=attempt)
            exchange = Exchange(rendered.system, rendered.user, tuple(again))
            request = build_request(self.settings, exchange, f"dubito-{self.prompt.digest[:16]}")
            draw = draw_of(self.seed, here, self.settings.sample)
            digests.append([request.digest, None])
            try:
                reply = self.ask(Ask(request, draw, here))
                digests[-1][1] = reply.digest
                return read_answer(reply), "model_after_reask" if attempt else "model"
            except AttemptFailed as error:
                failure = error
                if error.cause not in REASKS:  # asking again would not help
                    break
                said = (error.text or "").strip()[-_SAID:] or "(nothing)"
                again.append((said, REASKS[error.cause].format(detail=error.detail)))
        return None, f"fallback:{failure.cause}"


@dataclass(frozen=True, slots=True)
class GameServices:
    """What a model player's seat in one game is given: its player, and the game's journal."""

    player: ModelPlayer
    journal: Journal
