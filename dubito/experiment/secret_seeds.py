"""Secret seeds of runs with programs or agents, which could otherwise compute all cards.

A run's manifest contains the SHA-256 of the seed from the start, and the seed once the run has ended.
"""

from dataclasses import replace
from pathlib import Path

from dubito.commands import build_command
from dubito.errors import UsageError
from dubito.experiment.config import Config
from dubito.experiment.experiment import Experiment
from dubito.experiment.stored import Run, load_seed
from dubito.game.seeds import draw_secret_seed, hash_seed


def choose_seed(experiment: Experiment, config: Config, shard: str | None, started: Path | None) -> Experiment:
    """Return the experiment with a secret seed if programs or agents play and the config has no seed."""
    if "seed" in config.model_fields_set or not experiment.has_programs:
        return experiment
    if started is not None:
        seed, sha256 = load_seed(started)
        return replace(experiment, seed=seed, seed_sha256=sha256)
    if shard is not None:
        raise UsageError(
            "a run with programs draws a secret seed, which its shards cannot share",
            where=f"--shard {shard}",
            hint="set --seed, which the programs then may know",
        )
    secret = draw_secret_seed()
    return replace(experiment, seed=secret, seed_sha256=hash_seed(secret))


def check_secret_run(stored: Run, experiment: Experiment, is_finished: bool) -> None:
    """Raise UsageError if the run would go on with a seed that is public, or end without games that it planned."""
    if not stored.can_go_on and not is_finished:
        raise UsageError(
            f"the seed of {stored} has been revealed, so more games would be played with known cards",
            hint="start a new run",
        )
    if not stored.is_revealed and experiment.games < stored.planned.games:
        raise UsageError(
            f"{stored} keeps its seed secret until all of its {stored.planned.games:,} games are played",
            hint=f"leave out --games, or end it with `{build_command('export', stored.folder, 'FILE', '--reveal')}`",
        )
