"""`dubito runs`: the runs that lie here, and how each stands.

`dubito export`: a run as one file that another machine replays.

`dubito report`: a run as pages.

`dubito status`: where a run stands, read from its folder, also while it is being played.

`dubito view`: a run's report in the browser.
"""

import time
import webbrowser
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click

from dubito.cli import documents
from dubito.cli.documents import ListedRun, RunsObject, RunState, StatusObject
from dubito.cli.options import folder_of, games_path_option, json_option, run_argument
from dubito.cli.output import GamesProgress, note, print_document, say, table
from dubito.errors import DubitoError, UsageError, one_line
from dubito.experiment.counts import GameCounts
from dubito.experiment.experiment import stand_ins_in_words
from dubito.experiment.stop import PairStanding, in_words, standings_of, stop_in_words
from dubito.experiment.stored import Run, kinds_in, only_read, opened_run
from dubito.files import write_whole
from dubito.game import PlayerKind
from dubito.llm.prices import PICO, dollars
from dubito.store import folder as run_folder
from dubito.store.folder import RUNS, is_policy, is_trial, last_written, manifest_of, no_such_run, pack, run_folders
from dubito.store.lock import is_claimed
from dubito.store.model_log import ModelLog, PlayerLog
from dubito.store.run_db import RunDb
from dubito.store.wave_log import WaveLog


@click.command()
@click.argument("folder", default=RUNS, type=click.Path(path_type=Path))
@json_option
def runs(folder: Path, as_json: bool) -> None:
    """List the runs in FOLDER, by default `runs`, the last written first."""
    if not folder.is_dir():
        raise UsageError(
            f"there is no folder {one_line(str(folder))}: `dubito demo` or `dubito run CONFIG` makes a run"
        )
    found = [_row_of_run(run) for run in run_folders(folder)]
    if as_json:
        print_document(RunsObject(runs=found))
        return
    headers = ["run", "game", "state", "games", "models", "cost", "last written"]
    table(f"{len(found)} runs in {one_line(str(folder))}", headers, [_cells(run) for run in found if run.fault is None])
    for run in found:
        if run.fault is not None:
            note(f"cannot be read: {run.fault}")


def state_of(run: Run) -> RunState:
    return "finished" if run.is_finished else "playing" if is_claimed(run.folder) else "stopped"


def _row_of_run(folder: Path) -> ListedRun:
    date = datetime.fromtimestamp(last_written(folder), UTC).strftime("%Y-%m-%d %H:%M")
    listed = partial(ListedRun, folder=str(folder), date=date)
    try:
        manifest = manifest_of(folder)
        if is_trial(manifest):
            return listed()
        if is_policy(manifest):
            return listed(game=str(manifest["identity"]["policy"]))
        with opened_run(folder) as run:
            costs = [log.picodollars for log in run.models.values()]
            known = [cost for cost in costs if cost is not None]
            return listed(
                game=run.planned.game,
                state=state_of(run),
                games=run.planned.games,
                kept=run.kept,
                models=[*run.models],
                kinds={name: run.kinds[name] for name in run.models},
                usd=sum(known) / PICO if known and len(known) == len(costs) else None,
            )
    except DubitoError as error:
        return listed(fault=one_line(str(error)))


def _cells(run: ListedRun) -> list[str]:
    if run.game is None or run.state is None:
        what = "a trial of prompts" if run.game is None else "policies"
        return [run.folder, run.game or "", what, "", "", "", run.date]
    games = f"{run.kept:,}" if run.kept == run.games else f"{run.kept:,} of {run.games:,}"
    cost = "" if not run.models else "no price" if run.usd is None else dollars(round(run.usd * PICO))
    models = ", ".join(f"{name} ({run.kinds[name]})" for name in run.models)
    return [run.folder, run.game, run.state, games, models, cost, run.date]


@click.command()
@click.argument("run", type=click.Path(path_type=Path))
@click.argument("file", required=False, type=click.Path(path_type=Path))
@click.option("--parquet", type=click.Path(path_type=Path), metavar="FOLDER",
              help="Write a dataset instead: games and models' decisions as Parquet files, with a card.")  # fmt: skip
