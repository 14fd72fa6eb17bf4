"""What a trial of prompts has to show, as tables."""

from collections.abc import Sequence

from dubito.cli.output import say, show, table
from dubito.errors import one_line
from dubito.llm.prices import Price, dollars
from dubito.report.run_tables import calibration_bins, calibration_table
from dubito.report.tables import cell_text
from dubito.stats.players import calibrations
from dubito.store.model_log import answer_in_words
from dubito.workshop.recordings import part
from dubito.workshop.trial import ScoreRow, Trial, TrialAnswer, TrialEntry, agreements, rows, stated


def print_trial(entries: Sequence[TrialEntry], files: Sequence[str], trial: Trial, price: Price | None) -> None:
    """Print all of it; `files` are the names of the positions' files."""
    _print_answers(entries, trial, price)
    if len(entries) > 1:
        _print_agreement(entries, files, trial.taken[0], trial.taken[1])
    if players := calibrations(stated(trial.taken), [entry.name for entry in entries]):
        of = entries[0].prompt.game.results.stated
        show(calibration_table(players, of), calibration_bins(players, "calibration-bins"))
    spent = trial.spent
    if not spent.calls:
        say("calls: 0; every reply was there already, in the run folder or the cache")
    else:
        say(f"calls: {spent.calls:,}" + (f", cost {dollars(spent.usd)}" if price else ""))
    say(f"run folder: {trial.folder}")


def _print_answers(entries: Sequence[TrialEntry], trial: Trial, price: Price | None) -> None:
    found = [(entry.name, row) for entry, taken in zip(entries, trial.taken, strict=True) for row in rows(taken, price)]
    causes = sorted({cause for _, row in found for cause in row.causes})
    right: str | None = part(entries[0].prompt.game, "RIGHT", None)
    headers = ["prompt", "node", "positions", "yes %", *(["right %"] if right else []), "invalid %", *causes]
    headers += ["tokens in", "cached in", "tokens out", "cost of 1,000"]
    cells = [
        [
            name,
            row.node,
            f"{row.positions}",
            cell_text(row.yes, "rate"),
            *([cell_text(row.right, "rate")] if right else []),
            cell_text(row.invalid, "rate"),
            *(cell_text(row.causes.get(cause, 0) / row.positions, "rate") for cause in causes),
            *_takes(row),
        ]
        for name, row in found
    ]
    taken = trial.taken[0]
    deals = len({one.recorded.deal for one in taken})
    title = f"{entries[0].settings.model} at {len(taken):,} positions of {deals:,} deals; 95 % intervals, clustered by "
    title += f"deal; {f'right: {right}; ' if right else ''}tokens: of a decision"
    table(one_line(title), headers, cells)


def _takes(row: ScoreRow) -> list[str]:
    """Tokens of a decision, cost of a thousand; dashes where they are not known."""
    tokens = ["-"] * 3 if row.tokens is None else [f"{count:.0f}" for count in row.tokens]
    return [*tokens, "-" if row.picodollars is None else dollars(round(row.picodollars))]


def _print_agreement(
    entries: Sequence[TrialEntry], files: Sequence[str], taken: Sequence[TrialAnswer], other: Sequence[TrialAnswer]
) -> None:
    one, two = (entry.name for entry in entries)
    headers = ["node", "positions", "same answer %", f"yes by {one}, no by {two}", "the other way"]
    cells = [
        [row.node, f"{row.positions}", cell_text(row.same, "rate"), f"{row.to_yes}", f"{row.to_no}"]
        for row in agreements(taken, other)
    ]
    table(f"{one_line(one)} and {one_line(two)} at the positions that both answered", headers, cells)
    for name, first, second in zip(files, taken, other, strict=True):
        if None not in (first.answer, second.answer) and first.answer != second.answer:
            answers = (answer_in_words(first.answer), answer_in_words(second.answer))
            say(f"flipped: {name}: {answers[0]} by {one_line(one)}, {answers[1]} by {one_line(two)}")
