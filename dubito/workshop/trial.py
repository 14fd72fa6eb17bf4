"""Trials ask models at recorded positions, through the same pipeline as a run but without playing games.

A question has the same random draw as in its game, so that cached replies from that game are used. Re-asks work as in a
game. There are no fallbacks, and missing answers are counted by cause. A prompt's scores are rates with 95 % confidence
intervals, clustered by deal, and the cost per decision.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256
from pathlib import Path
from statistics import mean
from threading import Event, Lock
from typing import Final

from dubito.experiment.call_options import CallOptions
from dubito.experiment.model_players import price_of_model
from dubito.experiment.models import open_questions
from dubito.experiment.progress import ModelProgress
from dubito.game import FALLBACK_OUTCOME, Bool, Player
from dubito.llm.adviser import refuse_adviser
from dubito.llm.decide import Decider, Journal, StatedProbability
from dubito.llm.preflight import Preflight
from dubito.llm.prices import Price
from dubito.llm.prompts import Prompt, RenderedPrompt
from dubito.llm.request import CAUSES, Asks, Attempt, Place, Reply, Usage, canonical_json
from dubito.llm.threads import map_in_threads
from dubito.model_settings import ModelSettings
from dubito.stats.players import Statement, add_statements, cluster_sums
from dubito.stats.rates import Rate, clustered_rate
from dubito.stats.tally import Tally
from dubito.store.model_log import Decision, ModelLog
from dubito.store.spend import Spend
from dubito.workshop.recordings import Provenance, RecordedPosition, digest_of_folder


@dataclass(frozen=True, slots=True)
class TrialEntry:
    """A prompt and its model, with a name for the pair."""

    name: str
    prompt: Prompt
    settings: ModelSettings

    def __post_init__(self) -> None:
        """Raise UsageError if the model has an adviser, which would have to watch the games of the positions."""
        refuse_adviser(self.settings, "a model that is asked about single positions")


@dataclass(frozen=True, slots=True)
class TrialOptions:
    """How to run a trial. Options do not affect answers."""

    calls: CallOptions
    model_progress: ModelProgress
    progress: Callable[[int], None]  # called with the number of finished questions


@dataclass(frozen=True, slots=True)
class TrialAnswer:
    """The result of one question."""

    recorded: RecordedPosition
    answer: object  # None if the answer is missing
    cause: str | None  # why the answer is missing
    stated: StatedProbability | None  # if the prompt asks for a probability at this node
    usages: tuple[Usage | None, ...]  # tokens of the replies, as billed when they were first received


@dataclass(frozen=True, slots=True)
class Trial:
    folder: Path
    answers: list[list[TrialAnswer]]  # by entry, in the order of the positions
    spent: Spend  # amount spent now, excluding cached replies


@dataclass(slots=True)
class _Usages:
    """A stage that records the token counts of the replies."""

    inner: Asks
    usages: list[Usage | None] = field(default_factory=list)

    def ask(self, attempt: Attempt) -> Reply:
        reply = self.inner.ask(attempt)
        self.usages.append(reply.usage)
        return reply


@dataclass(slots=True)
class _Question:
    """An entry at a position. It asks like a game, and receives the decision like a log."""

    entry: TrialEntry
    recorded: RecordedPosition
    rendered: RenderedPrompt
    number: int  # used like a game number in the recording
    asks: Asks
    log: ModelLog
    outcome: str = ""

    def ask(self) -> TrialAnswer:
        """Ask and, if necessary, re-ask as in a game."""
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
        workshop = self.recorded.game.workshop
        own_turn = workshop.own_turn(position)
        conversation = player.begin(
            self.rendered, entry.prompt.form_at(position), place, partial(workshop.check, position)
        )
        answer = player.decide(
            conversation, place, source.decision + 1 if own_turn is None else own_turn, journal, lambda: False
        )
        failed = self.outcome.startswith(FALLBACK_OUTCOME)
        cause = self.outcome.removeprefix(FALLBACK_OUTCOME) if failed else ""
        stated = next(iter(journal.stated), None)
        return TrialAnswer(self.recorded, None if cause else answer, cause or None, stated, tuple(usages.usages))

    def decision(self, decision: Decision) -> None:
        self.outcome = decision.outcome
        if not decision.outcome.startswith(FALLBACK_OUTCOME):
            self.log.decision(decision)


def find_provenance(one: RecordedPosition) -> Provenance:
    if one.source is not None:
        return one.source
    return Provenance(None, 0, int(one.digest[:8], 16), 0, one.position.seat, 0)


def trial_identity(entries: Sequence[TrialEntry], positions: Mapping[str, RecordedPosition]) -> dict[str, object]:
    """Return everything that can affect an answer."""
    prompts = [
        {
            "name": entry.name,
            "prompt": entry.prompt.digest,
            "settings": entry.settings.model_dump(exclude={"prompt", "fallback"}),
        }
        for entry in entries
    ]
    return {"prompts": prompts, "positions": digest_of_folder(positions)}


def trial_folder(entries: Sequence[TrialEntry], positions: Mapping[str, RecordedPosition]) -> Path:
    digest = sha256(canonical_json(trial_identity(entries, positions)).encode()).hexdigest()[:8]
    return Path("runs") / f"prompts-{entries[0].prompt.name}-{digest}"


def run_trial(
    entries: Sequence[TrialEntry], positions: Mapping[str, RecordedPosition], folder: Path, options: TrialOptions
) -> Trial:
    """Ask every entry's model at every position, and store all calls in the folder's `run.db`.

    Resumes a stopped trial. Raises UsageError before the first call and RunStopped after it.
    """
    rendered = [[entry.prompt.render(one.position) for one in positions.values()] for entry in entries]
    stop, game = Event(), entries[0].prompt.game
    opened = open_questions(
        folder, trial_identity(entries, positions), options.calls, options.model_progress, game, stop.is_set
    )
    with opened as (log, pipeline):
        before = log.spent()
        questions = []
        for number, entry in enumerate(entries):
            log.save_prompt(entry.prompt.digest, entry.prompt.sources)
            asks = pipeline.build_asks(entry.name, entry.settings, price_of_model(entry.settings, options.calls))
            if options.calls.preflight and not options.calls.offline:
                Preflight(entry.name, number, entry.settings, asks).run(entry.prompt.samples)
            for place, (one, texts) in enumerate(zip(positions.values(), rendered[number], strict=True)):
                questions.append(_Question(entry, one, texts, place * len(entries) + number, asks, log))
        asker = _Asker(options.progress, stop)
        try:
            answers = map_in_threads(asker.ask, questions, options.calls.in_flight, "trial")
        finally:
            stop.set()
        each = len(positions)
        return Trial(folder, [answers[n * each : (n + 1) * each] for n in range(len(entries))], log.spent() - before)


@dataclass(slots=True)
class _Asker:
    """Asks questions, reports progress, and stops after an error. Shared by threads."""

    progress: Callable[[int], None]
    stop: Event
    _done: int = 0
    _lock: Lock = field(default_factory=Lock)

    def ask(self, question: _Question) -> TrialAnswer:
        try:
            answer = question.ask()
        except BaseException:
            self.stop.set()
            raise
        with self._lock:
            self._done += 1
            self.progress(self._done)
        return answer


ALL: Final = "all"  # name for all nodes together


@dataclass(frozen=True, slots=True)
class ScoreRow:
    """A prompt's scores at one node or over all nodes."""

    node: str
    positions: int
    yes: Rate  # share of yes among answers to yes-or-no questions
    invalid: Rate
    causes: dict[str, int]  # numbers of missing answers by cause
    right: Rate  # if the game defines right answers and the truth is known
    tokens: tuple[float, float, float] | None  # per decision: input, cached input, output; None if unknown
    picodollars: float | None  # per thousand decisions; None if the price is unknown


