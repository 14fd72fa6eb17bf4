"""The shards of a run made the run that one machine would have made."""

import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from dubito.errors import RunStopped, UsageError, one_line
from dubito.experiment.results import all_games
from dubito.experiment.shards import FOLDER
from dubito.experiment.stored import StoredRun, StoredShard
from dubito.experiment.tally import Tally, kept_tally
from dubito.store import folder as run_folder
from dubito.store.lock import LOCK
from dubito.store.merging import merge_into

_NAMED: Final = re.compile(FOLDER.format(r"(.+)", r"\d+", r"\d+")).fullmatch
_SAID: Final = 20  # missing shards that are named


def in_order(runs: Sequence[StoredRun]) -> list[StoredRun]:
    """All shards of one run, each once, whole and sound, in their order; raises UsageError naming what is not so."""
    for run in runs:
        if run.identity.shard is None:
            raise UsageError(f"{run} is a whole run and no shard: there is nothing to merge it with")
    by_number: dict[int, StoredRun] = {}
    for run in runs:
        if said := _difference(runs[0], run):
            raise UsageError(f"{runs[0]} and {run} are not of one run: {said}")
        number = shard_of(run).number
        if (twin := by_number.setdefault(number, run)) is not run:
            raise UsageError(f"{twin} and {run} are both shard {number}: leave one of them out")
        if run.kept != run.games:
            kept = f"{run.kept:,} of {run.games:,} games are kept"
            raise UsageError(f"{run} is unfinished: {kept}; the command that began it goes on")
    _check_gaps(by_number, shard_of(runs[0]).of)
    shards = [by_number[number] for number in sorted(by_number)]
    next_game = 0
    for run in shards:
        if run.first_game != next_game:
            raise UsageError(f"{run} is damaged: its first game is {run.first_game}, and should be {next_game}")
        run.db.check(next_game)
        next_game += run.games
    return shards


def _check_gaps(there: Mapping[int, object], of: int) -> None:
    missing = [f"{number}" for number in range(1, of + 1) if number not in there]
    if len(missing) == 1:
        raise UsageError(f"shard {missing[0]} of {of} is missing: play it, or name its folder too")
    if missing:
        few = ", ".join(missing[:_SAID]) + (", ..." if len(missing) > _SAID else "")
        raise UsageError(f"{len(missing)} of the {of} shards are missing ({few}): play them, or name their folders too")


def default_folder(shards: Sequence[StoredRun]) -> Path:
    """Where the whole run would lie if it had been played where its first shard was."""
    folder = shards[0].folder.resolve()
    named = _NAMED(folder.name)
    return shards[0].folder.parent / (named[1] if named else f"run-{shards[0].experiment().digest()}")


def merge(shards: Sequence[StoredRun], folder: Path) -> None:
    """Write the whole run of shards that are `in_order`, in one piece; raises UsageError or RunStopped."""
    shown = one_line(str(folder))
    if folder.exists() and (not folder.is_dir() or {path.name for path in folder.iterdir()} - {LOCK}):
        raise UsageError(f"{shown} is there already: choose another --out")
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        scratch = TemporaryDirectory(prefix=f".{folder.name}-", dir=folder.parent)
    except OSError as error:
        raise UsageError(f"cannot write {shown}: {error.strerror}; choose another --out") from None
    with scratch:
        draft = Path(scratch.name) / "run"
        try:
            draft.mkdir()
            _fill(draft, shards)
            if folder.exists():
                shutil.rmtree(folder)
            draft.replace(folder)
        except OSError as error:
            raise RunStopped(f"cannot write {shown}: {error.strerror}") from None


def _fill(folder: Path, shards: Sequence[StoredRun]) -> None:
    """Write database, counts and manifest of the whole run into a folder that is new."""
    first, sums = shards[0], dict[str, str]()
    everything = sum((run.tally for run in shards), Tally())
    for run in shards:
        for _ in run.db.outcomes():  # which compares them with their digests
            pass
    if complete := [run for run in shards if run.db.sums("complete") != "{}"]:
        whole = sum((kept_tally(run.db, run.game.results, "complete") for run in complete), Tally())
        sums["complete"] = whole.to_json()
    sums["all"] = everything.to_json()
    merge_into(folder / run_folder.DATABASE, [run.db.path for run in shards], sums)
    counts = all_games(everything, first.names, first.game)
    run_folder.write_whole(folder / run_folder.RESULTS, run_folder.to_yaml(counts))
    run_folder.write_whole(folder / run_folder.MANIFEST, run_folder.to_yaml(_manifest(shards)))


def _manifest(shards: Sequence[StoredRun]) -> dict[str, Any]:
    """The whole run's, as its shards have it; Pythons may differ, and are all said."""
    content = run_folder.read_manifest(shards[0].folder)
    identity = {key: value for key, value in content["identity"].items() if key != "shard"}
    pythons = {str(run.manifest.versions.get("python")) for run in shards}
    versions = {**shards[0].manifest.versions, "python": ", ".join(sorted(pythons))}
    return {"games": shard_of(shards[0]).games, "identity": identity, "versions": versions}


def shard_of(run: StoredRun) -> StoredShard:
    """Which shard a run is."""
    assert run.identity.shard is not None  # `in_order` has seen to it
    return run.identity.shard


def _difference(first: StoredRun, run: StoredRun) -> str | None:
    """In what two runs are no shards of one, if they are none: what was played, where it was cut, by what."""
    ours, theirs = _parts(first), _parts(run)
    for key in {**ours, **theirs}:
        if ours.get(key) != theirs.get(key):
            return run_folder.difference(key, ours.get(key), theirs.get(key), (f"in {first}", f"in {run}"))
    return None


def _parts(run: StoredRun) -> dict[str, Any]:
    """What all shards of one run have alike."""
    shard, identity = shard_of(run), run.identity.model_dump()
    del identity["shard"]
    cut = {"the number of shards": shard.of, "games of the whole run": shard.games}
    made = {"the version of dubito": run.manifest.versions.get("dubito"), "the engine (its digest)": shard.engine}
    return {**identity, **cut, **made}
