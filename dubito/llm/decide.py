"""A model player's decisions: ask, re-ask if that may help, or use the fallback.

Every decision has a recorded outcome: `model`, `model_after_reask` or `fallback:CAUSE`. A suffix `:last_object` or
`:reasoning` means that this value of `read` extracted the answer from a longer reply or from the reasoning. If a prompt
asks all questions of a turn at once, a single conversation answers several decisions, and its attempts are recorded
under the first.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from hashlib import sha256
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, Protocol

from dubito.errors import IllegalOutput, RunStopped, UsageError, one_line
from dubito.game import EXTRACTED_OUTCOMES, FALLBACK_OUTCOME, STATED, Bool, Player, Seating, Text
from dubito.llm.adviser import Adviser, AdviserBot
from dubito.llm.answers import NO_JSON, Form, ModelAnswer, ReadAnswers, extract_answer, find_helpful_part
from dubito.llm.context import PromptCounts
from dubito.llm.logprobs import read_yes_probability
from dubito.llm.protocols import build_request, find_protocol
from dubito.llm.protocols.wire import Exchange
from dubito.llm.questions import QuestionForm
from dubito.llm.request import (
    AccountFault,
    Asks,
    Attempt,
    AttemptFailed,
    Cause,
    Place,
    Reply,
    canonical_json,
    compute_digest,
    compute_draw,
)
from dubito.model_settings import ModelSettings, ReplyPart
from dubito.store.model_log import Decision

if TYPE_CHECKING:
    from dubito.llm.prompts import Prompt, RenderedPrompt, SeatTexts

AnyForm = Form | QuestionForm
_MAX_QUOTED: Final = 500  # maximum number of characters that a re-ask quotes
# What helps against unusable answers. What helps against a malformed one depends on its reply.
_ADVICE: Final[Mapping[Cause, str]] = {
    "rejected": "set `reasks: 0` if the server does not accept assistant messages",
    "truncated": "raise `max_output` (--max-output), or lower the reasoning effort in `parameters`",
    "refused": "change `prompt` or `model`",
    "illegal": "change `prompt` or `model`",
    "unreachable": "check `base_url`",
}
_READS: Final[Mapping[ReplyPart, str]] = {
    "last_object": "set `read: last_object` (--read last_object), which takes the JSON from a longer reply",
    "reasoning": "set `read: reasoning` (--read reasoning), which takes the JSON from the reasoning",
}
# llama.cpp and LiteLLM in front of it ignore the schema of the other APIs: docs/servers.md.
_OTHER_API: Final = (
    "set `api: chat` (`openai:` with --api chat), since many servers ignore the schema in their other APIs"
)


@dataclass(frozen=True, slots=True)
class StatedProbability:
    """A probability stated by a model, at a node that `states` one. It does not affect the game."""

    seat: int
    decision: int
    stated: float | None  # within [0, 1]; None if null or not a probability
    impossible: bool


@dataclass(slots=True)
class Journal:
    """The decisions of a game, used for the results digest and for statistics."""

    decisions: list[object] = field(default_factory=list)
    fallback_seats: set[int] = field(default_factory=set)  # seats in which a fallback answered at least once
    stated: list[StatedProbability] = field(default_factory=list)

    def digest(self) -> bytes:
        return sha256(canonical_json(self.decisions).encode()).digest()


_MAX_UNUSABLE: Final = 20  # the run stops after this many attempts of a player, all unusable


def join_advice(advice: Iterable[str]) -> str:
    """Return what the user can do about unusable answers."""
    return ", or ".join((*advice, "play anyway with `on_unusable: fallback` (--on-unusable fallback)"))


@dataclass(slots=True)
class UnusableAnswers:
    """Stops the run if a player's first attempts are all unusable.

    Recorded attempts do not count, since the model may have been fixed in the meantime.
    """

    name: str = ""
    # Whether `on_unusable: stop` is set, and the player has not had a usable answer yet.
    stops: bool = False
    causes: Counter[Cause] = field(default_factory=Counter)
    _advice: dict[str, None] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def check(self) -> None:
        """Raise AccountFault if the player must not be asked any more."""
        if self.stops and self.causes.total() >= _MAX_UNUSABLE:
            causes = ", ".join(f"{count} {cause}" for cause, count in self.causes.most_common())
            raise AccountFault(
                f"the first {_MAX_UNUSABLE} attempts by {one_line(self.name)} were all unusable ({causes})",
                hint=join_advice(self._advice),
            )

    def count_failure(self, error: AttemptFailed) -> None:
        """Count an unusable attempt. Raises AccountFault if there are too many."""
        with self._lock:
            if self.stops and self.causes.total() < _MAX_UNUSABLE:
                self.causes[error.cause] += 1
                self._advice |= dict.fromkeys(filter(None, (error.advice,)))
        self.check()

    def count_answer(self) -> None:
        with self._lock:
            if self.causes.total() < _MAX_UNUSABLE:
                self.stops = False


@dataclass(frozen=True, slots=True)
class StopIfUnusable:
    """A stage that stops asking after a player's first attempts were all unusable."""

    unusable: UnusableAnswers
    inner: Asks

    def ask(self, attempt: Attempt) -> Reply:
        self.unusable.check()
        return self.inner.ask(attempt)