@dataclass(frozen=True, slots=True)
class Agreement:
    """How often two prompts agree at one node or over all nodes, among positions that both answered."""

    node: str
    positions: int
    same: Rate
    to_yes: int  # no with the second prompt, yes with the first
    to_no: int


def score_rows(answers: Sequence[TrialAnswer], price: Price | None) -> list[ScoreRow]:
    rows = []
    for node in _node_names(answers):
        if not (group := _select_answers(node, answers)):
            continue
        answered = [one for one in group if one.answer is not None]
        causes = Counter(one.cause for one in group)
        with_truth = [(one, truth) for one in answered if (truth := one.recorded.right) is not None]
        usages_known = [[each for each in one.usages if each] for one in group if one.usages and None not in one.usages]
        tokens = None
        if usages_known:
            tokens = (
                mean(sum(each.input for each in usages) for usages in usages_known),
                mean(sum(each.cached for each in usages) for usages in usages_known),
                mean(sum(each.output for each in usages) for usages in usages_known),
            )
        row = ScoreRow(
            node,
            len(group),
            _clustered_share((one.recorded.deal, one.answer is True) for one in answered if _is_bool(one)),
            _clustered_share((one.recorded.deal, one.answer is None) for one in group),
            {cause: causes[cause] for cause in CAUSES if causes[cause]},
            _clustered_share((one.recorded.deal, one.answer == truth) for one, truth in with_truth),
            tokens,
            1000 * mean(sum(map(price.cost, each)) for each in usages_known) if usages_known and price else None,
        )
        rows.append(row)
    return rows


