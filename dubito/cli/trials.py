"""The cassettes and the verdict of `dubito prompts test`."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import click

from dubito.cli.call_options import question_progress
from dubito.cli.output import note, print_document, say
from dubito.errors import UsageError, one_line
from dubito.experiment.call_options import CallOptions
from dubito.experiment.progress import ModelProgress
from dubito.experiment.stored import check_replayable, open_recorded_run
from dubito.report.documents import Interval, PromptResult, TrialObject
from dubito.workshop.cassettes import PromptChanged, load_cassette, load_entry, play_cassette, record_run, save_cassette
from dubito.workshop.recordings import record_from_run
from dubito.workshop.trial import Trial, TrialEntry, TrialOptions, score_rows
from dubito.workshop.verdict import Expectation, compare_rights, compare_trials, describe_trial


def test_with_cassette(
    name: str, file: Path, calls: CallOptions, expected: Sequence[Expectation], quiet: bool, as_json: bool
) -> int:
    """Test a prompt with recorded replies. Return the exit code: 1 if the prompt's requests have changed."""
    cassette = load_cassette(file, Path.cwd())
    entry = load_entry(cassette, name, Path.cwd())
    try:
        with question_progress(len(cassette.positions), quiet) as progress:
            trial = play_cassette(cassette, entry, TrialOptions(calls, ModelProgress(), progress), file)
    except PromptChanged as error:
        note(f"dubito: {error}")
        return 1
    return judge_trial([entry], trial, expected, as_json)


_MANY: Final = 100  # positions to record for each one wanted, since most belong to other players


@click.command()
@click.argument("run", type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--player", metavar="NAME", help="The model player; required if the run has several.")
@click.option("--count", type=click.IntRange(1), default=50, show_default=True, help="Number of positions.")
def record_cassette(run: Path, file: Path, player: str | None, count: int) -> None:
    """Write a model's replies in a run to a cassette.

    `dubito prompts test PROMPT --cassette FILE` uses the cassette.
    """
    with open_recorded_run(run) as stored_run:
        names = [spec.name for spec, _ in stored_run.resolved.models]
        if player is None and len(names) == 1:
            (player,) = names
        if player is None or player not in names:
            raise UsageError(f"name a model player of this run with --player: {', '.join(map(one_line, names))}")
        check_replayable(stored_run)
        nodes = [node.name for node in stored_run.registry.game.nodes]
        positions = record_from_run(stored_run, nodes, _MANY * count)
        cassette = record_run(
            stored_run.model_log, positions, player, stored_run.resolved.model(player).settings, count
        )
    save_cassette(cassette, file)
    say(f"recorded: {len(cassette.positions)} positions of {one_line(player)} in {file}")


def judge_trial(entries: Sequence[TrialEntry], trial: Trial, expected: Sequence[Expectation], as_json: bool) -> int:
    """Print the verdict or a JSON object. Return the exit code: 1 if the first prompt fails an expectation."""
    rows = [score_rows(answers, None)[-1] for answers in trial.answers]
    unmet = [fault for one in expected if (fault := one.check(rows[0]))]
    names = [entry.name for entry in entries]
    if len(entries) == 1:
        verdict = describe_trial(names[0], rows[0])
    else:
        verdict = compare_trials((names[0], names[1]), (rows[0], rows[1]), *trial.answers)
    if as_json:
        results = []
        for name, row in zip(names, rows, strict=True):
            tokens_in, _, tokens_out = row.tokens or (None, None, None)
            result = PromptResult(
                prompt=name,
                positions=row.positions,
                yes=Interval.model_validate(row.yes),
                right=Interval.model_validate(row.right),
                invalid=Interval.model_validate(row.invalid),
                causes=row.causes,
                tokens_in=tokens_in,
                tokens_out=tokens_out,
            )
            results.append(result)
        same, difference = None, None
        if len(entries) > 1:
            same = sum(one.answer == other.answer is not None for one, other in zip(*trial.answers, strict=True))
            difference = compare_rights(*trial.answers)
        document = TrialObject(
            model=entries[0].settings.model,
            prompts=results,
            same_answers=same,
            right_difference=None if difference is None else Interval.model_validate(difference),
            verdict=verdict,
            unmet=unmet,
        )
        print_document(document)
    else:
        say(verdict)
        for fault in unmet:
            note(f"expectation not met: {fault}")
    return 1 if unmet else 0