class DecisionLog(Protocol):
    """Receives every decision. This is a run's log, or a replay that compares the decisions."""

    def decision(self, decision: Decision) -> None:
        """Record a decision."""


def _new_texts() -> "SeatTexts":
    from dubito.llm.prompts import SeatTexts

    return SeatTexts()


@dataclass(frozen=True, slots=True)
class Decider:
    """Makes the decisions of one model player, in all games of a run."""

    name: str
    settings: ModelSettings
    prompt: "Prompt"
    fallback: type[Player]
    asks: Asks
    log: DecisionLog
    seed: int | str
    rules: Any  # rules of the game, as its notebook expects them
    count_outcome: Callable[[str], None]
    unusable: UnusableAnswers = field(default_factory=UnusableAnswers)
    adviser: AdviserBot | None = None

    def render(
        self, facts: Mapping[str, Any], before: "SeatTexts | None" = None, turn: Sequence[Mapping[str, Any]] = ()
    ) -> "RenderedPrompt":
        """Fill in the prompt. Raises RunStopped if a template fails, although it passed its checks before the run."""
        try:
            return self.prompt.fill(facts, before, turn)
        except UsageError as error:
            raise RunStopped(f"{one_line(self.name)}'s prompt failed during the run: {error}") from None

    def place(self, seating: Seating, decision: int, node: str) -> Place:
        return Place(self.name, seating.game, seating.deal, seating.id, decision, 0, node)

    def draw(self, place: Place) -> str:
        """Return the sample number that the attempt at this place requests."""
        return compute_draw(self.seed, place, self.settings.sample)

    def begin(
        self,
        rendered: "RenderedPrompt",
        form: AnyForm,
        place: Place,
        accept: Callable[[Any], None] = lambda answer: None,
        chance: Callable[[], float] | None = None,
        counts: PromptCounts | None = None,
    ) -> "Conversation":
        """Begin a conversation whose attempts are recorded under this place.

        Args:
            rendered: The prompt, filled in.
            form: The form of the answer.
            place: The place of the first decision.
            accept: Raises IllegalOutput if the rules refuse an answer. Used only for single questions.
            chance: The seat's random numbers, with which `play: drawn` samples answers.
            counts: The sizes and token counts of the player's earlier prompts in the game.
        """
        return Conversation(
            rendered,
            form,
            self.settings,
            place,
            self.draw,
            StopIfUnusable(self.unusable, self.asks),
            accept,
            self.unusable.count_failure,
            chance if self.settings.play == "drawn" else None,
            counts or PromptCounts(),
        )

    def decide(
        self,
        conversation: "Conversation",
        place: Place,
        turn: int,
        journal: Journal,
        fallback: Callable[[], Any],
        key: str | None = None,
    ) -> Any:
        """Return and record the answer for the node at this place, from the model or the fallback.

        `key` is the question's key in the form if it differs from the node's name.
        """
        earlier, key = len(conversation.digests), key or place.node
        try:
            given = conversation.answer(key)
            outcome = conversation.outcome(key)
            self.unusable.count_answer()
        except AttemptFailed as failure:
            given, outcome = ModelAnswer(fallback()), f"{FALLBACK_OUTCOME}{failure.cause}"
            journal.fallback_seats.add(place.seat)
        digests = conversation.digests[earlier:]
        journal.decisions.append([place.seat, place.decision, place.node, given.answer, outcome, digests])
        if conversation.asks_probability(key) and not outcome.startswith(FALLBACK_OUTCOME):
            journal.stated.append(StatedProbability(place.seat, place.decision, given.stated, given.impossible))
        fields = (place.game, place.seat, place.decision, turn, place.node, given.answer, outcome, given.stated)
        self.log.decision(Decision(*fields))
        self.count_outcome(outcome)
        return given.answer