@games_path_option
@click.option("--quiet", is_flag=True, help="Hide the progress line.")
def export(run: Path, file: Path | None, parquet: Path | None, quiet: bool) -> None:
    """Write the run in folder RUN into FILE, for `dubito replay FILE` elsewhere. Bots are not in it: they are code."""
    if (file is None) == (parquet is None):
        raise UsageError("say where to: a FILE for `dubito replay`, or --parquet FOLDER for a dataset")
    if file is not None and file.suffix.lower() not in ("", ".zip"):
        raise UsageError(
            f"{one_line(str(file))}: an export is a zip file: name it {one_line(file.with_suffix('.zip').name)}; "
            "pages, and tables as CSV and JSON, are written by `dubito report`"
        )
    if not run.exists():
        raise no_such_run(run, Path(RUNS))
    if file is None:
        assert parquet is not None
        _export_dataset(run, parquet, quiet)
        return
    pack(run, file, run_folder.first_game(run_folder.read_manifest(run)))
    say(f"written: {file}")


def _export_dataset(run: Path, parquet: Path, quiet: bool) -> None:
    from dubito.experiment.replay import run_to_replay
    from dubito.workshop.dataset import write_dataset

    with folder_of(run) as folder:
        kept = run_to_replay(folder)
        with kept.db, GamesProgress(kept.experiment.games, quiet, time.monotonic) as progress:
            progress(0)
            write_dataset(kept, parquet, progress)
    for mismatch in kept.mismatches:
        note(f"manifest mismatch: {mismatch}")
    say(f"written: {parquet}")


@click.command()
@run_argument
@click.option(
    "--output",
    metavar="FOLDER",
    type=click.Path(path_type=Path),
    help="The report. [default: RUN/report; of a file RUN-report]",
)
@click.option(
    "--games", metavar="N,N,...", help="Games to be opened turn by turn, or `all`. [default: the first and the longest]"
)
@click.option("--odds", is_flag=True, help="Play each on from all its turns, and show how it stood: seconds a game.")
def report(run: Path | None, output: Path | None, games: str | None, odds: bool) -> None:
    """Write RUN, by default the latest, as pages to be opened in a browser, with no network.

    The file of a saved game, of `dubito web` or with --save, is one page.
    """
    from dubito.cli.share import is_saved_game  # late: most commands write no page
    from dubito.report.site import write_report

    if is_saved_game(run):
        if games is not None or odds:
            flag = "--games chooses among a run's games" if games is not None else "--odds needs the bots of a run"
            raise UsageError(f"{flag}, and this is one saved game: leave it out")
        say(f"report: {_page_of_game(run, output or run.with_name(f'{run.name}-report'))}")
        return
    with folder_of(run) as folder:
        if run is not None and run.is_file() and output is None:
            output = run.with_name(f"{run.name}-report")
        _note_changed_game(folder)
        say(f"report: {write_report(folder, output=output, games=games, odds=odds)}")


def _page_of_game(game: Path, folder: Path) -> Path:
    """Write a saved game as the one page of that folder, and return it."""
    from dubito.cli.share import game_of_file
    from dubito.report.share import shared_page

    text = shared_page(game_of_file(game))
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"cannot write a report at {one_line(str(folder))}: {error.strerror}") from None
    write_whole(folder / "index.html", text)
    return folder / "index.html"


def _note_changed_game(folder: Path) -> None:
    with opened_run(folder) as run:
        if run.changed_game:
            note(f"manifest mismatch: {run.changed_game}")


@click.command()
@run_argument
@json_option
def status(run: Path | None, as_json: bool) -> None:
    """Say how far RUN is, by default the latest, what its models were asked, and what they cost.

    Of a trial of prompts, or of policies: what was asked, and what it cost.
    """
    with folder_of(run) as folder:
        _status_of(folder, str(run or folder), as_json)


