"""A decision: ask, re-ask as the cause suggests, and say what came of it.

Nothing is played without a recorded outcome: `model`, `model_after_reask`, or `fallback:<cause>`."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from hashlib import sha256
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, Protocol

from dubito.errors import IllegalOutput, RunStopped, UsageError, one_line
from dubito.game import FALLBACK_OUTCOME, STATED, Player, Seating, Text
from dubito.llm.answers import Form, ModelAnswer, re_ask, read_answer
from dubito.llm.protocols import Exchange, build_request
from dubito.llm.request import AccountFault, Ask, AttemptFailed, Cause, Place, Reply, canonical, digest_of, draw_of
from dubito.llm.settings import ModelSettings
from dubito.store.model_log import Decision

if TYPE_CHECKING:
    from dubito.llm.gate import MakeAttempt
    from dubito.llm.prompts import Prompt, RenderedPrompt, SeatTexts

_SAID: Final = 500  # characters of an unreadable reply that a re-ask quotes
LOOK_AT: Final[Mapping[Cause, str]] = {  # by the cause why a player's answers cannot be used: its settings
    "malformed": "`response_format`, `prompt` and how the server shows thoughts",
    "truncated": "`max_output`",
    "too_long": "`prompt` and `max_output`",
    "refused": "`prompt` and `model`",
    "illegal": "`prompt` and `model`",
    "unreachable": "`base_url`",
}


@dataclass(frozen=True, slots=True)
class StatedProbability:
    """The probability that a model stated at a node that `states` one; it decides nothing."""

    seat: int
    decision: int
    stated: float | None  # within [0, 1]; None: it said null, or something impossible
    impossible: bool


@dataclass(slots=True)
class Journal:
    """The decisions of one game, for its part of the results digest, and what its statistics need of them."""

    decisions: list[object] = field(default_factory=list)
    touched: set[int] = field(default_factory=set)  # seats for which a fallback answered at least once
    stated: list[StatedProbability] = field(default_factory=list)

    def digest(self) -> bytes:
        """A hash over each decision's node, answer, outcome, request and reply digests."""
        return sha256(canonical(self.decisions).encode()).digest()


_FIRST: Final = 20  # attempts: if a player's first ones all come to nothing, the run stops


@dataclass(slots=True)
class UnusableAnswers:
    """Whether a player's attempts came to anything: a run whose first ones all came to nothing stops.

    Those on the tape tell nothing of the model of today: it may be mended since the run was stopped.
    """

    name: str = ""
    stops: bool = False  # `on_unusable: stop`, and no answer of the player's was usable in this run before
    causes: Counter[Cause] = field(default_factory=Counter)
    _lock: Lock = field(default_factory=Lock)

    def check(self) -> None:
        """Raise AccountFault if nothing more is to be asked."""
        if self.stops and self.causes.total() >= _FIRST:
            came = ", ".join(f"{count} {cause}" for cause, count in self.causes.most_common())
            looks = [LOOK_AT[cause] for cause, _ in self.causes.most_common()]
            raise AccountFault(
                f"the first {_FIRST} attempts of {one_line(self.name)} are all unusable ({came}), and a fallback would "
                f"play in its place; check {', '.join(dict.fromkeys(looks))} in its entry, or go on all the same with "
                "`on_unusable: fallback` (--on-unusable fallback)"
            )

    def failed(self, cause: Cause) -> None:
        """An attempt came to nothing; raises AccountFault if all of the first did."""
        with self._lock:
            if self.stops and self.causes.total() < _FIRST:
                self.causes[cause] += 1
        self.check()

    def answered(self) -> None:
        """An attempt came to an answer."""
        with self._lock:
            if self.causes.total() < _FIRST:
                self.stops = False


class DecisionLog(Protocol):
    """Receives every decision: a run's log, or a replay that compares."""

    def decision(self, decision: Decision) -> None:
        """A decision was taken."""


def _no_texts() -> "SeatTexts":
    from dubito.llm.prompts import SeatTexts

    return SeatTexts()


