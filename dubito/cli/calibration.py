"""What models stated of the last play, against the truth, as tables."""

from collections.abc import Sequence

from dubito.cli.output import percent, percent_with_interval, table
from dubito.experiment.calibration import Calibration, calibrations
from dubito.experiment.tally import Tally


def print_calibration(tally: Tally, names: Sequence[str]) -> None:
    """Print how probable players called a bluff, and how often it was one; nothing if none said anything."""
    players = calibrations(tally, names)
    if not players:
        return
    _print_scores(players)
    cells = [
        [
            player.name,
            f"{100 * stated.low:.0f} to {100 * stated.low + 10:.0f}",
            f"{stated.statements}",
            percent(stated.mean),
            percent_with_interval(stated.dishonest),
        ]
        for player in players
        for stated in player.bins
    ]
    if cells:
        headers = ["model player", "stated %", "times", "mean stated %", "dishonest %"]
        table("The same by what was stated: the last two columns are alike in who is calibrated", headers, cells)


def _print_scores(players: Sequence[Calibration]) -> None:
    cells = []
    for player in players:
        brier = player.brier
        interval = "-" if brier.value is None else f"{brier.value:.3f} [{brier.low:.3f}, {brier.high:.3f}]"
        base = "-" if player.base_brier is None else f"{player.base_brier:.3f}"
        counts = f"{player.nulls}", f"{player.impossible}"
        cells.append([player.name, f"{player.statements}", interval, base, percent(player.base_rate), *counts])
    headers = ["model player", "stated", "Brier score", "of the base rate", "dishonest %", "null", "impossible"]
    table("Stated probability that the last play is dishonest (node C), against the truth", headers, cells)