def _status_of(folder: Path, name: str, as_json: bool) -> None:
    manifest = run_folder.manifest_of(folder)
    if run_folder.is_policy(manifest):
        _status_of_policies(folder, name, manifest["identity"], as_json)
        return
    if not (folder / run_folder.DATABASE).exists():
        raise UsageError(f"{one_line(name)} has no {run_folder.DATABASE}")
    if run_folder.is_trial(manifest):
        with only_read(), RunDb.open(folder / run_folder.DATABASE) as db:
            _status_of_trial(ModelLog(db), name, kinds_in(manifest), as_json)
        return
    with opened_run(folder) as run:
        log = ModelLog(run.db)
        counts = run.counts
        pairs = standings_of(run)
        found = _status_object(
            name,
            log,
            run.kinds,
            games=run.planned.games,
            kept=counts.counted,
            finished=counts.finished,
            state=state_of(run),
            pairs=documents.pair_statuses(pairs),
            replies=counts.replies if log.players() else None,
            results_digest=run.results_digest if counts.counted else None,
            **_awaited(WaveLog(log)),
        )
        if as_json:
            print_document(found)
            return
        _say_plan(run)
        say(f"state: {'being played' if found.state == 'playing' else found.state}")
        _say_pairs(run, pairs)
        if log.players():
            say(f"so far: {counts}")
        _say_models(log, run.kinds, "games")
        _say_awaited(found)
        _say_digest(found, counts)


def _say_plan(run: Run) -> None:
    """Print what is played, and how many games are kept."""
    if stand_ins := stand_ins_in_words(run.kinds):
        say(stand_ins)
    if shard := run.planned.shard:
        say(f"shard: {shard}, from game {shard.first_game:,} on")
    at_most = "at most " if run.planned.stop else ""
    say(f"games: {run.counts.counted:,} of {at_most}{run.planned.games:,} kept")
    if run.planned.stop:
        say(f"stops: {stop_in_words(run.planned, run.game)}")


def _say_pairs(run: Run, pairs: Sequence[PairStanding]) -> None:
    for pair in pairs:
        say(in_words(pair, run.planned))


def _status_of_trial(log: ModelLog, name: str, kinds: Mapping[str, PlayerKind], as_json: bool) -> None:
    if as_json:
        print_document(_status_object(name, log, kinds, trial=True))
        return
    say("a trial of prompts: no game was played")
    _say_models(log, {}, "positions")  # its names are those of prompts


def _status_of_policies(folder: Path, name: str, identity: Mapping[str, Any], as_json: bool) -> None:
    """What the models among the players of `dubito policy` were asked; each is kept in a folder of its own."""
    with ExitStack() as stack:
        files = sorted(folder.glob(f"*/{run_folder.DATABASE}"), key=lambda file: int(file.parent.name))
        logs = [ModelLog(stack.enter_context(RunDb.open(file))) for file in files]
        kinds = {name: kind for file in files for name, kind in kinds_in(run_folder.manifest_of(file.parent)).items()}
        if as_json:
            models = {player: log.player(player) for log in logs for player in log.players()}
            failed = sum((Counter(log.failures()) for log in logs), Counter[str]())
            print_document(
                StatusObject(folder=name, models=documents.model_uses(models, kinds), failed_calls=dict(failed))
            )
            return
        say(f"policies for {one_line(str(identity['policy']))}: no game was played")
        if stand_ins := stand_ins_in_words(kinds):
            say(stand_ins)
        for log in logs:
            _say_models(log, kinds, "states")


def _status_object(name: str, log: ModelLog, kinds: Mapping[str, PlayerKind], **of_run: Any) -> StatusObject:
    models = documents.model_uses({player: log.player(player) for player in log.players()}, kinds)
    return StatusObject(folder=name, models=models, failed_calls=log.failures(), **of_run)


def _awaited(kept: WaveLog) -> dict[str, Any]:
    """What a run with `wait` waits for."""
    batches = [
        documents.AwaitedBatch(
            account=batch.account,
            id=batch.id,
            requests=batch.entries,
            since=_moment(batch.since),
            expires=None if batch.expires is None else _moment(batch.expires),
        )
        for batch in kept.batches()
    ]
    return {"awaited": batches, "to_be_sent": len(kept.open())}


def _moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M")


