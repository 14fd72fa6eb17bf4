"""A decision: ask, re-ask as the cause suggests, and say what came of it.

Nothing is played without a recorded outcome: `model`, `model_after_reask`, or `fallback:<cause>`. An answer that
`read: last_object` took out of a longer reply has `:last_object` at the end of its outcome. Where a prompt asks
all the questions of a turn at once, one conversation answers several decisions: its attempts are kept under the first.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from hashlib import sha256
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, Protocol

from dubito.errors import IllegalOutput, RunStopped, UsageError, one_line
from dubito.game import EXTRACTED_OUTCOME, FALLBACK_OUTCOME, Player, Seating, Text
from dubito.llm.answers import Form, ModelAnswer, ReadAnswers, find_last_object
from dubito.llm.context import CONTEXT_HINT, PromptCounts
from dubito.llm.protocols import Exchange, build_request
from dubito.llm.questions import QuestionForm
from dubito.llm.request import (
    AccountFault,
    Api,
    Ask,
    Asks,
    AttemptFailed,
    Cause,
    Place,
    Reply,
    canonical,
    digest_of,
    draw_of,
)
from dubito.llm.settings import ModelSettings
from dubito.store.model_log import Decision

if TYPE_CHECKING:
    from dubito.llm.prompts import Prompt, RenderedPrompt, SeatTexts

AnyForm = Form | QuestionForm
_SAID: Final = 500  # characters of an unreadable reply that a re-ask quotes
_TO_CHECK: Final[Mapping[Cause, str]] = {  # settings, by the cause why a player's answers are unusable
    "malformed": (
        "`read` (`last_object`, or --read last_object, takes the JSON out of a longer reply), `response_format` and "
        "`prompt`"
    ),
    "rejected": "whether the server takes an assistant's message in a conversation",
    "truncated": "`max_output` (--max-output)",
    "too_long": "`prompt`, `max_output` (--max-output) and the context window of a server of your own",
    "cut": f"the server: {CONTEXT_HINT}",
    "refused": "`prompt` and `model`",
    "illegal": "`prompt` and `model`",
    "unreachable": "`base_url`",
}


def settings_to_check(cause: Cause, api: Api) -> str:
    """Return which settings to check when a player's answers are unusable."""
    if cause == "malformed" and api == "decisions":
        return "`model`, and whether `base_url` speaks the Decisions API"
    if cause == "malformed" and api != "chat":
        return f"{_TO_CHECK[cause]}, and `api: chat` (`openai:` with --api chat) where a server ignores the schema"
    return _TO_CHECK[cause]


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
        return sha256(canonical(self.decisions).encode()).digest()


_FIRST: Final = 20  # attempts: if a player's first ones all come to nothing, the run stops


@dataclass(slots=True)
class UnusableAnswers:
    """Whether a player's attempts came to anything: a run whose first ones all came to nothing stops.

    Those on the tape tell nothing of the model of today: it may be mended since the run was stopped.
    """

    name: str = ""
    api: Api = "responses"
    stops: bool = False  # `on_unusable: stop`, and no answer of the player's was usable in this run before
    causes: Counter[Cause] = field(default_factory=Counter)
    _lock: Lock = field(default_factory=Lock)

    def check(self) -> None:
        """Raise AccountFault if nothing more is to be asked."""
        if self.stops and self.causes.total() >= _FIRST:
            came = ", ".join(f"{count} {cause}" for cause, count in self.causes.most_common())
            looks = [settings_to_check(cause, self.api) for cause, _ in self.causes.most_common()]
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
        with self._lock:
            if self.causes.total() < _FIRST:
                self.stops = False


