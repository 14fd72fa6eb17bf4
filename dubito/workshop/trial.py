"""A trial: prompts put to a model at recorded positions, through the same pipeline as a run, without playing games.

A position is asked as in its game, with the same draw: a reply that the cache has of that game serves here too. It is
re-asked as in a game, and no fallback answers: an answer that never came is counted by its cause.

What a trial says of a prompt: rates with 95 % intervals, clustered by deal, and what a decision takes.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256
from pathlib import Path
from platform import python_version
from statistics import mean
from threading import Event, Lock
from typing import Any, Final

from dubito import __version__
from dubito.experiment.models import open_pipeline
from dubito.experiment.progress import ModelProgress
from dubito.experiment.resolve import CallOptions, price_of_model
from dubito.game import FALLBACK_OUTCOME, Bool, Player
from dubito.llm.cache import ReplyCache
from dubito.llm.decide import Decider, Journal, StatedProbability
from dubito.llm.preflight import Preflight
from dubito.llm.prices import Price
from dubito.llm.prompts import Prompt, RenderedPrompt
from dubito.llm.request import CAUSES, Asks, Attempt, Place, Reply, Usage, canonical
from dubito.llm.settings import ModelSettings
from dubito.llm.threads import map_in_threads
from dubito.stats.players import Statement, add_statements, cluster_sums
from dubito.stats.rates import Rate, clustered_rate
from dubito.stats.tally import Tally
from dubito.store import folder as run_folder
from dubito.store.lock import lock_folder
from dubito.store.model_log import Decision, ModelLog, Spend
from dubito.workshop.recordings import Provenance, RecordedPosition, digest_of_folder, workshop_part


@dataclass(frozen=True, slots=True)
class TrialEntry:
    """A prompt with the model it is put to, under the name it is shown by."""

    name: str
    prompt: Prompt
    settings: ModelSettings


@dataclass(frozen=True, slots=True)
class TrialOptions:
    """How a trial is done: nothing of it can change an answer."""

    calls: CallOptions
    model_progress: ModelProgress
    progress: Callable[[int], None]  # told how many questions are done


@dataclass(frozen=True, slots=True)
class TrialAnswer:
    """What came of one question."""

    recorded: RecordedPosition
    answer: Any  # None: none ever came
    cause: str | None  # then why
    stated: StatedProbability | None  # where the node has something to state, and the prompt asks for it
    usages: tuple[Usage | None, ...]  # of the replies, as billed when they were first received


@dataclass(frozen=True, slots=True)
class Trial:
    """A trial that is done."""

    folder: Path
    taken: list[list[TrialAnswer]]  # by entry, then in the order of the positions
    spent: Spend  # by this trial now; what is answered from the cache costs nothing


@dataclass(slots=True)
class _Usages:
    """A stage that keeps the token counts of the replies."""

    inner: Asks
    found: list[Usage | None] = field(default_factory=list)

    def ask(self, attempt: Attempt) -> Reply:
        reply = self.inner.ask(attempt)
        self.found.append(reply.usage)
        return reply


@dataclass(slots=True)
class _Question:
    """One entry at one position: asks as a game does, and is the log that its decision is told to."""

    entry: TrialEntry
    recorded: RecordedPosition
    rendered: RenderedPrompt
    number: int  # its own; stands for the game on the tape
    asks: Asks
    log: ModelLog
    outcome: str = ""

    def ask(self) -> TrialAnswer:
        """Ask until there is an answer, as often as a game does."""
        entry, position, source = self.entry, self.recorded.position, find_provenance(self.recorded)
        usages = _Usages(self.asks)
        player = Decider(
            entry.name,
            entry.settings,
            entry.prompt,
            Player,
            usages,
            self,
            source.seed,
            None,
            count_outcome=lambda outcome: None,
        )
        place = Place(entry.name, self.number, source.deal, source.seat, source.decision, 0, position.node)
        journal = Journal()
        own_turn = workshop_part(self.recorded.game, "own_turn", lambda position: source.decision + 1)
        check = partial(workshop_part(self.recorded.game, "check", lambda position, answer: None), position)
        asked = player.begin(self.rendered, entry.prompt.form_at(position), place, check)
        answer = player.decide(asked, place, own_turn(position), journal, lambda: False)
        failed = self.outcome.startswith(FALLBACK_OUTCOME)
        cause = self.outcome.removeprefix(FALLBACK_OUTCOME) if failed else ""
        stated = next(iter(journal.stated), None)
        return TrialAnswer(self.recorded, None if cause else answer, cause or None, stated, tuple(usages.found))

    def decision(self, decision: Decision) -> None:
        self.outcome = decision.outcome
        if not decision.outcome.startswith(FALLBACK_OUTCOME):
            self.log.decision(decision)


def find_provenance(one: RecordedPosition) -> Provenance:
    if one.source is not None:
        return one.source
    return Provenance(None, 0, int(one.digest[:8], 16), 0, one.position.seat, 0)


def trial_identity(entries: Sequence[TrialEntry], found: Mapping[str, RecordedPosition]) -> dict[str, Any]:
    """All that can change an answer."""
    asked = [
        {
            "name": entry.name,
            "prompt": entry.prompt.digest,
            "settings": entry.settings.model_dump(exclude={"prompt", "fallback"}),
        }
        for entry in entries
    ]
    return {"prompts": asked, "positions": digest_of_folder(found)}


def trial_folder(entries: Sequence[TrialEntry], found: Mapping[str, RecordedPosition]) -> Path:
    digest = sha256(canonical(trial_identity(entries, found)).encode()).hexdigest()[:8]
    return Path("runs") / f"prompts-{entries[0].prompt.name}-{digest}"


def run_trial(
    entries: Sequence[TrialEntry], found: Mapping[str, RecordedPosition], folder: Path, means: TrialOptions
) -> Trial:
    """Put every entry's prompt to its model at every position, keeping all in the folder's `run.db`.

    Goes on where the same trial was stopped. Raises UsageError before anything is asked, RunStopped after it.
    """
    rendered = [[entry.prompt.render(one.position) for one in found.values()] for entry in entries]
    versions = {"dubito": __version__, "python": python_version()}
    manifest = {"games": 0, "identity": trial_identity(entries, found), "versions": versions}
    run_folder.count_kept_games(folder, manifest)
    with (
        closing(ReplyCache(means.calls.cache, writes=not means.calls.offline)) as cache,
        lock_folder(folder),
        ExitStack() as stack,
    ):
        run_folder.count_kept_games(folder, manifest)
        log = ModelLog(stack.enter_context(run_folder.open_run(folder, manifest)))
        before, stop = log.spent(), Event()
        pipeline = stack.enter_context(
            open_pipeline(
                log, cache, means.calls, means.model_progress, stop.is_set, suspend=False, game=entries[0].prompt.game
            )
        )
        questions = []
        for number, entry in enumerate(entries):
            log.save_prompt(entry.prompt.digest, entry.prompt.sources)
            asks = pipeline.build_asks(entry.name, entry.settings, price_of_model(entry.settings, means.calls))
            if means.calls.preflight and not means.calls.offline:
                Preflight(entry.name, number, entry.settings, asks).run(entry.prompt.samples)
            for place, (one, texts) in enumerate(zip(found.values(), rendered[number], strict=True)):
                questions.append(_Question(entry, one, texts, place * len(entries) + number, asks, log))
        taken = _Asker(means.progress, stop).ask_all(questions, means.calls.in_flight)
        each = len(found)
        return Trial(folder, [taken[n * each : (n + 1) * each] for n in range(len(entries))], log.spent() - before)


@dataclass(slots=True)
class _Asker:
    """Asks questions in any thread, reports how many are done, and stops all after a fault."""

    progress: Callable[[int], None]
    stop: Event
    _done: int = 0
    _lock: Lock = field(default_factory=Lock)

    def ask_all(self, questions: Sequence[_Question], in_flight: int) -> list[TrialAnswer]:
        try:
            return map_in_threads(self._ask, questions, in_flight, "trial")
        finally:
            self.stop.set()

    def _ask(self, question: _Question) -> TrialAnswer:
        try:
            answer = question.ask()
        except BaseException:
            self.stop.set()
            raise
        with self._lock:
            self._done += 1
            self.progress(self._done)
        return answer


ALL: Final = "all"  # nodes together


@dataclass(frozen=True, slots=True)
class ScoreRow:
    """A prompt at the positions of one node, or of all."""

    node: str
    positions: int
    yes: Rate  # of the answers that came, where they are yes or no
    invalid: Rate
    causes: dict[str, int]  # of those that did not come
    right: Rate  # where the truth decides it, as the game says, and is known
    tokens: tuple[float, float, float] | None  # a decision: in, of them cached, out; None: no reply said
    picodollars: float | None  # a thousand decisions; None: no price is known


@dataclass(frozen=True, slots=True)
class Agreement:
    """Two prompts at the positions of one node, or of all, at which both answered."""

    node: str
    positions: int
    same: Rate
    to_yes: int  # no by the second prompt, yes by the first
    to_no: int


def score_rows(taken: Sequence[TrialAnswer], price: Price | None) -> list[ScoreRow]:
    return [_score_row(node, those, price) for node in _node_names(taken) if (those := _answers_at(node, taken))]


def compare_answers(taken: Sequence[TrialAnswer], other: Sequence[TrialAnswer]) -> list[Agreement]:
    """Node by node, then all; the same positions in the same order."""
    found = []
    for node in _node_names(taken):
        both = zip(_answers_at(node, taken), _answers_at(node, other), strict=True)
        pairs = [(one, two) for one, two in both if None not in (one.answer, two.answer)]
        if pairs:
            same = _clustered_share((one.recorded.deal, one.answer == two.answer) for one, two in pairs)
            flips = Counter(one.answer for one, two in pairs if _is_bool(one) and one.answer is not two.answer)
            found.append(Agreement(node, len(pairs), same, flips[True], flips[False]))
    return found


def tally_statements(taken: Sequence[Sequence[TrialAnswer]]) -> Tally:
    """What the prompts' models stated, beside the truth where it is known; prompts by their number."""
    deals: defaultdict[object, list[tuple[int, Statement]]] = defaultdict(list)
    for number, each in enumerate(taken):
        for one in each:
            truth = right_answer(one)
            if one.stated is not None and truth is not None:
                said = one.stated
                statement = Statement(said.seat, said.stated, said.impossible, truth)
                deals[one.recorded.deal].append((number, statement))
    tally = Tally()
    for statements in deals.values():
        add_statements(tally, statements)
    return tally


