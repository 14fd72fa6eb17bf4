"""Exported runs handed in for a leaderboard, proved one by one: each is replayed offline before it counts.

A replay shows that the games follow from the replies, not who gave them. What the maintainer knows besides stands in a
file of theirs beside the submission, `NAME.review.yaml` for `NAME.zip`.
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

from dubito.errors import DubitoError, UsageError, one_line
from dubito.experiment.replay import check_to_replay, replay
from dubito.experiment.stored import Run, read_run, store_errors_as_usage_errors
from dubito.files import Checked, fault, read_text, read_yaml
from dubito.plugins.leaderboard.book import book_names, book_of
from dubito.stats.rates import Rate, paired_difference
from dubito.store.folder import describe_difference, is_export, unpack
from dubito.store.model_log import ModelLog

Tier = Literal["replayed", "attested", "challenged"]
REVIEW: Final = ".review.yaml"
LEAST_SAMPLE: Final = 50  # requests that have to be asked again before that says anything
_LONGEST: Final = 300  # characters of a reason


class _AskedAgain(Checked):
    """A request of the submission, sent twice more: which decision it was for, and the answers."""

    decision: str = Field(pattern=r"^\d{1,12}\.\d{1,4}\.\d{1,6}$")
    answers: list[Any] = Field(min_length=2, max_length=2)


class Review(Checked):
    """What the maintainer says of a submission."""

    submission: str  # sha256 of the file
    by: str = Field(min_length=1)
    asked: list[_AskedAgain] = []
    challenge: str = ""


@dataclass(frozen=True, slots=True)
class Answerers:
    """By whom a model player's replies say that they are."""

    ids: Mapping[str, int]  # with how many replies
    replies: int
    unnamed: int  # replies without an id of their own, or without a model's


@dataclass(frozen=True, slots=True)
class Sampled:
    """Requests that were asked again, twice each."""

    asked: int
    agreed: int  # the first new answer was the submission's
    itself: int  # the second was the first
    less: Rate  # how much less often it agreed with the submission than with itself

    @property
    def agrees(self) -> bool:
        return self.less.low <= 0


@dataclass(frozen=True)
class Proven:
    """A submission that was replayed: identical, its digest recomputed."""

    file: str  # below the folder of the submissions
    sha256: str
    run: Run
    decisions: int  # of models, compared one by one
    answerers: Mapping[str, Answerers] = field(default_factory=dict)  # by model player
    tier: Tier = "replayed"
    said: Sequence[str] = ()  # why it is of this tier

    @property
    def key(self) -> str:
        return self.sha256[:12]


@dataclass(frozen=True, slots=True)
class Refused:
    """A file that has no row, and why."""

    file: str
    reason: str


@dataclass(frozen=True, slots=True)
class Submissions:
    """What a folder of submissions holds: by book the runs that were proved, and what was not."""

    books: Sequence[tuple[str, Sequence[Proven]]]  # each the folder's name, empty for the folder itself
    refused: Sequence[Refused]


@dataclass
class _Opened:
    """A submission, read but not yet proved."""

    file: str
    path: Path
    sha256: str
    run: Run
    setting: Mapping[str, Any]
    same: str  # equal for every file that holds this run, however it was packed

    @property
    def review(self) -> Path:
        return self.path.with_name(f"{self.path.stem}{REVIEW}")

    @property
    def precedence(self) -> tuple[bool, float, str]:
        """Return what sorts files of one run: a reviewed one first, then the oldest."""
        try:
            reviewed = self.sha256 in read_text(self.review)
        except UsageError:
            reviewed = False
        return not reviewed, self.path.stat().st_mtime, self.file


@contextmanager
def submissions_in(
    folder: Path, home: Path, workers: int, tell: Callable[[str], None] = lambda file: None
) -> Iterator[Submissions]:
    """Every submission in a folder and in the folders in it, each of which is one book's; their runs stay open within.

    `tell` hears of each file before it is replayed. Raises UsageError if there is none.
    """
    by_book: dict[str, list[Path]] = {}
    for path in sorted(path for depth in ("*", "*/*") for path in folder.glob(depth) if _is_submission(path)):
        book = "" if path.parent == folder else path.parent.name
        by_book.setdefault(book, []).append(path)
    if not by_book:
        raise UsageError(f"{one_line(str(folder))} holds no submission: put files there that `dubito export` made")
    refused = list[Refused]()
    with ExitStack() as opened:
        books = []
        for book, paths in sorted(by_book.items()):
            proven = _proved(_finished_runs(paths, folder, home, opened, refused), home, workers, tell, refused)
            books += [(book, proven)] if proven else []
        yield Submissions(books, sorted(refused, key=lambda one: one.file))