@dataclass(frozen=True, slots=True)
class StopIfUnusable:
    """A stage that asks nothing more once a player's first attempts were all unusable."""

    unusable: UnusableAnswers
    inner: Asks

    def ask(self, attempt: Ask) -> Reply:
        self.unusable.check()
        return self.inner.ask(attempt)


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
    asks: Asks
    log: DecisionLog
    seed: int
    rules: Any  # of the game, as its notebook takes them
    counted: Callable[[str], None]  # told each outcome, for the progress line
    unusable: UnusableAnswers = field(default_factory=UnusableAnswers)

    def render(
        self, facts: Mapping[str, Any], before: "SeatTexts | None" = None, turn: Sequence[Mapping[str, Any]] = ()
    ) -> "RenderedPrompt":
        """The prompt for these facts; raises RunStopped where a template fails on a position it meets first here."""
        try:
            return self.prompt.fill(facts, before, turn)
        except UsageError as error:
            raise RunStopped(f"the prompt of {one_line(self.name)} failed under way: {error}") from None

    def place(self, seating: Seating, decision: int, node: str) -> Place:
        return Place(self.name, seating.game, seating.deal, seating.id, decision, 0, node)

    def begin(
        self,
        rendered: "RenderedPrompt",
        form: AnyForm,
        place: Place,
        accept: Callable[[Any], None] = lambda answer: None,
        chance: Callable[[], float] | None = None,
        counts: PromptCounts | None = None,
    ) -> "Conversation":
        """A conversation with the model, in which nothing was asked yet; its attempts are kept under this place.

        `accept` raises IllegalOutput for an answer of the model's, where there is one question alone. Under `play:
        drawn`, answers with a probability are drawn by `chance`, which is the seat's own.
        """

        def draw(here: Place) -> str:
            return draw_of(self.seed, here, self.settings.sample)

        drawn = chance if self.settings.play == "drawn" else None
        failed = self.unusable.failed
        return Conversation(
            rendered,
            form,
            self.settings,
            place,
            draw,
            StopIfUnusable(self.unusable, self.asks),
            accept,
            failed,
            drawn,
            counts,
        )

    def decide(
        self,
        asked: "Conversation",
        place: Place,
        turn: int,
        journal: Journal,
        otherwise: Callable[[], Any],
        key: str | None = None,
    ) -> Any:
        """Take the decision at the place's node: the model's, else the fallback's; record it in journal and log, and
        return the answer.

        `otherwise` gives the fallback's answer; `key` is the question's in the form, if it is not its node's name.
        """
        known, key = len(asked.digests), key or place.node
        try:
            answered, outcome = asked.answer(key), "model_after_reask" if asked.again(key) else "model"
            outcome += EXTRACTED_OUTCOME if asked.was_extracted(key) else ""
            self.unusable.answered()
        except AttemptFailed as failure:
            answered, outcome = ModelAnswer(otherwise()), f"{FALLBACK_OUTCOME}{failure.cause}"
            journal.touched.add(place.seat)
        answer, stated, impossible = answered.answer, answered.stated, answered.impossible
        digests = asked.digests[known:]
        journal.decisions.append([place.seat, place.decision, place.node, answer, outcome, digests])
        if asked.form.states(key) and not outcome.startswith(FALLBACK_OUTCOME):
            journal.stated.append(StatedProbability(place.seat, place.decision, stated, impossible))
        taken = (place.game, place.seat, place.decision, turn, place.node, answer, outcome, stated)
        self.log.decision(Decision(*taken))
        self.counted(outcome)
        return answer