def _node_names(taken: Sequence[TrialAnswer]) -> list[str]:
    return [*(node.name for node in taken[0].recorded.game.nodes), ALL] if taken else []


def _is_bool(one: TrialAnswer) -> bool:
    return one.recorded.game.node(one.recorded.position.node).answer == Bool()


def _answers_at(node: str, taken: Sequence[TrialAnswer]) -> list[TrialAnswer]:
    return [one for one in taken if node in (ALL, one.recorded.position.node)]


def _score_row(node: str, taken: Sequence[TrialAnswer], price: Price | None) -> ScoreRow:
    answered = [one for one in taken if one.answer is not None]
    causes = Counter(one.cause for one in taken)
    judged = [(one, truth) for one in answered if (truth := right_answer(one)) is not None]
    told = [[usage for usage in one.usages if usage] for one in taken if one.usages and None not in one.usages]
    return ScoreRow(
        node,
        len(taken),
        _clustered_share((one.recorded.deal, one.answer) for one in answered if _is_bool(one)),
        _clustered_share((one.recorded.deal, one.answer is None) for one in taken),
        {cause: causes[cause] for cause in CAUSES if causes[cause]},
        _clustered_share((one.recorded.deal, one.answer == truth) for one, truth in judged),
        (
            mean(sum(usage.input for usage in usages) for usages in told),
            mean(sum(usage.cached for usage in usages) for usages in told),
            mean(sum(usage.output for usage in usages) for usages in told),
        )
        if told
        else None,
        1000 * mean(sum(map(price.cost, usages)) for usages in told) if told and price else None,
    )


def right_answer(one: TrialAnswer) -> Any:
    right, hidden = workshop_part(one.recorded.game, "right", None), one.recorded.hidden
    return None if right is None or hidden is None else right(one.recorded.position, hidden)


def _clustered_share(counted: Iterable[tuple[object, bool]]) -> Rate:
    """The share that is true, each with its deal."""
    deals: defaultdict[object, list[bool]] = defaultdict(list)
    for deal, true in counted:
        deals[deal].append(true)
    parts = [cluster_sums(len(group), sum(group)) for group in deals.values()]
    return clustered_rate(*map(sum, zip(*parts, strict=True))) if parts else Rate(None)
