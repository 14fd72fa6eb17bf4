"""Shards: a run cut at chunk borders, each played apart into a folder of its own, and joined again into the run that
one machine would have made.
"""

import re
import shutil
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any, Final

from dubito.errors import RunStopped, UsageError, one_line
from dubito.experiment.experiment import Experiment, Shard
from dubito.experiment.play import DEALS_PER_CHUNK, chunk_numbers, first_game_of_chunk
from dubito.experiment.stored import Run, opened_run
from dubito.files import write_whole
from dubito.game.find import Registry
from dubito.llm.budget import Caps
from dubito.llm.prices import PICO, dollars
from dubito.stats.ranking import all_games
from dubito.stats.tally import Tally, load_tally
from dubito.store import folder as run_folder
from dubito.store.lock import LOCK, RunLog, draft_folder
from dubito.store.model_log import Spend
from dubito.store.run_db import RunDb, merge_into

FOLDER_NAME: Final = "{}-shard-{}-of-{}"  # of the whole run's name, the shard's number, and how many there are
_match_shard: Final = re.compile(r"([0-9]{1,9})/([0-9]{1,9})").fullmatch


def parse_shard(text: str) -> tuple[int, int]:
    """`3/16` as the third of sixteen; raises UsageError."""
    found = _match_shard(text.strip())
    number, of = map(int, found.groups()) if found else (0, 0)
    if not of:
        raise UsageError(f"--shard: say it as 3/16, the third of sixteen, not {one_line(repr(text), 60)}")
    if not 1 <= number <= of:
        raise UsageError(f"--shard {number}/{of}: the shards of {of} are 1/{of} to {of}/{of}")
    return number, of


