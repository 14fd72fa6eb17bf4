"""The plugin's parts: `dubito policy`, luck-corrected results, exact beliefs, and a check for games with courses."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from dubito.hooks import BeliefReference, Command, GameCheck, StartProgress, hookimpl

if TYPE_CHECKING:
    from dubito.experiment.compare import Comparison
    from dubito.experiment.experiment import PlayerSpec
    from dubito.experiment.stored import Run
    from dubito.game.find import Registry
    from dubito.report.tables import ComparisonPart
    from dubito.sandbox.consent import Permits


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
def belief_references(run: "Run", start_progress: StartProgress) -> Sequence[BeliefReference]:
    from dubito.plugins.openspiel.policy.posterior import ExactReference  # late, as above

    exact = ExactReference.of(run, start_progress)
    return [exact] if exact else []


@hookimpl
def exploitabilities(players: "Sequence[PlayerSpec]", registry: "Registry", permits: "Permits") -> list[float | None]:
    from dubito.plugins.openspiel.policy.measure import measure_players  # late, as above

    return measure_players(players, registry, permits)


@hookimpl
def game_checks() -> Sequence[GameCheck]:
    from dubito.plugins.openspiel.courses import check_courses  # late, as above

    return [check_courses]