def _say_awaited(found: StatusObject) -> None:
    alike = defaultdict[tuple[str, bool], list[documents.AwaitedBatch]](list)
    for batch in found.awaited:
        alike[batch.account, batch.id is None].append(batch)
    for (account, unknown), batches in alike.items():
        known = (
            "not known to be there: looked for, or taken as lost, when the run goes on"
            if unknown
            else one_line(str(batches[0].id))
        )
        more = f" and {len(batches) - 1:,} more" if len(batches) > 1 and not unknown else ""
        ends = sorted(batch.expires for batch in batches if batch.expires)
        until = f", expires {ends[0]}" if ends else ""
        to = f"{sum(batch.requests for batch in batches):,} requests to {one_line(account)}"
        say(f"awaited: {to} since {min(batch.since for batch in batches)}{until} (UTC; {known}{more})")
    if found.to_be_sent:
        say(f"to be sent with the next wave: {found.to_be_sent:,} requests")


def _say_digest(found: StatusObject, counts: GameCounts) -> None:
    """Print the results digest, and which games it covers where more are finished."""
    if not counts.counted:
        say("results digest: none, since no game is counted yet")
        return
    of = "" if counts.counted == counts.finished else f" of the first {counts.counted:,} games"
    say(f"results digest{of}: {found.results_digest}")


def _cost(own: PlayerLog) -> str:
    if own.picodollars is None or own.billed is None:
        return "no price is known"
    if not own.assumed:
        return dollars(own.picodollars)
    apart = f"{dollars(own.billed)} billed, {dollars(own.likely)} assumed, which a budget counts as"
    return f"{dollars(own.picodollars)} ({apart} {dollars(own.at_worst)})"


def _say_models(log: ModelLog, kinds: Mapping[str, PlayerKind], places: str) -> None:
    from dubito.report.tables import cell_text

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
        if own.under_other_names:
            say(f"  answered by: {', '.join(f'{one_line(model)} ({count:,})' for model, count in own.ids.items())}")
        if own.beyond:
            say(f"  calls that used more than was reserved: {own.beyond:,}. The first: {own.first_beyond}")
    for kind, count in sorted(log.failures().items()):
        say(f"failed calls, {kind}: {count:,}")


@click.command()
@run_argument
@click.option("--port", type=click.IntRange(0, 65535), help="Serve it on loopback until Ctrl-C; 0 takes a free port.")
@click.option("--browser/--no-browser", default=True, show_default=True, help="Open a browser window.")
def view(run: Path | None, port: int | None, browser: bool) -> None:
    """Open the report of RUN, by default the latest, in the browser.

    It is written first where there is none, or where the run has gone on since. An exported file is served, and so is
    the file of a saved game.
    """
    with _first_page(run) as index:
        copied = run is not None and run.is_file()
        if port is None and not copied:
            say(f"report: {index}")
            _open(index.resolve().as_uri(), browser)
            return
        with _server(index.parent, port or 0) as server:
            address = f"http://127.0.0.1:{server.server_address[1]}/"
            say(f"report: {address} (Ctrl-C ends)")
            _open(address, browser)
            server.serve_forever()


@contextmanager
def _first_page(run: Path | None) -> Iterator[Path]:
    """That of a run's report, or a saved game as a page, for as long as it is shown."""
    from dubito.cli.share import is_saved_game

    if is_saved_game(run):
        with TemporaryDirectory(prefix="dubito-") as folder:
            yield _page_of_game(run, Path(folder))
    else:
        with folder_of(run) as folder:
            yield _current_report(folder)


def _current_report(folder: Path) -> Path:
    from dubito.report.site import FOLDER, write_report

    index = folder / FOLDER / "index.html"
    if not index.exists() or index.stat().st_mtime < last_written(folder):
        _note_changed_game(folder)
        write_report(folder)
    return index


def _open(address: str, browser: bool) -> None:
    if browser and not webbrowser.open(address):
        note("no browser could be opened here: open that address in one")


class _Pages(SimpleHTTPRequestHandler):
    """Serves a folder, and says nothing of it."""

    def log_message(self, format: str, *args: Any) -> None:
        """A request was answered."""


def _server(folder: Path, port: int) -> ThreadingHTTPServer:
    try:
        return ThreadingHTTPServer(("127.0.0.1", port), partial(_Pages, directory=str(folder)))
    except OSError as error:
        raise UsageError(f"cannot serve on port {port}: {error.strerror}; choose another --port") from None
