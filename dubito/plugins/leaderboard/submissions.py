"""Verify exported runs that were submitted to a leaderboard, by replaying each offline.

A replay shows that the games follow from the replies, but not which model gave them. A maintainer can add evidence in a
review file next to the submission: `NAME.review.yaml` for `NAME.zip`.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field, replace
from hashlib import file_digest
from pathlib import Path
from typing import Any, Final, Literal

from pydantic import Field, ValidationError

from dubito.errors import DubitoError, NotInstalled, UsageError, one_line
from dubito.experiment.replay import replay
from dubito.experiment.stored import Run, check_replayable, read_run, store_errors_as_usage_errors
from dubito.files import CheckedModel, describe_fault, read_text, read_yaml
from dubito.plugins.leaderboard.book import book_names, find_book_of
from dubito.stats.rates import Rate, paired_difference
from dubito.store.folder import describe_difference, is_export, unpack
from dubito.store.model_log import ModelLog

Tier = Literal["replayed", "attested", "challenged"]
REVIEW: Final = ".review.yaml"
MIN_SAMPLE: Final = 50  # requests that must be repeated before a row can be attested
_MAX_REASON_LENGTH: Final = 300


class _RepeatedRequest(CheckedModel):
    """A request from the submission that was repeated twice, with its decision and the two answers."""

    decision: str = Field(pattern=r"^\d{1,12}\.\d{1,4}\.\d{1,6}$")
    answers: list[Any] = Field(min_length=2, max_length=2)


class Review(CheckedModel):
    """A maintainer's review file."""

    submission: str  # sha256 of the file
    by: str = Field(min_length=1)
    asked: list[_RepeatedRequest] = []
    challenge: str = ""


@dataclass(frozen=True, slots=True)
class Answerers:
    """The models named in a player's replies."""

    ids: Mapping[str, int]  # number of replies by model name
    replies: int
    unnamed: int  # replies without a unique id or a model name


@dataclass(frozen=True, slots=True)
class SampleResult:
    """How often the new answers agreed with the submission and with each other."""

    asked: int
    agreed: int  # how often the first new answer equals the submission's
    repeated: int  # how often both new answers are equal
    shortfall: Rate  # how much less often the model agreed with the submission than with itself

    @property
    def agrees(self) -> bool:
        return self.shortfall.low <= 0


@dataclass(frozen=True)
class VerifiedRun:
    """A submission whose replay was identical."""

    file: str  # relative to the submissions folder
    sha256: str
    run: Run
    decisions: int  # number of model decisions
    answerers: Mapping[str, Answerers] = field(default_factory=dict)  # by model player
    tier: Tier = "replayed"
    tier_reasons: Sequence[str] = ()

    @property
    def key(self) -> str:
        return self.sha256[:12]


@dataclass(frozen=True, slots=True)
class InvalidFile:
    """A file without a row, and the reason."""

    file: str
    reason: str


@dataclass(frozen=True, slots=True)
class Submissions:
    """The contents of a submissions folder: verified runs by book, and invalid files."""

    books: Sequence[tuple[str, Sequence[VerifiedRun]]]  # by subfolder, with an empty name for the folder itself
    invalid: Sequence[InvalidFile]


@dataclass
class _OpenedRun:
    """A submission that was read but has not been verified."""

    file: str
    path: Path
    sha256: str
    run: Run
    conditions: Mapping[str, Any]
    run_key: str  # equal for all exports of one run

    @property
    def review(self) -> Path:
        return self.path.with_name(f"{self.path.stem}{REVIEW}")

    @property
    def precedence(self) -> tuple[bool, float, str]:
        """Return a sort key for exports of the same run: reviewed files first, then by age."""
        try:
            reviewed = self.sha256 in read_text(self.review)
        except UsageError:
            reviewed = False
        return not reviewed, self.path.stat().st_mtime, self.file


@contextmanager
def verify_submissions(
    folder: Path, home: Path, workers: int, report_progress: Callable[[str], None] = lambda file: None
) -> Iterator[Submissions]:
    """Verify the submissions in a folder and its subfolders, and keep their runs open in the context.

    Each folder contains the submissions for one book. `report_progress` is called with the name of each file before its
    replay. Raises UsageError if there are no submissions.
    """
    by_book: dict[str, list[Path]] = {}
    for path in sorted(path for depth in ("*", "*/*") for path in folder.glob(depth) if _is_submission(path)):
        book = "" if path.parent == folder else path.parent.name
        by_book.setdefault(book, []).append(path)
    if not by_book:
        raise UsageError(f"{one_line(str(folder))} has no submissions; add files written by `dubito export`")
    invalid = list[InvalidFile]()
    with ExitStack() as opened:
        books = []
        for book, paths in sorted(by_book.items()):
            finished = _open_finished_runs(paths, folder, home, opened, invalid)
            verified = _verify_runs(finished, workers, report_progress, invalid)
            books += [(book, verified)] if verified else []
        yield Submissions(books, sorted(invalid, key=lambda one: one.file))


