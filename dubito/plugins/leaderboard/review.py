"""`dubito leaderboard review`: a maintainer asks a sample of a submission's requests again, twice each."""

from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import click

from dubito.cli.asking import calls_of, model_progress, question_progress, resumable
from dubito.cli.options import SPENDING, config_options, flags, games_path_option, open_run_folder
from dubito.cli.output import say
from dubito.errors import UsageError, one_line
from dubito.experiment.resolve import CallOptions, model_settings
from dubito.experiment.stored import Run, opened_run
from dubito.files import write_whole
from dubito.llm.prompts import Prompt
from dubito.plugins.leaderboard.submissions import LEAST_SAMPLE, REVIEW, Review, sampled
from dubito.store.folder import is_export, to_yaml
from dubito.store.model_log import OF_PLAYER, ModelLog
from dubito.workshop.recordings import RecordedPosition, position_recorder
from dubito.workshop.trial import Trial, TrialEntry, TrialOptions, run_trial

_SAMPLE: Final = 60

_options = flags(
    config_options("in_flight", *SPENDING),
    click.option("--quiet", is_flag=True, help="Hide the progress line."),
)


@click.command()
@click.argument("file", metavar="SUBMISSION", type=click.Path(path_type=Path))
@click.option("--by", required=True, metavar="NAME", help="Who asks, as the leaderboard will name them.")
@click.option(
    "--sample",
    type=click.IntRange(LEAST_SAMPLE),
    default=_SAMPLE,
    show_default=True,
    metavar="N",
    help="Requests that are asked again, twice each.",
)
@_options
@games_path_option
def review(file: Path, by: str, sample: int, quiet: bool, **given: Any) -> None:
    """Ask a sample of a submission's requests again.

    SUBMISSION is an exported run; the review is written beside it. The sample follows from the file alone. `dubito
    leaderboard` reads the review: a row is attested if the model answers you as it answered the submission, and
    challenged otherwise.
    """
    if not (file.is_file() and is_export(file)):
        raise UsageError(f"{one_line(str(file))} is no exported run: name a file that `dubito export` wrote")
    path = file.with_name(f"{file.stem}{REVIEW}")
    if path.exists():
        raise UsageError(f"{one_line(str(path))} is there already: delete it, and the sample is asked again")
    digest = sha256(file.read_bytes()).hexdigest()
    calls = calls_of(given)
    with open_run_folder(file) as folder, opened_run(folder, Path.cwd()) as run:
        player = _model_of(run)
        found = _positions(run, player, digest, sample)
        done = _asked_twice(run, player, found, Path("runs") / f"review-{digest[:8]}-{sample}", calls, quiet)
        answers = [(one.answer, two.answer) for one, two in zip(*done.answers, strict=True)]
        asked = [
            {"decision": place, "answers": [*both]}
            for place, both in zip(found, answers, strict=True)
            if None not in both
        ]
        written = {"submission": digest, "by": by, "asked": asked}
        came = sampled(run, Review.model_validate(written))
    write_whole(path, to_yaml(written))
    say(
        f"{came.asked:,} of {len(found):,} requests got two answers: the first is the submission's in "
        f"{came.agreed:,}, the second is the first in {came.itself:,}; calls: {done.spent.calls:,}"
    )
    say(f"review: {path}")


def _model_of(run: Run) -> str:
    """The one model player that the run compares; raises UsageError."""
    models = [name for name in run.contenders if name in run.models]
    if len(models) != 1:
        raise UsageError(f"{len(models)} of its contenders are models, and a sample is of one")
    return models[0]


def _positions(run: Run, player: str, digest: str, sample: int) -> dict[str, RecordedPosition]:
    """The positions of the sample by their decisions; raises UsageError where there are not so many."""
    of_model = f"SELECT d.game, d.seat, d.decision {OF_PLAYER} WHERE d.game >= 0 AND d.outcome LIKE 'model%'"
    rows = run.db.read(of_model, (player,))
    if len(rows) < sample:
        raise UsageError(f"{one_line(player)} took {len(rows):,} decisions, fewer than the {sample} of a sample")
    chosen = {*sorted(rows, key=lambda row: sha256(f"{digest}/{row}".encode()).digest())[:sample]}
    watched = position_recorder(run)
    found = {}
    for game in sorted({game for game, _, _ in chosen}):
        for one in watched(game):
            if one.source and (at := (one.source.game, one.source.seat, one.source.decision)) in chosen:
                found[".".join(map(str, at))] = one
    return found


def _asked_twice(
    run: Run, player: str, found: dict[str, RecordedPosition], folder: Path, calls: CallOptions, quiet: bool
) -> Trial:
    """Ask each with the submission's own prompt and settings, but for other samples than its own."""
    (spec,) = [spec for spec in run.planned.contenders if spec.name == player]
    settings = model_settings(spec, run.registry)
    if settings.play == "drawn":
        raise UsageError(f"{one_line(player)} draws its answers by the odds it states, so no two need be alike")
    prompt = Prompt(Path(settings.prompt), ModelLog(run.db).prompt(spec.prompt), run.game).for_api(settings.api)
    entries = [
        TrialEntry(f"{player} {number}", prompt, settings.model_copy(update={"sample": settings.sample + number}))
        for number in (1, 2)
    ]
    with resumable(folder), question_progress(2 * len(found), quiet) as progress:
        return run_trial(entries, found, folder, TrialOptions(calls, model_progress(quiet), progress))
