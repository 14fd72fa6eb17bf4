"""`dubito status`: where a run stands, read from its folder, also while it is being played."""

from collections import Counter
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import click

from dubito.cli import result_objects
from dubito.cli.documents import StatusObject
from dubito.cli.options import json_option
from dubito.cli.output import print_document, say
from dubito.cli.runs import state_of
from dubito.cli.which_run import folder_of, run_argument
from dubito.errors import UsageError, one_line
from dubito.experiment.experiment import contender_seats, stand_ins_in_words
from dubito.experiment.progress import Standing, standing
from dubito.experiment.stored import check_manifest, kinds_in, only_read
from dubito.game import PlayerKind
from dubito.llm.prices import dollars
from dubito.report.tables import cell_text
from dubito.store import folder as run_folder
from dubito.store.lock import is_claimed
from dubito.store.model_log import ModelLog, PlayerLog
from dubito.store.run_db import RunDb


@click.command()
@run_argument
@json_option
def status(run: Path | None, as_json: bool) -> None:
    """Say how far RUN is, by default the latest, what its models were asked, and what they cost.

    Of a trial of prompts, or of policies: what was asked, and what it cost.
    """
    with folder_of(run) as folder:
        _status(folder, str(run or folder), as_json)


def _status(run: Path, name: str, as_json: bool) -> None:
    manifest = run_folder.manifest_of(run)
    if run_folder.is_policy(manifest):
        _policies(run, name, manifest["identity"], as_json)
        return
    trial = run_folder.is_trial(manifest)
    if not (run / run_folder.DATABASE).exists():
        raise UsageError(f"{one_line(name)} has no {run_folder.DATABASE}")
    if not trial:
        check_manifest(run)
    with only_read(), RunDb.open(run / run_folder.DATABASE) as db:
        log = ModelLog(db)
        so_far = None if trial else _standing(log, manifest)
        kinds = kinds_in(manifest)
        found = _document(name, db, manifest, so_far, is_claimed(run))
        if as_json:
            print_document(found)
            return
        if trial:
            kinds = {}  # its names are those of prompts
            say("a trial of prompts: no game was played")
        else:
            if stand_ins := stand_ins_in_words(kinds):
                say(stand_ins)
            _games(found, manifest, so_far)
        _models(log, kinds, "positions" if trial else "games")
        if not trial:
            _digest(found, db.game_count())


def _policies(folder: Path, name: str, identity: Mapping[str, Any], as_json: bool) -> None:
    """What the models among the players of `dubito policy` were asked; each is kept in a folder of its own."""
    with ExitStack() as stack:
        files = sorted(folder.glob(f"*/{run_folder.DATABASE}"), key=lambda file: int(file.parent.name))
        logs = [ModelLog(stack.enter_context(RunDb.open(file))) for file in files]
        kinds = {name: kind for file in files for name, kind in kinds_in(run_folder.manifest_of(file.parent)).items()}
        if as_json:
            models = {player: log.player(player) for log in logs for player in log.players()}
            failed = sum((Counter(log.failures()) for log in logs), Counter[str]())
            print_document(
                StatusObject(
                    folder=name,
                    trial=False,
                    games=None,
                    kept=None,
                    state=None,
                    replies=None,
                    results_digest=None,
                    models=result_objects.models(models, kinds),
                    failed_calls=dict(failed),
                )
            )
            return
        say(f"policies for {one_line(str(identity['policy']))}: no game was played")
        if stand_ins := stand_ins_in_words(kinds):
            say(stand_ins)
        for log in logs:
            _models(log, kinds, "states")


def _standing(log: ModelLog, manifest: Mapping[str, Any]) -> Standing | None:
    identity = manifest["identity"]
    games = len(identity.get("contenders") or ()) * contender_seats(identity.get("table_sizes") or ())  # a deal
    return standing(log, max(1, games), run_folder.first_game(manifest)) if log.players() else None


def _document(
    name: str, db: RunDb, manifest: Mapping[str, Any], so_far: Standing | None, playing: bool
) -> StatusObject:
    log, trial, said = ModelLog(db), run_folder.is_trial(manifest), manifest.get("games")
    games = said if isinstance(said, int) else None
    kept = db.game_count() if so_far is None else so_far.kept
    return StatusObject(
        folder=name,
        trial=trial,
        games=None if trial else games,
        kept=None if trial else kept,
        state=None if trial else state_of(db.game_count(), games, playing),
        replies=None if so_far is None else so_far.replies,
        results_digest=db.results_digest() if db.game_count() and not trial else None,
        models=result_objects.models({player: log.player(player) for player in log.players()}, kinds_in(manifest)),
        failed_calls=log.failures(),
    )


def _digest(found: StatusObject, published: int) -> None:
    """A run that is being played, or was killed, has not published all that it kept."""
    if not published:
        say("results digest: none, since no game is published")
        return
    of = "" if published == found.kept else f" of the first {published:,} games"
    say(f"results digest{of}: {found.results_digest}")


def _games(found: StatusObject, manifest: Mapping[str, Any], so_far: Standing | None) -> None:
    if shard := manifest["identity"].get("shard"):
        first = run_folder.first_game(manifest)
        say(f"shard: {shard.get('number')} of {shard.get('of')}, from game {first:,} on")
    say(f"games: {found.kept:,}{'' if found.games is None else f' of {found.games:,}'} kept")
    say(f"state: {'being played' if found.state == 'playing' else found.state}")
    if so_far is not None:
        say(f"so far: {so_far}")


def _cost(own: PlayerLog) -> str:
    if own.picodollars is None or own.billed is None:
        return "no price is known"
    if not own.assumed:
        return dollars(own.picodollars)
    apart = f"{dollars(own.billed)} billed, {dollars(own.likely)} assumed, which a budget counts as"
    return f"{dollars(own.picodollars)} ({apart} {dollars(own.at_worst)})"


def _models(log: ModelLog, kinds: Mapping[str, PlayerKind], places: str) -> None:
    for name in log.players():
        own = log.player(name)
        kind = " (stand-in)" if kinds.get(name) == "stand-in" else ""
        say(f"{one_line(name)}{kind}: {own.decisions:,} decisions in {own.games:,} {places}, {own.calls:,} calls, "
            f"cache {cell_text(own.cached / own.attempts if own.attempts else None, 'rate')} %")  # fmt: skip
        for outcome, count in sorted(own.outcomes.items()):
            say(f"  {outcome}: {count:,}")
        tokens = ", ".join(f"{kind} {count:,}" for kind, count in own.tokens.items())
        say(f"  tokens: {tokens}")
        say(f"  cost: {_cost(own)}; calls whose cost is not known: {own.assumed:,}")
        if own.beyond:
            say(f"  calls that used more than was reserved: {own.beyond:,}. The first: {own.first_beyond}")
    for kind, count in sorted(log.failures().items()):
        say(f"failed calls, {kind}: {count:,}")