def _is_submission(path: Path) -> bool:
    return path.suffix.lower() in ("", ".zip") and not path.name.startswith(".") and not path.is_dir()


def _open_finished_runs(
    paths: Sequence[Path], folder: Path, home: Path, opened: ExitStack, invalid: list[InvalidFile]
) -> list[_OpenedRun]:
    """Open the finished runs that have contenders, and add the other files to `invalid`."""
    runs = list[_OpenedRun]()
    for path in paths:
        file = path.relative_to(folder).as_posix()
        try:
            with ExitStack() as own:
                runs.append(_open_finished_run(path, file, home, own))
                opened.enter_context(own.pop_all())
        except NotInstalled as error:
            raise UsageError(f"{one_line(file)} cannot be verified on this machine: {error}") from None
        except (DubitoError, OSError) as error:
            invalid.append(InvalidFile(file, _public_reason(error, path, file)))
    return runs


def _open_finished_run(path: Path, file: str, home: Path, own: ExitStack) -> _OpenedRun:
    if not is_export(path):
        raise UsageError("it is not an exported run; submit a file written by `dubito export RUN FILE`")
    with path.open("rb") as content:
        digest = file_digest(content, "sha256").hexdigest()
    run = read_run(own.enter_context(unpack(path)), home)
    own.enter_context(run.db)
    with store_errors_as_usage_errors():
        _check_rankable(run)
        run_key = repr((replace(run.planned, games=run.game_count), run.results_digest))
    return _OpenedRun(file, path, digest, run, _shared_conditions(run), run_key)


def _public_reason(error: Exception | str, path: Path, file: str, inside: Path | None = None) -> str:
    """Return the error message without local paths."""
    message = str(error)
    for place in (path.resolve(), path, *([inside] if inside else [])):
        message = message.replace(str(place), file)
    return one_line(message.replace(str(Path.cwd()), "."), _MAX_REASON_LENGTH)


def _check_rankable(run: Run) -> None:
    """Raise UsageError if the run cannot be ranked, regardless of its results."""
    if not run.contenders:
        raise UsageError("it has no contenders to rank")
    if run.planned.shard:
        raise UsageError("it is a shard; merge the shards with `dubito merge` and submit the whole run")
    if not run.is_finished:
        raise UsageError(f"it is unfinished, with {run.game_count:,} of {run.planned.games:,} games")
    check_replayable(run)
    _check_book(run)


def _check_book(run: Run) -> None:
    """Raise UsageError if the run differs from the book it names, or is the exploiters' part of a rating.

    Only books that come with Dubito are checked, because other names could mean anything.
    """
    if run.planned.book is None or run.planned.book.name not in book_names():
        return
    book = find_book_of(run)
    if book is not None and book.faults:
        raise UsageError(f"it names the book {book.name}, but {book.faults[0]}")
    if book is not None and book.part == "exploiters":
        raise UsageError("it is the rating's run of exploiters, who are not ranked; submit its other run, `field`")


def _shared_conditions(run: Run) -> dict[str, Any]:
    """Return what runs on one board must have in common, which is everything except the contenders."""
    planned = run.planned
    return {
        "game": planned.game,
        "rules_version": planned.rules_version,
        "game_source": planned.game_source,
        "rules": dict(planned.rules),
        "seed": planned.seed,
        "seed was": run.seed_secrecy,
        "table_sizes": [*planned.table_sizes],
        "deals": planned.deals,
        "stop": planned.stop and planned.stop.within,
        "field": [asdict(player) for player in planned.bots],
        "on_bot_error": planned.on_bot_error,
        "played by": planned.book and planned.book.digest,
    }


def _verify_runs(
    opened: Sequence[_OpenedRun], workers: int, report_progress: Callable[[str], None], invalid: list[InvalidFile]
) -> list[VerifiedRun]:
    """Return the runs with an identical replay that share the most common conditions.

    If several conditions are equally common, the first file by name decides. Other files are added to `invalid`.
    """
    if not opened:
        return []
    # One entry per run, so that a second export of a run does not count twice.
    votes = [*{one.run_key: one.conditions for one in opened}.values()]
    common = max(opened, key=lambda one: votes.count(one.conditions)).conditions
    verified, rows = [], dict[str, str]()
    for one in sorted(opened, key=lambda one: one.precedence):
        try:
            if one.conditions != common:
                places = "in it", "in the others"
                difference = describe_difference("book", one.conditions, common, places).removeprefix("book.")
                raise UsageError(f"its conditions differ: {difference}")
            report_progress(one.file)
            run = _verify_run(one, workers, invalid)
            if rows.setdefault(one.run_key, one.file) != one.file:
                raise UsageError(f"it is the same run as {one_line(rows[one.run_key])}, which already has a row")
            verified.append(run)
        except (DubitoError, OSError) as error:
            invalid.append(InvalidFile(one.file, _public_reason(error, one.path, one.file, one.run.folder)))
    return sorted(verified, key=lambda one: one.file)