@dataclass(eq=False, slots=True)
class Conversation:
    """The questions of one turn and their re-asks, which repeat only unanswered questions.

    `Decider.begin` describes the arguments.
    """

    rendered: "RenderedPrompt"
    form: AnyForm
    settings: ModelSettings
    place: Place
    draw: Callable[[Place], str]
    asks: Asks
    accept: Callable[[Any], None] = lambda answer: None
    # Receives the error of each unusable attempt that was not recorded.
    count_failure: Callable[[AttemptFailed], None] = lambda error: None
    chance: Callable[[], float] | None = None
    counts: PromptCounts = field(default_factory=PromptCounts)
    # The digests of each attempt's request, and of its reply if there was one.
    digests: list[list[str | None]] = field(default_factory=list)
    _after_refusal: str = ""  # what the user text adds once the model has declined
    _reasks: list[tuple[str, str]] = field(default_factory=list)
    _answers: dict[str, tuple[ModelAnswer, int]] = field(default_factory=dict)  # with the number of the attempt
    _extracted: set[int] = field(default_factory=set)  # attempts whose answer was extracted from a longer reply
    _failed: dict[str, AttemptFailed] = field(default_factory=dict)  # keys that are not asked again

    def outcome(self, key: str) -> str:
        """Return how the model gave the answer with this key, as it is recorded."""
        number = self._answers[key][1]
        how = EXTRACTED_OUTCOMES[self.settings.read] if number in self._extracted else ""
        return f"{'model_after_reask' if number else 'model'}{how}"

    def asks_probability(self, key: str) -> bool:
        """Return whether this question has a stated probability, in the reply's text or derived from its tokens."""
        nodes = {node.name: node for node in self.form.answers.values()} if isinstance(self.form, Form) else {}
        return self.form.asks_probability(key) or bool(self.settings.belief and nodes[key].states)

    def answer(self, key: str) -> ModelAnswer:
        """Return the answer to a question of the form. Raises AttemptFailed if it is missing."""
        while key not in self._answers:
            if key in self._failed:
                raise self._failed[key]
            self._attempt()
        return self._answers[key][0]

    @property
    def _open_form(self) -> AnyForm:
        keys = [key for key in self.form.keys if key not in self._answers and key not in self._failed]
        return self.form if len(keys) == len(self.form.keys) else self.form.select(keys)

    def _attempt(self) -> None:
        number, form, rendered = len(self.digests), self._open_form, self.rendered
        place = replace(self.place, attempt=number) if number else self.place
        user = f"{rendered.user}{self._after_refusal}"
        exchange = Exchange(rendered.system, user, form.schema, tuple(self._reasks), rendered.history)
        request = build_request(self.settings, exchange, _cache_key(rendered.system))
        self.digests.append([request.digest, None])
        reply: Reply | None = None
        try:
            reply = self.asks.ask(Attempt(request, self.draw(place), place))
            self.digests[-1][1] = reply.digest
            self.counts.check(request, reply)
            # The player's `read` can take the answer from a part of the reply.
            answered = reply
            if (text := extract_answer(reply, self.settings.read)) is not None:
                self._extracted.add(number)
                answered = replace(reply, text=text, problem="")
            read = self._with_token_probabilities(form.read(answered), form, reply)
            given = dict(read.given)
            if self.chance is not None:
                # With `play: drawn`, sample each answer from its stated probabilities.
                for key, one in given.items():
                    given[key] = replace(one, answer=sample_answer(one.shares, self.chance())) if one.shares else one
            _refuse_illegal(given, form, self.accept, reply)
            self._answers |= {key: (one, number) for key, one in given.items()}
            unread = read.unread
        except AttemptFailed as error:
            error.advice = error.advice or self._advise(error, reply, form)
            if (reply or error).origin != "tape":
                self.count_failure(error)
            unread = dict.fromkeys(form.keys, error)
        self._prepare_reask(unread)

    def _advise(self, error: AttemptFailed, reply: Reply | None, form: AnyForm) -> str:
        """Return what the user can do about an unusable answer, if that is known."""
        if error.cause != "malformed" or reply is None or not isinstance(form, Form):
            return _ADVICE.get(error.cause, "")
        if (part := find_helpful_part(reply, form)) is not None:
            return _READS[part]
        ignores_schema = error.detail == NO_JSON and self.settings.api != "chat"
        is_provider = find_protocol(self.settings.api).uses_provider(self.settings)
        return _OTHER_API if ignores_schema and not is_provider else ""

    def _with_token_probabilities(self, read: ReadAnswers, form: AnyForm, reply: Reply) -> ReadAnswers:
        """Return the answers. With `belief: logprobs`, add the probability of yes from the reply's tokens."""
        if self.settings.belief is None or not isinstance(form, Form):
            return read
        given = dict(read.given)
        for field_name, node in form.answers.items():
            if node.name in given and node.answer == Bool():
                yes = read_yes_probability(reply.received.raw, field_name)
                shares = () if yes is None else ((True, yes), (False, 1 - yes))
                stated = yes if node.states == STATED else None
                given[node.name] = replace(given[node.name], stated=stated, shares=shares)
        return replace(read, given=given)

    def _prepare_reask(self, unread: Mapping[str, AttemptFailed]) -> None:
        """Set the text of the next attempt, which repeats the questions that can still be re-asked."""
        may_reask = len(self.digests) <= self.settings.reasks
        self._failed |= {key: one for key, one in unread.items() if not (may_reask and self.form.reask_text(one, str))}
        failure = next((error for key, error in unread.items() if key not in self._failed), None)
        if failure is None:
            return
        text = self._open_form.reask_text(failure, self.rendered.translate)
        if failure.cause == "refused":
            # A model that declined once keeps declining, so its reply is left out.
            self._after_refusal, self._reasks = f"\n\n{text}", []
        else:
            self._reasks.append(((failure.text or "").strip()[-_MAX_QUOTED:] or "(nothing)", text or ""))


