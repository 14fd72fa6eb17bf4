"""Shards: parts of a run that are played in separate folders and then merged.

The merged run is the one that a single machine would produce. Runs are cut between chunks.
"""

import re
import shutil
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any, Final

from dubito.errors import RunStopped, UsageError, one_line
from dubito.experiment.experiment import FOLDER_NAME, Experiment, Shard
from dubito.experiment.play import DEALS_PER_CHUNK, chunk_numbers, first_game_of_chunk
from dubito.experiment.stored import Run, open_recorded_run
from dubito.files import write_whole
from dubito.stats.ranking import all_games
from dubito.stats.tally import Tally, load_tally
from dubito.store import folder as run_folder
from dubito.store.lock import LOCK, RunLog, draft_folder
from dubito.store.run_db import RunDb, merge_into
from dubito.store.spend import PICO, Caps, Spend, dollars

_match_shard: Final = re.compile(r"([0-9]{1,9})/([0-9]{1,9})").fullmatch


def parse_shard(text: str) -> tuple[int, int]:
    """Parse a shard such as `3/16`, the third of sixteen. Raises UsageError."""
    match = _match_shard(text.strip())
    number, of = map(int, match.groups()) if match else (0, 0)
    if not of:
        raise UsageError(
            f"--shard: must be a number such as 3/16, the third of sixteen, not {one_line(repr(text), 60)}"
        )
    if not 1 <= number <= of:
        raise UsageError(f"--shard {number}/{of}: must be from 1/{of} to {of}/{of}")
    return number, of