def _verify_run(one: _OpenedRun, workers: int, invalid: list[InvalidFile]) -> VerifiedRun:
    """Replay a run and recompute its digest. Raises UsageError with the first difference."""
    run = one.run
    if run.changed:
        raise UsageError(f"it cannot be replayed: {run.changed[0]}")
    result = replay(run, workers, lambda games: None)
    if result.difference is not None:
        details = "; ".join(result.difference.details[:2])
        raise UsageError(f"its replay differs: {result.difference}{f' ({details})' if details else ''}")
    answerers = {name: count_answerers(run, name) for name in run.contenders if name in run.models}
    tier, reasons = _choose_tier(one, answerers, invalid)
    return VerifiedRun(one.file, one.sha256, run, result.decisions, answerers, tier, reasons)


def count_answerers(run: Run, player: str) -> Answerers:
    """Count the model names in the recorded replies to a player."""
    log, ids = run.model_log, Counter[str]()
    bodies = Counter(
        raw
        for (raw,) in run.db.read(
            "SELECT raw FROM attempts WHERE player = ? AND game >= 0 AND reply IS NOT NULL", (player,)
        )
    )
    first_by_id = dict[str, str]()
    for raw, count in bodies.items():
        body = _load_body(log, raw)
        model, reply_id = body.get("model"), body.get("id")
        if isinstance(model, str) and model:
            ids[model] += count
            if isinstance(reply_id, str) and reply_id:
                first_by_id.setdefault(reply_id, raw)
    identified = sum(bodies[raw] for raw in first_by_id.values())
    return Answerers(dict(sorted(ids.items())), bodies.total(), bodies.total() - identified)


def _load_body(log: ModelLog, raw: str | None) -> Mapping[str, Any]:
    try:
        body = json.loads(log.text(raw)) if raw else {}
    except (ValueError, RecursionError):
        return {}
    return body if isinstance(body, dict) else {}


def _choose_tier(
    one: _OpenedRun, answerers: Mapping[str, Answerers], invalid: list[InvalidFile]
) -> tuple[Tier, list[str]]:
    """Return the tier of a replayed run, with reasons. An unreadable review is added to `invalid`."""
    path = one.review
    if not path.exists():
        return "replayed", []
    file = f"{one.file.rpartition('.')[0] or one.file}{REVIEW}"
    try:
        review = Review.model_validate(read_yaml(path))
    except ValidationError as error:
        invalid.append(InvalidFile(file, f"the review cannot be read: {describe_fault(error)}"))
        return "replayed", []
    except UsageError as error:
        invalid.append(InvalidFile(file, _public_reason(error, path, file)))
        return "replayed", []
    if review.submission != one.sha256:
        invalid.append(InvalidFile(file, f"the review is for another version of {one_line(one.file)}"))
        return "replayed", []
    by = one_line(review.by, 60)
    if review.challenge:
        return "challenged", [f"{by}: {one_line(review.challenge, _MAX_REASON_LENGTH)}"]
    if not answerers:
        return "replayed", ["no model was asked, so the replay proves everything"]
    return _judge_sample(by, compare_sample(one.run, review), answerers)


def _judge_sample(by: str, sample: SampleResult, answerers: Mapping[str, Answerers]) -> tuple[Tier, list[str]]:
    reasons = [
        f"{by} repeated {sample.asked:,} of its requests twice: the first new answer equals the "
        f"submission's in "
        f"{sample.agreed:,} cases, and both new answers are equal in {sample.repeated:,}"
    ]
    if unnamed := sum(each.unnamed for each in answerers.values()):
        return "replayed", [*reasons, f"{unnamed:,} replies have no unique id or name no model"]
    if sample.asked < MIN_SAMPLE:
        return "replayed", [*reasons, f"too few requests: at least {MIN_SAMPLE} are needed"]
    if not sample.agrees:
        return "challenged", [*reasons, "the difference is too large to be chance"]
    return "attested", reasons


def compare_sample(run: Run, review: Review) -> SampleResult:
    """Compare a review's answers with the run's. Raises UsageError if it names a decision that no model made."""
    log, agreed, repeated, d, d2 = run.model_log, 0, 0, 0, 0
    places = {repeated_request.decision: repeated_request.answers for repeated_request in review.asked}
    for place, (first, second) in places.items():
        game, seat, number = map(int, place.split("."))
        decision = log.decisions(game).get((seat, number))
        if decision is None or not decision.outcome.startswith("model"):
            raise UsageError(f"its review names decision {place}, which no model made")
        same, again = first == decision.answer, first == second
        agreed, repeated = agreed + same, repeated + again
        d, d2 = d + again - same, d2 + (again != same)
    return SampleResult(len(places), agreed, repeated, paired_difference(len(places), d, d2))
