"""The plugin's parts: `dubito policy`, luck-corrected results, and a check for games with courses."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from dubito.hooks import Command, GameCheck, hookimpl

if TYPE_CHECKING:
    from dubito.experiment.compare import Comparison
    from dubito.experiment.stored import Run
    from dubito.report.tables import ComparisonPart


@hookimpl
def commands() -> Mapping[str, Command]:
    return {"policy": Command("Plugins", "dubito.plugins.openspiel.policy.command:policy")}


@hookimpl
def comparison_parts(runs: "Sequence[Run]", comparison: "Comparison") -> "Sequence[ComparisonPart]":
    from dubito.plugins.openspiel.policy.contenders import (
        luck_corrected_part,
    )  # imported late because every command loads this file

    return [luck_corrected_part(runs, comparison)]


@hookimpl
def game_checks() -> Sequence[GameCheck]:
    from dubito.plugins.openspiel.courses import check_courses  # late, as above

    return [check_courses]