def sample_answer(shares: Sequence[tuple[Any, float]], point: float) -> Any:
    """Sample an answer. `point` is uniform in [0, 1). Answers with probability zero are never sampled."""
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
    """Ask a form's questions and return the first answer."""
    conversation = Conversation(rendered, form, settings, place, draw, asks, accept)
    first, *_ = [conversation.answer(key) for key in form.keys]
    return first


@lru_cache(maxsize=64)
def _cache_key(system: str) -> str:
    return f"dubito-{compute_digest(system)[:16]}"


def _refuse_illegal(
    given: Mapping[str, ModelAnswer], form: AnyForm, accept: Callable[[Any], None], reply: Reply
) -> None:
    """Raise AttemptFailed with the reason if an answer is illegal or a message is not allowed."""
    kinds = {node.name: node.answer for node in form.answers.values()} if isinstance(form, Form) else {}
    try:
        for key, answer in given.items():
            if isinstance(kind := kinds.get(key), Text) and (reason := kind.why_not(answer.answer)):
                raise IllegalOutput(reason)
            accept(answer.answer)
    except IllegalOutput as error:
        raise AttemptFailed("illegal", str(error).rstrip("."), reply.text) from None


@dataclass(frozen=True, slots=True)
class GameServices:
    """Services that a model player's bot uses in one game."""

    decider: Decider
    journal: Journal
    texts: "SeatTexts" = field(default_factory=_new_texts)
    counts: PromptCounts = field(default_factory=PromptCounts)
    adviser: object = None  # what an adviser needs that is a program

    def seat_adviser(self, seating: Seating) -> Adviser | None:
        bot = self.decider.adviser
        return None if bot is None else Adviser(bot, self.decider.prompt.game, seating, self.adviser)