@dataclass(frozen=True, slots=True)
class Decider:
    """Takes the decisions of one model player in all games of a run."""

    name: str
    settings: ModelSettings
    prompt: "Prompt"
    fallback: type[Player]
    ask: "MakeAttempt"
    log: DecisionLog
    seed: int
    rules: Any  # of the game, as its notebook takes them
    counted: Callable[[str], None]  # told each outcome, for the progress line
    unusable: UnusableAnswers = field(default_factory=UnusableAnswers)

    def render(self, facts: Mapping[str, Any], before: "SeatTexts | None" = None) -> "RenderedPrompt":
        """The prompt for these facts; raises RunStopped where a template fails on a position it meets first here."""
        try:
            return self.prompt.fill(facts, before)
        except UsageError as error:
            raise RunStopped(f"the prompt of {one_line(self.name)} failed under way: {error}") from None

    def place(self, seating: Seating, decision: int, node: str) -> Place:
        """Where a decision of this player is taken, numbered from 0 in its game; no attempt was made yet."""
        return Place(self.name, seating.game, seating.deal, seating.id, decision, 0, node)

    def decide(
        self,
        rendered: "RenderedPrompt",
        place: Place,
        turn: int,
        journal: Journal,
        otherwise: Callable[[], Any],
        accept: Callable[[Any], None] = lambda answer: None,
    ) -> Any:
        """Take a decision: ask the model, else the fallback; record it in journal and log, and return the answer.

        `otherwise` gives the fallback's answer, `accept` raises IllegalOutput for one of the model's.
        """
        digests: list[list[str | None]] = []
        form = self.prompt.form(place.node)
        answered, outcome = self._model(rendered, form, place, digests, accept)
        if answered is None:
            answered = ModelAnswer(otherwise())
            journal.touched.add(place.seat)
        answer, stated, impossible = answered.answer, answered.stated, answered.impossible
        journal.decisions.append([place.seat, place.decision, place.node, answer, outcome, digests])
        if STATED in form.fields and not outcome.startswith(FALLBACK_OUTCOME):
            journal.stated.append(StatedProbability(place.seat, place.decision, stated, impossible))
        taken = (place.game, place.seat, place.decision, turn, place.node, answer, outcome, stated)
        self.log.decision(Decision(*taken))
        self.counted(outcome)
        return answer

    def _model(
        self,
        rendered: "RenderedPrompt",
        form: Form,
        place: Place,
        digests: list[list[str | None]],
        accept: Callable[[Any], None],
    ) -> tuple[ModelAnswer | None, str]:
        def ask(asked: Ask) -> Reply:
            self.unusable.check()
            digests.append([asked.request.digest, None])
            reply = self.ask(asked)
            digests[-1][1] = reply.digest
            return reply

        def draw(here: Place) -> str:
            return draw_of(self.seed, here, self.settings.sample)

        try:
            answered = put_question(rendered, form, self.settings, place, draw, ask, accept, self.unusable.failed)
        except AttemptFailed as failure:
            return None, f"{FALLBACK_OUTCOME}{failure.cause}"
        self.unusable.answered()
        return answered, "model_after_reask" if len(digests) > 1 else "model"


def put_question(
    rendered: "RenderedPrompt",
    form: Form,
    settings: ModelSettings,
    place: Place,
    draw: Callable[[Place], str],
    ask: "MakeAttempt",
    accept: Callable[[Any], None] = lambda answer: None,
    failed: Callable[[Cause], None] = lambda cause: None,
) -> ModelAnswer:
    """Put a question to a model, and again as the cause suggests; raises AttemptFailed if no answer came of it.

    `failed` is told the cause of each attempt that came to nothing, and was not on the tape.
    """
    user, again = rendered.user, list[tuple[str, str]]()
    for attempt in range(settings.reasks + 1):
        here = replace(place, attempt=attempt) if attempt else place
        exchange = Exchange(rendered.system, user, form.schema, tuple(again), rendered.history)
        request = build_request(settings, exchange, _cache_key(rendered.system))
        reply: Reply | None = None
        try:
            reply = ask(Ask(request, draw(here), here))
            answered = read_answer(reply, form)
            _refuse_illegal(answered, form, accept, reply)
            return answered
        except AttemptFailed as error:
            if (reply or error).origin != "tape":
                failed(error.cause)
            failure, asked = error, re_ask(error, form)
            if asked is None:
                break
            if error.cause == "refused":  # a model that declined once keeps declining: start anew
                user, again = f"{rendered.user}\n\n{asked}", []
            else:
                again.append(((error.text or "").strip()[-_SAID:] or "(nothing)", asked))
    raise failure


@lru_cache(maxsize=64)
def _cache_key(system: str) -> str:
    return f"dubito-{digest_of(system)[:16]}"


def _refuse_illegal(answered: ModelAnswer, form: Form, accept: Callable[[Any], None], reply: Reply) -> None:
    """Raise AttemptFailed with the sentence where the rules refuse the answer, or it cannot be said."""
    try:
        if isinstance(form.kind, Text) and (why := form.kind.why_not(answered.answer)):
            raise IllegalOutput(why)
        accept(answered.answer)
    except IllegalOutput as error:
        raise AttemptFailed("illegal", str(error).rstrip("."), reply.text) from None


@dataclass(frozen=True, slots=True)
class GameServices:
    """What a model player's seat in one game is given: who decides for it, and the game's journal."""

    decider: Decider
    journal: Journal
    texts: "SeatTexts" = field(default_factory=_no_texts)