def _is_submission(path: Path) -> bool:
    return path.suffix.lower() in ("", ".zip") and not path.name.startswith(".") and not path.is_dir()


def _finished_runs(
    paths: Sequence[Path], folder: Path, home: Path, opened: ExitStack, refused: list[Refused]
) -> list[_Opened]:
    """Those that are finished runs with somebody to rank."""
    found = list[_Opened]()
    for path in paths:
        file = path.relative_to(folder).as_posix()
        try:
            with ExitStack() as own:
                found.append(_finished_run(path, file, home, own))
                opened.enter_context(own.pop_all())
        except (DubitoError, OSError) as error:
            refused.append(Refused(file, _reason(error, path, file)))
    return found


def _finished_run(path: Path, file: str, home: Path, own: ExitStack) -> _Opened:
    """Open one of them. Raises UsageError."""
    if not is_export(path):
        raise UsageError("it is not an exported run: hand in a file that `dubito export RUN FILE` wrote")
    with path.open("rb") as content:
        digest = file_digest(content, "sha256").hexdigest()
    run = read_run(own.enter_context(unpack(path)), home)
    own.enter_context(run.db)
    with store_errors_as_usage_errors():
        _check_to_rank(run)
        same = repr((replace(run.planned, games=run.game_count), run.results_digest))
    return _Opened(file, path, digest, run, _setting_of(run), same)


def _reason(error: Exception | str, path: Path, file: str, inside: Path | None = None) -> str:
    """A sentence without a path of this machine."""
    said = str(error)
    for place in (path.resolve(), path, *([inside] if inside else [])):
        said = said.replace(str(place), file)
    return one_line(said.replace(str(Path.cwd()), "."), _LONGEST)


def _check_to_rank(run: Run) -> None:
    """Raise UsageError for a run that has no place on a leaderboard, whatever it holds."""
    if not run.contenders:
        raise UsageError("it has no contenders, so there is nobody to rank")
    if run.planned.shard:
        raise UsageError("it is a shard: hand in the whole run, as `dubito merge` makes it")
    if not run.is_finished:
        raise UsageError(f"it is unfinished: it keeps {run.game_count:,} of {run.planned.games:,} games")
    check_to_replay(run)
    _check_book(run)


def _check_book(run: Run) -> None:
    """Raise UsageError where the run says a book of ours that it is not, or is the part of a rating without a rank.

    A book that did not come with Dubito is not looked for: its name is anybody's.
    """
    if run.planned.book is None or run.planned.book.name not in book_names():
        return
    found = book_of(run)
    if found is not None and found.faults:
        raise UsageError(f"it says that it is by the book {found.name}, but {found.faults[0]}")
    if found is not None and found.part == "exploiters":
        raise UsageError("in it exploiters play, who are not ranked: hand in `field`, the other run of the rating")


def _setting_of(run: Run) -> dict[str, Any]:
    """What runs of one book have in common, whether or not it has a name: all but the contenders."""
    planned = run.planned
    return {
        "game": planned.game,
        "rules_version": planned.rules_version,
        "game_source": planned.game_source,
        "rules": dict(planned.rules),
        "seed": planned.seed,
        "table_sizes": [*planned.table_sizes],
        "deals": planned.deals,
        "stop": planned.stop and planned.stop.within,
        "field": [asdict(player) for player in planned.bots],
        "on_bot_error": planned.on_bot_error,
        "played by": planned.book and planned.book.digest,
    }


def _proved(
    read: Sequence[_Opened], home: Path, workers: int, tell: Callable[[str], None], refused: list[Refused]
) -> list[Proven]:
    """Those of the book that most are of (where several are, the first by name), and whose replay is identical."""
    if not read:
        return []
    runs = {one.same: one.setting for one in read}  # packing a run twice gives it no second vote
    book = max(read, key=lambda one: sum(setting == one.setting for setting in runs.values())).setting
    proven, rows = [], dict[str, str]()
    for one in sorted(read, key=lambda one: one.precedence):
        try:
            if one.setting != book:
                places = "in it", "in the others"
                said = describe_difference("book", one.setting, book, places).removeprefix("book.")
                raise UsageError(f"it is of another book: {said}")
            tell(one.file)
            proof = _proof_of(one, workers, refused)
            if rows.setdefault(one.same, one.file) != one.file:
                raise UsageError(f"it is the same run as {one_line(rows[one.same])}, which has the row")
            proven.append(proof)
        except (DubitoError, OSError) as error:
            refused.append(Refused(one.file, _reason(error, one.path, one.file, one.run.folder)))
    return sorted(proven, key=lambda one: one.file)


