"""`dubito replay`: verify a saved game, a run or an exported run by replaying it."""

import time
from collections import deque
from contextlib import ExitStack
from itertools import zip_longest
from pathlib import Path

import click

from dubito.cli.narrator import Narrator
from dubito.cli.options import games_path_option, given_permits, open_run_folder, program_options
from dubito.cli.output import GamesProgress, note, say
from dubito.errors import UsageError, join_names, one_line
from dubito.experiment import replay as run_replay
from dubito.experiment.experiment import describe_claims
from dubito.experiment.replay import rebuild_table
from dubito.experiment.saved_config import continue_command
from dubito.experiment.stored import Run, read_replayable_run
from dubito.experiment.workers import default_workers
from dubito.files import read_text
from dubito.game.find import DUBITO, find_game
from dubito.game.reader import Reader, table_reader
from dubito.game.record import Records, read_game_name
from dubito.llm.recording import Differs
from dubito.llm.request import AttemptFailed, Place, Reply
from dubito.show.session import Session, session_of_record, table_moves
from dubito.store.folder import RESULTS, is_export


@click.command()
@click.argument("what", metavar="[RUN|FILE]", required=False, type=click.Path(path_type=Path))
@click.option("--game", type=int, metavar="K", help="Show game K of the run, with the models' requests and replies.")
@click.option("--show-hands", is_flag=True, help="With --game: show every hand, and what was really played.")
@click.option("--workers", type=click.IntRange(1), help="Processes. [default: one per core]")
@program_options
@click.option("--programs", is_flag=True, help="Also start the run's programs, and compare their answers.")
@games_path_option
@click.option("--quiet", is_flag=True, help="Hide the progress line.")
def replay(
    what: Path | None, game: int | None, show_hands: bool, workers: int | None, programs: bool, quiet: bool
) -> int:
    """Verify a run or a saved game by replaying it offline.

    RUN defaults to the latest run. It can be a file written by `dubito export`. No model is called. If anything
    differs, the first difference is printed and the exit code is 1.
    """
    if what is None or not what.is_file() or is_export(what):
        with open_run_folder(what) as folder:
            run = read_replayable_run(folder)
            if game is None:
                return _replay_run(run, workers, programs, quiet)
            if programs:
                raise UsageError("--programs replays all games", hint="leave out --game")
            return _show_game(run, game, show_hands)
    if game is not None or programs:
        raise UsageError("--game and --programs only work with runs", hint="give a run folder or an exported run")
    return _replay_record(what)


def _replay_run(run: Run, workers: int | None, programs: bool, quiet: bool) -> int:
    from dubito.experiment.ask_again import start_programs  # imported late: few replays start programs

    with ExitStack() as opened:
        started = opened.enter_context(start_programs(run, given_permits(), note)) if programs else {}
        progress = opened.enter_context(GamesProgress(run.experiment.games, quiet, time.monotonic))
        result = run_replay.replay(run, workers or default_workers(), progress, started)
    for mismatch in result.mismatches:
        note(f"manifest mismatch: {mismatch}")
    if result.difference is not None:
        say(f"differs: {result.difference}")
        for line in result.difference.details:
            say(one_line(line, 400))
        return 1
    say(f"identical: {result.games:,} games, {result.decisions:,} decisions")
    if result.games:
        say(f"results digest: {result.results_digest}")
    if run.planned.seed_sha256:
        say(f"seed: {run.secrecy_in_words}; it matches its SHA-256 in the manifest")
    if started:
        say(f"asked again, with identical answers: {join_names([one_line(name) for name in started])}")
    claims = describe_claims({name: kind for name, kind in run.planned.claiming_kinds.items() if name not in started})
    if result.games and claims:
        note(claims)
    if not run.is_finished:
        note(f"the run is unfinished: {run.game_count:,} of {run.planned.games:,} games")
    elif not (run.folder / RESULTS).exists():
        command = continue_command(run.folder, run.planned)
        note(f"{RESULTS} is missing{f'; `{command}` writes it' if command else ''}")
    return 0


def _show_game(run: Run, wanted: int, show_hands: bool) -> int:
    def show_attempt(place: Place, question: str, end: Reply | AttemptFailed) -> None:
        attempt = f", attempt {place.attempt + 1}" if place.attempt else ""
        number = f"{place.game}.{place.seat}.{place.decision}"
        question = one_line(question, 400)
        narrator.print_aside(f"Request to {one_line(place.player)} ({place.node}, {number}{attempt}): {question}")
        text = f"(no reply: {end.cause})" if isinstance(end, AttemptFailed) else end.text or "(empty)"
        narrator.print_aside(f"Reply of {one_line(place.player)}: {one_line(text, 2000)}")

    narrator, game = Narrator(show_hands), run.registry.game
    if wanted not in (games := run.experiment.game_numbers):
        raise UsageError(run.describe_missing_game(wanted, games))
    table, names = rebuild_table(run, wanted, show_attempt)
    try:
        narrator.narrate(Session(game, table.state, table_reader(names), table_moves(table), table=table))
    except Differs as error:
        say(f"differs: {error}")
        return 1
    return 0


def _replay_record(file: Path) -> int:
    text = read_text(file)
    game = find_game(read_game_name(text, DUBITO), Path.cwd())
    records = Records(game)
    record = records.load(text)
    for recorded, replayed in zip_longest(record.story, records.replay(record)):
        if recorded != replayed:
            say("differs")
            say(f"recorded: {one_line(recorded or '(end)', 2000)}")
            say(f"replayed: {one_line(replayed or '(end)', 2000)}")
            return 1
    again = session_of_record(game, record, Reader())
    deque(again, maxlen=0)
    say(f"identical: {again.state.turns_played} turns, {len(record.story)} log lines")
    return 0