def cut_shard(experiment: Experiment, number: int, of: int, registry: Registry) -> Experiment:
    """One of so many shards, as even as whole chunks can be; raises UsageError if there are fewer chunks."""
    if experiment.stop is not None:
        raise UsageError(f"--shard {number}/{of}: a run that stops when decided is played in one place: leave it out")
    chunks = chunk_numbers(experiment)
    if of > len(chunks):
        has = f"{len(chunks):,} chunks of {DEALS_PER_CHUNK:,}, each played in one place: at most {len(chunks):,} shards"
        alone = f"no more than the {DEALS_PER_CHUNK:,} that are played in one place: it cannot be cut"
        raise UsageError(
            f"--shard {number}/{of}: this run of {experiment.deals:,} deals has {alone if len(chunks) == 1 else has}"
        )
    first, end = (first_game_of_chunk(experiment, len(chunks) * place // of) for place in (number - 1, number))
    shard = Shard(number, of, experiment.games, first)
    return replace(experiment, games=min(end, experiment.games) - first, shard=shard)


def caps_of_shard(caps: Caps, experiment: Experiment) -> Caps:
    if (shard := experiment.shard) is None:
        return caps
    return caps.share(shard.first_game, shard.first_game + experiment.games, shard.games)


class IncompleteShards(UsageError):
    """Some shards of a run are missing or unfinished; `shards` are those that are there."""

    def __init__(self, text: str, shards: Sequence[Run]) -> None:
        super().__init__(text)
        self.shards = shards


def describe_spending(shards: Sequence[Run], caps: Caps) -> list[str]:
    """What shards with model players have spent, and, by the run's caps, what is left for each that is unfinished."""
    spent = sum((run.spent for run in shards), Spend())
    if not spent.calls:
        return []
    of, money = shard_of(shards[0]).of, f", {dollars(spent.usd)}" if spent.usd or caps.usd is not None else ""
    said = [f"spent by {len(shards)} of {of} shards: {spent.calls:,} calls, {spent.tokens:,} tokens{money}"]
    if caps == Caps():
        return said
    if len(shards) < of:
        return [*said, "what is left of the budget is told where all shards are named"]
    left = caps.minus(spent)
    said.append(f"left of the budget: {left.describe()}")
    missing, before = sum(run.planned.games - run.kept for run in shards), 0
    for run in shards:
        if games := run.planned.games - run.kept:
            part = left.share(before, before + games, missing)
            before += games
            budget = _budget_for(run, part)
            shard = f"{shard_of(run).number}/{of}"
            said.append(
                f"to finish {run} with its share of that ({part.describe()}): --shard {shard} --budget {budget} "
                f"(--budget is for all {of} shards, of which this is one; "
                f"the run still spends at most {caps.describe()})"
            )
    return said


def _budget_for(run: Run, more: Caps) -> str:
    """The `--budget` of the whole run under which this shard may spend so much more than it has."""
    wholes = {}
    for name in ("usd", "calls", "tokens"):
        if (cap := getattr(more, name)) is not None:
            step = PICO // 10**6 if name == "usd" else 1
            may = cap + getattr(run.spent, name)
            whole = may * shard_of(run).games // run.planned.games // step * step
            while getattr(caps_of_shard(Caps(**{name: whole}), run.planned), name) > may:  # what is rounded up
                whole -= step
            wholes[name] = whole
    said = {name: f"{whole / PICO:.6f}" if name == "usd" else str(whole) for name, whole in wholes.items()}
    return ",".join(f"{name}={amount}" for name, amount in said.items())


_match_folder: Final = re.compile(FOLDER_NAME.format(r"(.+)", r"\d+", r"\d+")).fullmatch
_MAX_NAMED: Final = 20  # missing shards that are named


def read_shards(folders: Iterable[Path]) -> list[Run]:
    """All shards of one run, each once, whole and sound, in their order; their stores are closed again.

    Raises UsageError naming what is not so.
    """
    runs: dict[int, Run] = {}
    for folder in folders:
        run = _read_shard(folder)
        first, number = next(iter(runs.values()), run), shard_of(run).number
        if said := _find_difference(first, run):
            raise UsageError(f"{first} and {run} are not shards of the same run: {said}")
        if (twin := runs.setdefault(number, run)) is not run:
            raise UsageError(f"{twin} and {run} are both shard {number}: leave one of them out")
    for run in runs.values():
        if run.kept != run.planned.games:
            kept = f"{run.kept:,} of {run.planned.games:,} games are kept"
            text = f"{run} is unfinished: {kept}; finish it with the command that began it"
            raise IncompleteShards(text, [one for _, one in sorted(runs.items())])
    shards, next_game = [run for _, run in sorted(runs.items())], 0
    _check_gaps(runs, shard_of(shards[0]).of)
    for run in shards:
        if run.planned.first_game != next_game:
            raise UsageError(f"{run} is damaged: its first game is {run.planned.first_game}, and should be {next_game}")
        next_game += run.planned.games
    return shards


def _read_shard(folder: Path) -> Run:
    """The shard in this folder, its sums read; a thousand of them could not all stay open."""
    with opened_run(folder) as run:
        if run.planned.shard is None:
            raise UsageError(f"{run} is a whole run and no shard: there is nothing to merge it with")
        run.db.check(run.planned.first_game)
        assert run.kept == run.tally.games  # `kept_tally` has seen to it; both are read now
        _ = run.spent
    return run


def _check_gaps(there: Mapping[int, Run], of: int) -> None:
    shards = [run for _, run in sorted(there.items())]
    absent = of - len([number for number in there if 1 <= number <= of])
    missing = [f"{number}" for number in islice((n for n in range(1, of + 1) if n not in there), _MAX_NAMED)]
    if absent == 1:
        raise IncompleteShards(f"shard {missing[0]} of {of} is missing: play it, or name its folder too", shards)
    if absent:
        few = ", ".join(missing) + (", ..." if absent > _MAX_NAMED else "")
        text = f"{absent} of the {of} shards are missing ({few}): play them, or name their folders too"
        raise IncompleteShards(text, shards)


def default_folder(shards: Sequence[Run]) -> Path:
    folder = shards[0].folder.resolve()
    named = _match_folder(folder.name)
    return shards[0].folder.parent / (named[1] if named else f"run-{shards[0].experiment.digest()}")


def merge(shards: Sequence[Run], folder: Path) -> None:
    """Write the whole run of shards that `read_shards` gave, in one piece; raises UsageError or RunStopped."""
    shown = one_line(str(folder))
    if folder.exists() and (not folder.is_dir() or {path.name for path in folder.iterdir()} - {LOCK}):
        raise UsageError(f"{shown} is there already: choose another --output")
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
    """Write database, counts and manifest of the whole run into a folder that is new."""
    first, complete = shards[0], Tally()
    everything = sum((run.tally for run in shards), Tally())
    for run in shards:
        with RunDb.open(run.db.path) as db:
            complete += load_tally(db, first.game.results, "complete")
            try:
                deque(db.outcomes(), maxlen=0)  # reading them compares them with their digests
            except RunStopped as error:
                raise UsageError(str(error)) from None
    sums = {"all": everything.to_json()}
    if complete.games:
        sums["complete"] = complete.to_json()
    merge_into(folder / run_folder.DATABASE, [run.db.path for run in shards], sums)
    counts = all_games(everything, first.names, first.game)
    write_whole(folder / run_folder.RESULTS, run_folder.to_yaml(counts))
    run_folder.save_manifest(folder, _build_manifest(shards))
    RunLog(folder)("merged", shards=[str(run.folder) for run in shards])


def _build_manifest(shards: Sequence[Run]) -> dict[str, Any]:
    """The whole run's, as its shards have it; Pythons may differ, and are all said."""
    identity = {key: value for key, value in shards[0].identity.items() if key != "shard"}
    pythons = {str(run.versions.get("python")) for run in shards}
    versions = {**shards[0].versions, "python": ", ".join(sorted(pythons))}
    return {"games": shard_of(shards[0]).games, "identity": identity, "versions": versions}


def shard_of(run: Run) -> Shard:
    assert run.planned.shard is not None  # `read_shards` has seen to it
    return run.planned.shard


def _find_difference(first: Run, run: Run) -> str | None:
    """In what two runs are no shards of one, if they are none: what was played, where it was cut, by what."""
    ours, theirs = _shared_settings(first), _shared_settings(run)
    for key in {**ours, **theirs}:
        if ours.get(key) != theirs.get(key):
            return run_folder.describe_difference(key, ours.get(key), theirs.get(key), (f"in {first}", f"in {run}"))
    return None


def _shared_settings(run: Run) -> dict[str, Any]:
    shard, identity = shard_of(run), {key: value for key, value in run.identity.items() if key != "shard"}
    cut = {"the number of shards": shard.of, "games of the whole run": shard.games}
    made = {"the version of dubito": run.versions.get("dubito")}
    return {**run_folder.without_key_names(identity), **cut, **made}
