"""`dubito leaderboard review`: repeat a sample of a submission's requests."""

from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import click

from dubito.cli.call_options import limited_call_options, model_progress, question_progress, suggest_resume
from dubito.cli.options import SPENDING, config_options, flags, games_path_option, open_run_folder
from dubito.cli.output import say
from dubito.errors import UsageError, one_line
from dubito.experiment.call_options import CallOptions
from dubito.experiment.stored import Run, open_recorded_run
from dubito.files import write_whole
from dubito.llm.prompts import Prompt
from dubito.plugins.leaderboard.submissions import MIN_SAMPLE, REVIEW, Review, compare_sample
from dubito.store.folder import is_export, to_yaml
from dubito.store.run_db import OF_PLAYER
from dubito.workshop.recordings import RecordedPosition, position_recorder
from dubito.workshop.trial import Trial, TrialEntry, TrialOptions, run_trial

_DEFAULT_SAMPLE: Final = 60

_options = flags(
    config_options("in_flight", *SPENDING),
    click.option("--quiet", is_flag=True, help="Hide the progress line."),
)


@click.command()
@click.argument("file", metavar="SUBMISSION", type=click.Path(path_type=Path))
@click.option("--by", required=True, metavar="NAME", help="Your name, shown on the leaderboard.")
@click.option(
    "--sample",
    type=click.IntRange(MIN_SAMPLE),
    default=_DEFAULT_SAMPLE,
    show_default=True,
    metavar="N",
    help="Number of requests to repeat, twice each.",
)
@_options
@games_path_option
def review(file: Path, by: str, sample: int, quiet: bool, **given: Any) -> None:
    """Repeat a sample of a submission's requests.

    SUBMISSION is an exported run. The review is written next to it. The sample depends only on the file. `dubito
    leaderboard` reads the review. A row is attested if the model gives you the same answers as the submitter, and
    challenged otherwise.
    """
    if not (file.is_file() and is_export(file)):
        raise UsageError(f"{one_line(str(file))} is not an exported run; name a file written by `dubito export`")
    path = file.with_name(f"{file.stem}{REVIEW}")
    if path.exists():
        raise UsageError(f"{one_line(str(path))} already exists; delete it to repeat the sample")
    digest = sha256(file.read_bytes()).hexdigest()
    calls = limited_call_options(given)
    with open_run_folder(file) as folder, open_recorded_run(folder, Path.cwd()) as run:
        player = _only_model(run)
        positions = _sample_positions(run, player, digest, sample)
        trial = _ask_twice(run, player, positions, Path("runs") / f"review-{digest[:8]}-{sample}", calls, quiet)
        answers = [(one.answer, two.answer) for one, two in zip(*trial.answers, strict=True)]
        repeated = [
            {"decision": place, "answers": [*both]}
            for place, both in zip(positions, answers, strict=True)
            if None not in both
        ]
        content = {"submission": digest, "by": by, "asked": repeated}
        result = compare_sample(run, Review.model_validate(content))
    write_whole(path, to_yaml(content))
    say(
        f"{result.asked:,} of {len(positions):,} requests got two answers: the first equals the submission's in "
        f"{result.agreed:,}, and both are equal in {result.repeated:,}; calls: {trial.spent.calls:,}"
    )
    say(f"review: {path}")


def _only_model(run: Run) -> str:
    """Return the only model among the contenders. Raises UsageError unless there is exactly one."""
    models = [name for name in run.contenders if name in run.models]
    if len(models) != 1:
        raise UsageError(f"{len(models)} of its contenders are models, but a review needs exactly one")
    return models[0]


def _sample_positions(run: Run, player: str, digest: str, sample: int) -> dict[str, RecordedPosition]:
    """Choose the positions of the sample, by decision. Raises UsageError if there are too few."""
    query = f"SELECT d.game, d.seat, d.decision {OF_PLAYER} WHERE d.game >= 0 AND d.outcome LIKE 'model%'"
    rows = run.db.read(query, (player,))
    if len(rows) < sample:
        raise UsageError(f"{one_line(player)} made {len(rows):,} decisions, too few for a sample of {sample}")
    chosen = {*sorted(rows, key=lambda row: sha256(f"{digest}/{row}".encode()).digest())[:sample]}
    read_positions = position_recorder(run)
    positions = {}
    for game in sorted({game for game, _, _ in chosen}):
        for one in read_positions(game):
            if one.source and (at := (one.source.game, one.source.seat, one.source.decision)) in chosen:
                positions[".".join(map(str, at))] = one
    return positions


def _ask_twice(
    run: Run, player: str, positions: dict[str, RecordedPosition], folder: Path, calls: CallOptions, quiet: bool
) -> Trial:
    """Ask at each position twice, with the submission's prompt and settings but new `sample` numbers."""
    (spec,) = [spec for spec in run.planned.contenders if spec.name == player]
    settings = run.resolved.model(player).settings
    if settings.play == "drawn":
        raise UsageError(f"{one_line(player)} samples its answers from the odds it states, so they cannot be compared")
    prompt = Prompt(Path(settings.prompt), run.model_log.prompt(spec.prompt), run.game).for_api(settings.api)
    entries = [
        TrialEntry(f"{player} {number}", prompt, settings.model_copy(update={"sample": settings.sample + number}))
        for number in (1, 2)
    ]
    with suggest_resume(folder), question_progress(2 * len(positions), quiet) as progress:
        return run_trial(entries, positions, folder, TrialOptions(calls, model_progress(quiet), progress))
