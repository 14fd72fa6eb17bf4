"""The rounds of a forge: ask for a file, check it, play it, tell the model, and choose the best on other deals.

All calls are in the `run.db` of its folder, as in a run. A round's text is kept, so that a resumed forge asks the same.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from dubito.errors import RunStopped
from dubito.experiment.model_players import price_of_model
from dubito.experiment.models import open_questions
from dubito.experiment.progress import ModelProgress
from dubito.experiment.run import RunResult
from dubito.files import read_text, write_whole
from dubito.llm.pipeline import Pipeline
from dubito.llm.protocols import build_request
from dubito.llm.protocols.wire import Exchange
from dubito.llm.request import Attempt, AttemptFailed, Place, canonical_json, compute_draw
from dubito.model_settings import ModelSettings
from dubito.plugins.forge.play import REFERENCE, Bench, find_mistakes
from dubito.plugins.forge.reply import MAX_BYTES, WrittenBot, read_bot
from dubito.plugins.forge.texts import GUIDE, ask_for_round, describe_game, tell_round
from dubito.stats.ranking import contender_pairs, contender_ranking, ranking
from dubito.stats.rates import Rate, independent_difference
from dubito.store.spend import Spend

TRAINING_SEED: Final = 0
_MISTAKES: Final = 6
_SEED_DIGITS: Final = 12
_MODEL: Final = "writer"  # the model's name in the recording
_CUT: Final = "your reply was cut off at the limit of output tokens: write a shorter file"


@dataclass(frozen=True, slots=True)
class Order:
    """What a forge is asked to do."""

    model: str  # as the user named it
    settings: ModelSettings
    rounds: int
    training: int  # deals
    held_out: int

    def identity(self, game: str) -> dict[str, object]:
        """Return everything that can change a request. More rounds continue a forge."""
        return {
            "forge": game,
            "model": self.settings.model_dump(exclude={"prompt", "fallback"}),
            "training": self.training,
            "guide": sha256(GUIDE.encode()).hexdigest()[:12],
        }

    def folder(self, game: str) -> Path:
        digest = sha256(canonical_json(self.identity(game)).encode()).hexdigest()[:8]
        return Path("runs") / f"forge-{digest}"


@dataclass(slots=True)
class Round:
    """A round: the file, what was wrong with it, and its results. `training` is None if it was not played."""

    number: int
    written: WrittenBot
    problems: list[str]
    settings: Mapping[str, Any] = field(default_factory=dict)
    training: RunResult | None = None

    @property
    def name(self) -> str:
        return f"round-{self.number}"


@dataclass(frozen=True, slots=True)
class Score:
    """A round's results: the first measure, and its differences from the reference on the same deals."""

    round: Round
    training: Rate
    held_out: Rate
    training_gain: Rate
    held_out_gain: Rate

    @property
    def excess(self) -> Rate:
        """How much more it gains on the training deals than on the held-out deals."""
        return independent_difference(self.training_gain, self.held_out_gain)

    @property
    def is_overfitted(self) -> bool:
        return self.excess.value is not None and self.excess.low > 0


@dataclass(frozen=True, slots=True)
class Forged:
    """The result of a forge. `scores` are the rounds that were played, best on the held-out deals first."""

    folder: Path
    rounds: Sequence[Round]
    scores: Sequence[Score]
    spent: Spend
    lead: Rate | None  # of the best round over the second, on the held-out deals

    @property
    def chosen(self) -> Round | None:
        return self.scores[0].round if self.scores else None

    @property
    def scores_by_round(self) -> dict[int, Score]:
        return {score.round.number: score for score in self.scores}


def forge(order: Order, bench: Bench, folder: Path, progress: ModelProgress, say: Callable[[str], None]) -> Forged:
    """Run the rounds and choose the best. Raises RunStopped, after which the same call resumes."""
    opened = open_questions(folder, order.identity(bench.game.name), bench.calls, progress, bench.game)
    with opened as (log, pipeline):
        work = _Work(order, bench, folder, pipeline)
        for number in range(1, order.rounds + 1):
            work.do_round(number)
            say(work.describe_last())
        spent = log.spent()
    return work.choose(spent)


