"""`dubito status`: where a run stands, read from its folder, also while it is being played."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from dubito.cli.output import percent, say
from dubito.errors import UsageError, one_line
from dubito.experiment.course import standing
from dubito.llm.prices import dollars
from dubito.store import folder as run_folder
from dubito.store.lock import is_claimed
from dubito.store.model_log import ModelLog
from dubito.store.run_db import RunDb


@click.command()
@click.argument("run", type=click.Path(path_type=Path))
def status(run: Path) -> None:
    """Say how far the run in folder RUN is, and what its models were asked and did cost.

    Of a trial of prompts: what was asked, and what it did cost.
    """
    manifest = run_folder.manifest_of(run)
    trial = run_folder.is_trial(manifest)
    if not (run / run_folder.DATABASE).exists():
        raise UsageError(f"{one_line(str(run))} has no {run_folder.DATABASE}")
    with RunDb.open(run / run_folder.DATABASE) as db:
        if trial:
            say("a trial of prompts: no game was played")
        else:
            _games(db, manifest, is_claimed(run))
        _models(ModelLog(db), "positions" if trial else "games")
        if not trial:
            say(f"results digest: {db.results_digest()}")


def _games(db: RunDb, manifest: Mapping[str, Any], playing: bool) -> None:
    log, games = ModelLog(db), manifest.get("games")
    first = run_folder.first_game(manifest)
    so_far = standing(log, len(manifest["identity"].get("contenders") or ()) or 1, first) if log.players() else None
    kept = db.games() if so_far is None else so_far.kept
    if shard := manifest["identity"].get("shard"):
        say(f"shard: {shard.get('number')} of {shard.get('of')}, from game {first:,} on")
    say(f"games: {kept:,} of {games:,} kept" if isinstance(games, int) else f"games: {kept:,} kept")
    say(f"state: {'finished' if db.games() == games else 'being played' if playing else 'stopped'}")
    if so_far is not None:
        say(f"so far: {so_far}")


def _models(log: ModelLog, places: str) -> None:
    for name in log.players():
        own = log.player(name)
        say(f"{one_line(name)}: {own.decisions:,} decisions in {own.games:,} {places}, {own.calls:,} calls, "
            f"cache {percent(own.cached / own.attempts if own.attempts else None)} %")  # fmt: skip
        for outcome, count in sorted(own.outcomes.items()):
            say(f"  {outcome}: {count:,}")
        tokens = ", ".join(f"{kind} {count:,}" for kind, count in own.tokens.items())
        say(f"  tokens: {tokens}")
        spent = "no price is known" if own.picodollars is None else dollars(own.picodollars)
        say(f"  cost: {spent}; calls counted at their worst case: {own.assumed:,}")
        if own.beyond:
            say(f"  calls that used more than was reserved: {own.beyond:,}; of the first {own.first_beyond}")
    for kind, count in sorted(log.failures().items()):
        say(f"failed calls, {kind}: {count:,}")