def compare_answers(answers: Sequence[TrialAnswer], other: Sequence[TrialAnswer]) -> list[Agreement]:
    """Compare the answers of two prompts at the same positions, node by node and together."""
    agreements = []
    for node in _node_names(answers):
        both = zip(_select_answers(node, answers), _select_answers(node, other), strict=True)
        pairs = [(one, two) for one, two in both if None not in (one.answer, two.answer)]
        if pairs:
            same = _clustered_share((one.recorded.deal, one.answer == two.answer) for one, two in pairs)
            flips = Counter(one.answer for one, two in pairs if _is_bool(one) and one.answer is not two.answer)
            agreements.append(Agreement(node, len(pairs), same, flips[True], flips[False]))
    return agreements


def tally_statements(answers: Sequence[Sequence[TrialAnswer]]) -> Tally:
    """Tally stated probabilities against the known truth. Keys are the prompts' indexes."""
    deals: defaultdict[object, list[tuple[int, Statement]]] = defaultdict(list)
    for number, each in enumerate(answers):
        for one in each:
            truth = one.recorded.right
            if one.stated is not None and isinstance(truth, bool):
                statement = Statement(one.stated.seat, one.stated.stated, one.stated.impossible, truth)
                deals[one.recorded.deal].append((number, statement))
    tally = Tally()
    for statements in deals.values():
        add_statements(tally, statements)
    return tally


def _node_names(answers: Sequence[TrialAnswer]) -> list[str]:
    return [*(node.name for node in answers[0].recorded.game.nodes), ALL] if answers else []


def _is_bool(one: TrialAnswer) -> bool:
    return one.recorded.game.node(one.recorded.position.node).answer == Bool()


def _select_answers(node: str, answers: Sequence[TrialAnswer]) -> list[TrialAnswer]:
    return [one for one in answers if node in (ALL, one.recorded.position.node)]


def _clustered_share(counted: Iterable[tuple[object, bool]]) -> Rate:
    """Return the share of true values, clustered by deal."""
    deals: defaultdict[object, list[bool]] = defaultdict(list)
    for deal, true in counted:
        deals[deal].append(true)
    parts = [cluster_sums(len(group), sum(group)) for group in deals.values()]
    return clustered_rate(*map(sum, zip(*parts, strict=True))) if parts else Rate(None)