@dataclass(slots=True)
class _Work:
    order: Order
    bench: Bench
    folder: Path
    pipeline: Pipeline
    rounds: list[Round] = field(default_factory=list)
    _turns: list[tuple[str, str]] = field(default_factory=list)  # each reply, and the feedback to it

    def do_round(self, number: int) -> None:
        text, failure = self._ask(number)
        known = {bot.name: read_text(bot.file) for bot in self.bench.registry.hand_written()}
        written = (
            WrittenBot("", [failure], failure)
            if failure
            else read_bot(text, known, [one.written.source for one in self.rounds])
        )
        one = Round(number, written, [*written.remarks])
        self.rounds.append(one)
        if written.source:
            self._play(one)
        kept = text if len(text) <= MAX_BYTES else f"{text[:1000]}\n..."
        self._turns.append((kept or "(no reply)", ask_for_round(number + 1, self._tell(one))))

    def _ask(self, number: int) -> tuple[str, str]:
        """Return the reply of a round, and the sentence about a reply that cannot be used."""
        order, settings = self.order, self.order.settings
        user = f"{describe_game(self.bench.game, self.bench.opponents)}\n\n{ask_for_round(1)}"
        request = build_request(settings, Exchange(GUIDE, user, None, tuple(self._turns)), "dubito-forge")
        place = Place(_MODEL, number, number, 0, 0, 0, "forge")
        asks = self.pipeline.build_asks(_MODEL, settings, price_of_model(settings, self.bench.calls))
        try:
            reply = asks.ask(Attempt(request, compute_draw(TRAINING_SEED, place, settings.sample), place))
        except AttemptFailed as error:
            if error.cause == "unreachable":
                raise RunStopped(f"round {number} of {order.model} got no reply: {error.detail}") from None
            return error.text or "", f"your reply could not be used: {error.detail}"
        return reply.text or "", _CUT if reply.finish == "length" else ""

    def _play(self, one: Round) -> None:
        """Check a written bot, and play the training deals with it."""
        author = f"{self.order.model} in {one.number} round{'s' * (one.number > 1)}"
        one.settings = self.bench.write_bot(self.folder / one.name, one.written.source, author)
        checked = self.folder / f"checked-{one.number}.json"
        problems, can_play = keep_result(checked, lambda: self.bench.check(one.name, one.settings))
        one.problems += problems
        if can_play:
            one.training = self.bench.play(
                self.folder / f"training-{one.number}", {one.name: one.settings}, TRAINING_SEED, self.order.training
            )

    def _tell(self, one: Round) -> str:
        """Return the feedback about a round. It is kept, since requests must repeat it exactly."""
        file = self.folder / f"feedback-{one.number}.txt"
        if file.exists():
            return read_text(file)
        rows = [] if one.training is None else ranking_rows(one.training)
        mistakes = [] if one.training is None else find_mistakes(one.training.folder, one.name, _MISTAKES)
        feedback = tell_round(one.number, one.problems, rows, one.name, self.bench.game, self.order.training, mistakes)
        write_whole(file, feedback)
        return feedback

    def describe_last(self) -> str:
        one = self.rounds[-1]
        played = "" if one.training is None else f"played {self.order.training} training deals"
        return f"round {one.number}: {'; '.join(filter(None, [*one.problems, played]))}"

    def choose(self, spent: Spend) -> Forged:
        """Play the held-out deals with all rounds that can play, and order them by the result."""
        playable = [one for one in self.rounds if one.training is not None]
        if not playable:
            return Forged(self.folder, self.rounds, [], spent, None)
        bots = {one.name: one.settings for one in playable}
        digest = digest_files(playable, self.order.held_out)
        held_out = self.bench.play(self.folder / f"held-out-{digest[:8]}", bots, seed_of(digest), self.order.held_out)
        scores = [
            Score(one, own_rate(one.training, one.name), own_rate(held_out, one.name), gain(one.training, one.name),
                  gain(held_out, one.name))
            for one in playable if one.training is not None
        ]  # fmt: skip
        scores = rank_scores(scores)
        lead = _difference(held_out, scores[0].round.name, scores[1].round.name) if len(scores) > 1 else None
        return Forged(self.folder, self.rounds, scores, spent, lead)


def keep_result(file: Path, compute: Callable[[], Any]) -> Any:
    """Return the result in a file, or compute and keep it. On a busy machine, a bot could fail the second time."""
    if not file.exists():
        write_whole(file, json.dumps(compute()))
    return json.loads(read_text(file))


def rank_scores(scores: Sequence[Score]) -> list[Score]:
    """Return the scores in the order of the choice: the best on the held-out deals first, and the earlier of equals."""
    return sorted(scores, key=lambda score: (-(score.held_out.value or 0.0), score.round.number))


def digest_files(rounds: Sequence[Round], *more: object) -> str:
    """Return a digest of all files. Deals whose seed is made from it are known to no file."""
    return sha256(canonical_json([*(one.written.source for one in rounds), *more]).encode()).hexdigest()


def seed_of(digest: str) -> int:
    return int(digest[:_SEED_DIGITS], 16)


def ranking_rows(result: RunResult) -> list[Any]:
    """Return the players of a run, best first, without the reference."""
    rows = ranking(result.tally, result.experiment.names, result.game.results)
    return [row for row in rows if row.name != REFERENCE]


def own_rate(result: RunResult, name: str) -> Rate:
    rows = contender_ranking(result.tally, result.contenders, result.game.results)
    return next(row.rates[result.game.results.measures[0].key] for row in rows if row.contender.name == name)


def gain(result: RunResult, name: str) -> Rate:
    return _difference(result, name, REFERENCE)


def _difference(result: RunResult, name: str, other: str) -> Rate:
    """Return how much better one contender was than another, on the same deals."""
    key = result.game.results.headline[0]
    for pair in contender_pairs(result.tally, result.contenders, result.game.results):
        if {pair.one.name, pair.other.name} == {name, other}:
            difference = pair.differences[key].difference
            return difference if pair.one.name == name else -difference
    raise AssertionError(f"{name} and {other} were not compared")