def cut_shard(experiment: Experiment, number: int, of: int) -> Experiment:
    """Return one of `of` shards of about equal size. Raises UsageError if the run has fewer chunks."""
    if experiment.stop is not None:
        raise UsageError(f"--shard {number}/{of}: a run with `stop` cannot be split", hint="remove --shard")
    chunks = chunk_numbers(experiment)
    if of > len(chunks):
        limit = "it cannot be split" if len(chunks) == 1 else f"it has at most {len(chunks):,} shards"
        raise UsageError(
            f"--shard {number}/{of}: this run has {experiment.deals:,} deals, and each chunk of {DEALS_PER_CHUNK:,} is "
            f"played on one machine: {limit}"
        )
    first, end = (first_game_of_chunk(experiment, len(chunks) * place // of) for place in (number - 1, number))
    shard = Shard(number, of, experiment.games, first)
    return replace(experiment, games=min(end, experiment.games) - first, shard=shard)


def caps_of_shard(caps: Caps, experiment: Experiment) -> Caps:
    if (shard := experiment.shard) is None:
        return caps
    return caps.share(shard.first_game, shard.first_game + experiment.games, shard.games)


class IncompleteShards(UsageError):
    """Some shards of a run are missing or unfinished. `shards` lists those that exist."""

    def __init__(self, text: str, shards: Sequence[Run]) -> None:
        super().__init__(text)
        self.shards = shards


def describe_spending(shards: Sequence[Run], caps: Caps) -> list[str]:
    """Describe what shards with model players have spent, and the remaining budget of each unfinished one."""
    spent = sum((run.spent for run in shards), Spend())
    if not spent.calls:
        return []
    of, money = shard_of(shards[0]).of, f", {dollars(spent.usd)}" if spent.usd or caps.usd is not None else ""
    sentences = [f"spent by {len(shards)} of {of} shards: {spent.calls:,} calls, {spent.tokens:,} tokens{money}"]
    if caps == Caps():
        return sentences
    if len(shards) < of:
        return [*sentences, "name all shards to see how much of the budget is left"]
    remaining = caps.subtract(spent)
    sentences.append(f"left of the budget: {remaining.describe()}")
    missing, before = sum(run.planned.games - run.game_count for run in shards), 0
    for run in shards:
        if games := run.planned.games - run.game_count:
            part = remaining.share(before, before + games, missing)
            before += games
            budget = _format_budget_flag(run, part)
            shard = f"{shard_of(run).number}/{of}"
            sentences.append(
                f"to finish {run} with its share ({part.describe()}): --shard {shard} --budget {budget} "
                f"(--budget applies to all {of} shards together; this run still spends at most {caps.describe()})"
            )
    return sentences


def _format_budget_flag(run: Run, more: Caps) -> str:
    """Return the `--budget` of the whole run that allows this shard to spend `more`."""
    wholes = {}
    for name in ("usd", "calls", "tokens"):
        if (cap := more.limits.get(name)) is not None:
            step = PICO // 10**6 if name == "usd" else 1
            limit = cap + run.spent.amounts[name]
            whole = limit * shard_of(run).games // run.planned.games // step * step
            # Shares are rounded up.
            while caps_of_shard(Caps(**{name: whole}), run.planned).limits[name] > limit:
                whole -= step
            wholes[name] = whole
    amounts = {name: f"{whole / PICO:.6f}" if name == "usd" else str(whole) for name, whole in wholes.items()}
    return ",".join(f"{name}={amount}" for name, amount in amounts.items())


_match_folder: Final = re.compile(FOLDER_NAME.format(r"(.+)", r"\d+", r"\d+")).fullmatch
_MAX_NAMED: Final = 20  # maximum number of missing shards in a message


def read_shards(folders: Iterable[Path]) -> list[Run]:
    """Read all shards of a run, in order, and close their stores.

    Raises UsageError if a shard is missing, unfinished, damaged, listed twice, or from another run.
    """
    runs: dict[int, Run] = {}
    for folder in folders:
        # Read the shard and its sums, and close its store, since a thousand stores could not stay open.
        with open_recorded_run(folder) as run:
            if run.planned.shard is None:
                raise UsageError(f"{run} is a whole run, not a shard, so it cannot be merged")
            run.db.check(run.planned.first_game)
            assert run.game_count == run.tally.games  # checked by `load_tally`; reads and caches both
            _ = run.spent
        first, number = next(iter(runs.values()), run), shard_of(run).number
        ours, theirs = _shared_settings(first), _shared_settings(run)
        for key in {**ours, **theirs}:
            if ours.get(key) != theirs.get(key):
                places = (f"in {first}", f"in {run}")
                difference = run_folder.describe_difference(key, ours.get(key), theirs.get(key), places)
                raise UsageError(f"{first} and {run} are not shards of the same run: {difference}")
        if (twin := runs.setdefault(number, run)) is not run:
            raise UsageError(f"{twin} and {run} are both shard {number}", hint="remove one of them")
    for run in runs.values():
        if run.game_count != run.planned.games:
            games = f"{run.game_count:,} of {run.planned.games:,} games are counted"
            text = f"{run} is unfinished: {games}; finish it with the command that started it"
            raise IncompleteShards(text, [shard for _, shard in sorted(runs.items())])
    shards, next_game = [run for _, run in sorted(runs.items())], 0
    of = shard_of(shards[0]).of
    absent = of - len([number for number in runs if 1 <= number <= of])
    missing = [f"{number}" for number in islice((n for n in range(1, of + 1) if n not in runs), _MAX_NAMED)]
    if absent == 1:
        raise IncompleteShards(f"shard {missing[0]} of {of} is missing: play it, or add its folder", shards)
    if absent:
        few = ", ".join(missing) + (", ..." if absent > _MAX_NAMED else "")
        text = f"{absent} of the {of} shards are missing ({few}): play them, or add their folders"
        raise IncompleteShards(text, shards)
    for run in shards:
        if run.planned.first_game != next_game:
            raise UsageError(f"{run} is damaged: its first game is {run.planned.first_game} but should be {next_game}")
        next_game += run.planned.games
    return shards


def default_folder(shards: Sequence[Run]) -> Path:
    folder = shards[0].folder.resolve()
    match = _match_folder(folder.name)
    return shards[0].folder.parent / (match[1] if match else f"run-{shards[0].experiment.digest()}")


def merge(shards: Sequence[Run], folder: Path) -> None:
    """Write the whole run from the shards that `read_shards` returned, atomically. Raises UsageError or RunStopped."""
    shown = one_line(str(folder))
    if folder.exists() and (not folder.is_dir() or {path.name for path in folder.iterdir()} - {LOCK}):
        raise UsageError(f"{shown} already exists", hint="choose another --output")
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"cannot write {shown}: {error.strerror}; choose another --output") from None
    with draft_folder(folder, "--output") as scratch:
        draft = scratch / "run"
        try:
            draft.mkdir()
            _write_run(draft, shards)
            if folder.exists():
                shutil.rmtree(folder)
            draft.replace(folder)
        except OSError as error:
            raise RunStopped(f"cannot write {shown}: {error.strerror}") from None


def _write_run(folder: Path, shards: Sequence[Run]) -> None:
    """Write the database, counts and manifest of the whole run into a new folder."""
    first, complete = shards[0], Tally()
    everything = sum((run.tally for run in shards), Tally())
    for run in shards:
        with RunDb.open(run.db.path) as db:
            complete += load_tally(db, first.game.results, "complete")
            try:
                deque(db.outcomes(), maxlen=0)  # reading the outcomes checks their digests
            except RunStopped as error:
                raise UsageError(str(error)) from None
    if (config := first.folder / run_folder.CONFIG).is_file():
        shutil.copyfile(config, folder / run_folder.CONFIG)
    sums = {"all": everything.to_json()}
    if complete.games:
        sums["complete"] = complete.to_json()
    merge_into(folder / run_folder.DATABASE, [run.db.path for run in shards], sums)
    counts = all_games(everything, first.names, first.game)
    write_whole(folder / run_folder.RESULTS, run_folder.to_yaml(counts))
    # The manifest has every version of Python that a shard used.
    identity = {key: value for key, value in first.identity.items() if key != "shard"}
    pythons = {str(run.versions.get("python")) for run in shards}
    versions = {**first.versions, "python": ", ".join(sorted(pythons))}
    manifest = {"games": shard_of(first).games, "identity": identity, "versions": versions}
    run_folder.save_manifest(folder, manifest)
    RunLog(folder)("merged", shards=[str(run.folder) for run in shards])


def shard_of(run: Run) -> Shard:
    assert run.planned.shard is not None  # checked by `_read_shard`
    return run.planned.shard


def _shared_settings(run: Run) -> dict[str, Any]:
    shard, identity = shard_of(run), {key: value for key, value in run.identity.items() if key != "shard"}
    cut = {"the number of shards": shard.of, "the number of games in the whole run": shard.games}
    software = {"the version of dubito": run.versions.get("dubito")}
    return {**run_folder.without_key_names(identity), **cut, **software}