class Conversation:
    """A model asked the questions of one request, and again as the cause suggests: only what it has not answered."""

    def __init__(
        self,
        rendered: "RenderedPrompt",
        form: AnyForm,
        settings: ModelSettings,
        place: Place,
        draw: Callable[[Place], str],
        asks: Asks,
        accept: Callable[[Any], None] = lambda answer: None,
        failed: Callable[[Cause], None] = lambda cause: None,
        chance: Callable[[], float] | None = None,
        counts: PromptCounts | None = None,
    ) -> None:
        """`failed` is told the cause of each attempt that came to nothing, and was not on the tape; by `chance` answers
        with a probability are drawn; `counts` are those of the player's earlier prompts in the game."""
        self.rendered, self.form = rendered, form
        self._settings, self._place, self._draw, self._asks = settings, place, draw, asks
        self._accept, self._failed, self._chance = accept, failed, chance
        self._counts = counts or PromptCounts()
        self._user, self._again = self.rendered.user, list[tuple[str, str]]()
        self._given = dict[str, tuple[ModelAnswer, int]]()  # by key, with the attempt that gave it
        self._extracted = set[int]()  # attempts whose answer was taken out of a longer reply
        self._failed_for_good = dict[str, AttemptFailed]()  # what is not asked again, and why
        self.digests: list[list[str | None]] = []  # of each attempt: the request's, and the reply's if there was one

    def again(self, key: str) -> bool:
        return self._given[key][1] > 0

    def was_extracted(self, key: str) -> bool:
        return self._given[key][1] in self._extracted

    def answer(self, key: str) -> ModelAnswer:
        """The answer to this question of the form; raises AttemptFailed if none came of it."""
        while key not in self._given:
            if key in self._failed_for_good:
                raise self._failed_for_good[key]
            self._attempt()
        return self._given[key][0]

    @property
    def _open(self) -> AnyForm:
        left = [key for key in self.form.keys if key not in self._given and key not in self._failed_for_good]
        return self.form if len(left) == len(self.form.keys) else self.form.of_keys(left)

    def _attempt(self) -> None:
        number, form, rendered = len(self.digests), self._open, self.rendered
        here = replace(self._place, attempt=number) if number else self._place
        exchange = Exchange(rendered.system, self._user, form.schema, tuple(self._again), rendered.history)
        request = build_request(self._settings, exchange, _cache_key(rendered.system))
        self.digests.append([request.digest, None])
        reply: Reply | None = None
        try:
            reply = self._asks.ask(Ask(request, self._draw(here), here))
            self.digests[-1][1] = reply.digest
            self._counts.check(request.body, reply)
            read = self._with_drawn_answers(form.read(self._extract_object(reply, number)))
            _refuse_illegal(read.given, form, self._accept, reply)
            self._given |= {key: (answered, number) for key, answered in read.given.items()}
            unread = read.unread
        except AttemptFailed as error:
            if (reply or error).origin != "tape":
                self._failed(error.cause)
            unread = dict.fromkeys(form.keys, error)
        self._ask_again(unread)

    def _extract_object(self, reply: Reply, attempt: int) -> Reply:
        """Return the reply with the last object in it as its text, if the player's `read` allows that."""
        text = (reply.text or "").strip()
        found = find_last_object(text) if self._settings.read == "last_object" else None
        if found in (None, text):
            return reply
        self._extracted.add(attempt)
        return replace(reply, text=found)

    def _with_drawn_answers(self, read: ReadAnswers) -> ReadAnswers:
        """The same, each answer with a probability drawn by it, where that is wanted."""
        if self._chance is None:
            return read
        given = {
            key: replace(one, answer=drawn_from(one.shares, self._chance())) if one.shares else one
            for key, one in read.given.items()
        }
        return replace(read, given=given)

    def _ask_again(self, unread: Mapping[str, AttemptFailed]) -> None:
        """Find the words of the next attempt, for what it may help to ask again, and not too often."""
        worth = len(self.digests) <= self._settings.reasks
        self._failed_for_good |= {
            key: error for key, error in unread.items() if not (worth and self.form.re_ask(error))
        }
        failure = next((error for key, error in unread.items() if key not in self._failed_for_good), None)
        if failure is None:
            return
        asked = self._open.re_ask(failure)
        if failure.cause == "refused":  # a model that declined once keeps declining: start anew
            self._user, self._again = f"{self.rendered.user}\n\n{asked}", []
        else:
            self._again.append(((failure.text or "").strip()[-_SAID:] or "(nothing)", asked or ""))


def drawn_from(shares: Sequence[tuple[Any, float]], point: float) -> Any:
    """The answer in whose part of the whole a point from 0 to 1 lies; one of no probability has no part."""
    for answer, share in shares:
        point -= share
        if point < 0:
            return answer
    return next(answer for answer, share in reversed(shares) if share)


def put_question(
    rendered: "RenderedPrompt",
    form: AnyForm,
    settings: ModelSettings,
    place: Place,
    draw: Callable[[Place], str],
    asks: Asks,
    accept: Callable[[Any], None] = lambda answer: None,
) -> ModelAnswer:
    asked = Conversation(rendered, form, settings, place, draw, asks, accept)
    first, *_ = [asked.answer(key) for key in form.keys]
    return first


@lru_cache(maxsize=64)
def _cache_key(system: str) -> str:
    return f"dubito-{digest_of(system)[:16]}"


def _refuse_illegal(
    given: Mapping[str, ModelAnswer], form: AnyForm, accept: Callable[[Any], None], reply: Reply
) -> None:
    """Raise AttemptFailed with the sentence where the rules refuse an answer, or it cannot be said."""
    kinds = {node.name: node.answer for node in form.answers.values()} if isinstance(form, Form) else {}
    try:
        for key, answered in given.items():
            if isinstance(kind := kinds.get(key), Text) and (why := kind.why_not(answered.answer)):
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
    counts: PromptCounts = field(default_factory=PromptCounts)