def _proof_of(one: _Opened, workers: int, refused: list[Refused]) -> Proven:
    """Replay a run and recompute its digest; raises UsageError with the first thing that is not so."""
    run = one.run
    if run.changed:
        raise UsageError(f"it cannot be played again: {run.changed[0]}")
    found = replay(run, workers, lambda games: None)
    if found.difference is not None:
        details = "; ".join(found.difference.details[:2])
        raise UsageError(f"its replay differs: {found.difference}{f' ({details})' if details else ''}")
    answerers = {name: answerers_of(run, name) for name in run.contenders if name in run.models}
    tier, said = _tier_of(one, answerers, refused)
    return Proven(one.file, one.sha256, run, found.decisions, answerers, tier, said)


def answerers_of(run: Run, player: str) -> Answerers:
    """By whom the replies of a model player say that they are, read in the replies themselves."""
    log, ids = ModelLog(run.db), Counter[str]()
    bodies = Counter(
        raw
        for (raw,) in run.db.read(
            "SELECT raw FROM attempts WHERE player = ? AND game >= 0 AND reply IS NOT NULL", (player,)
        )
    )
    named = dict[str, str]()
    for raw, count in bodies.items():
        body = _body(log, raw)
        model, own = body.get("model"), body.get("id")
        if isinstance(model, str) and model:
            ids[model] += count
            if isinstance(own, str) and own:
                named.setdefault(own, raw)
    known = sum(bodies[raw] for raw in named.values())
    return Answerers(dict(sorted(ids.items())), bodies.total(), bodies.total() - known)


def _body(log: ModelLog, raw: str | None) -> Mapping[str, Any]:
    try:
        body = json.loads(log.text(raw)) if raw else {}
    except (ValueError, RecursionError):
        return {}
    return body if isinstance(body, dict) else {}


def _tier_of(one: _Opened, answerers: Mapping[str, Answerers], refused: list[Refused]) -> tuple[Tier, list[str]]:
    """How far a replayed run is believed, and why; a review that cannot be read is refused itself."""
    path = one.review
    if not path.exists():
        return "replayed", []
    file = f"{one.file.rpartition('.')[0] or one.file}{REVIEW}"
    try:
        review = Review.model_validate(read_yaml(path))
    except ValidationError as error:
        refused.append(Refused(file, f"the review cannot be read: {fault(error)}"))
        return "replayed", []
    except UsageError as error:
        refused.append(Refused(file, _reason(error, path, file)))
        return "replayed", []
    if review.submission != one.sha256:
        refused.append(Refused(file, f"the review is of another file than {one_line(one.file)}"))
        return "replayed", []
    by = one_line(review.by, 60)
    if review.challenge:
        return "challenged", [f"{by}: {one_line(review.challenge, _LONGEST)}"]
    if not answerers:
        return "replayed", ["no model was asked: the replay itself is the whole proof"]
    return _attested(by, sampled(one.run, review), answerers)


def _attested(by: str, sample: Sampled, answerers: Mapping[str, Answerers]) -> tuple[Tier, list[str]]:
    said = [
        f"{by} asked {sample.asked:,} of its requests again, twice each: the first answer was the submission's in "
        f"{sample.agreed:,}, the second was the first in {sample.itself:,}"
    ]
    if unnamed := sum(each.unnamed for each in answerers.values()):
        return "replayed", [*said, f"{unnamed:,} replies have no id of their own, or name no model"]
    if sample.asked < LEAST_SAMPLE:
        return "replayed", [*said, f"that is too few: at least {LEAST_SAMPLE} are needed"]
    if not sample.agrees:
        return "challenged", [*said, "so seldom the same answer is not explained by chance"]
    return "attested", said


def sampled(run: Run, review: Review) -> Sampled:
    """What asking again came to, by decisions of the run; raises UsageError if one is none of its models' own."""
    log, agreed, itself, d, d2 = ModelLog(run.db), 0, 0, 0, 0
    places = {asked.decision: asked.answers for asked in review.asked}
    for place, (first, second) in places.items():
        game, seat, number = map(int, place.split("."))
        decision = log.decisions(game).get((seat, number))
        if decision is None or not decision.outcome.startswith("model"):
            raise UsageError(f"its review names the decision {place}, which no model took")
        same, again = first == decision.answer, first == second
        agreed, itself = agreed + same, itself + again
        d, d2 = d + again - same, d2 + (again != same)
    return Sampled(len(places), agreed, itself, paired_difference(len(places), d, d2))
