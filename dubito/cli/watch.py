"""`dubito watch`: show a game between bots and models, or a run's games, in the terminal or the browser."""

import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import Any, Final

import click

from dubito.cli.narrator import PACES, Narrator, make_pause, pace_option, save_record
from dubito.cli.opponents import TableOrder, open_game
from dubito.cli.options import (
    PORT_DEFAULT,
    SEED,
    GameCommand,
    allow_host_option,
    company_options,
    config_options,
    game_option,
    open_run_folder,
    program_options,
    refuse_flags,
)
from dubito.cli.output import make_voice, note, say
from dubito.cli.share import errors_with_path, is_saved_game
from dubito.commands import repeat_command
from dubito.errors import DubitoError, RunStopped, UsageError, one_line
from dubito.experiment.config import parse_config
from dubito.experiment.experiment import describe_fake_models
from dubito.game.moves import require_whole_game
from dubito.game.reader import table_reader
from dubito.llm.request import Suspended
from dubito.model_settings import SHORT_FORM_SETTINGS
from dubito.report.share import page_of_file, saved_record
from dubito.serve import listen, serve
from dubito.show.opponents import Thought, as_sentence, describe_trouble
from dubito.show.run import FollowedRun
from dubito.show.session import BotsGame, Session, session_of_record
from dubito.store.folder import DATABASE
from dubito.store.run_db import RunDb
from dubito.web.guard import is_loopback
from dubito.web.tables import BROKEN
from dubito.web.watching import GameSource, LiveGame, RunGames, SavedGame, watching_app

# Flags for a new game between bots. They cannot be used with a run.
_NEW_GAME_FLAGS: Final = (
    "game", "seed", "deal", "on_bot_error", "bot_deadline", "save", "config", "games",
    *SHORT_FORM_SETTINGS,
)  # fmt: skip
# Host, port, and additional host names.
WebAddress = tuple[str, int | None, Sequence[str]]


@click.command(cls=GameCommand)
@click.argument("what", nargs=-1, metavar="[RUN | GAME | BOT BOT ...]")
@game_option
@click.option(
    "--seed",
    type=SEED,
    metavar="N",
    default=0,
    show_default=True,
    help="Random seed. Seed and deal determine the cards.",
)
@click.option("--deal", type=click.IntRange(0), default=0, show_default=True, help="Number of the deal.")
@click.option("--show-hands", is_flag=True, help="Show all hands, and what was really played.")
@click.option("--save", type=click.Path(path_type=Path), help="Save the game's record, for `dubito replay`.")
@company_options
@program_options
@config_options("on_bot_error", "bot_deadline", *SHORT_FORM_SETTINGS)
@pace_option
@click.option("--web", is_flag=True, help="Show the game in the browser, with all hands and the models' reasons.")
@click.option("--port", type=int, help=f"With --web: port; 0 picks a free one. [default: {PORT_DEFAULT}]")
@click.option("--host", default="127.0.0.1", show_default=True, help="With --web: address to listen on.")
@allow_host_option
def watch(
    what: tuple[str, ...],
    pace: float | None,
    show_hands: bool,
    web: bool,
    port: int | None,
    host: str,
    allow_host: Sequence[str],
    **flags: Any,
) -> None:
    """Watch bots and models play, or the games of a run as they finish.

    A BOT is a class name, a player of --config, or a model such as openai:MODEL@PROMPT or house:MODEL. The players sit
    in the given order. Models' answers and reasons are shown as they arrive. RUN is a run folder or a file written by
    `dubito export`, by default the latest run. Its last finished game is shown, then each new one until the run ends.
    GAME is a saved game's file.
    """
    if len(what) == 1 and "," in what[0] and not os.path.exists(what[0]):
        raise UsageError(f"separate players with spaces, not commas: {what[0].replace(',', ' ')}")
    of_run = not what
    if len(what) == 1:
        # Bots are identifiers, and models contain a colon.
        of_run = os.path.exists(what[0]) or not (what[0].isidentifier() or ":" in what[0])
    refuse_flags((*_NEW_GAME_FLAGS, *flags["rules"]) if of_run else (), "only works for a new game; name its bots")
    refuse_flags(() if web else ("port", "host", "allow_host"), "needs --web")
    refuse_flags(("pace",) if web and of_run else (), "cannot be used with --web; choose the pace on the page")
    run, site = Path(what[0]) if what else None, (host, port, allow_host) if web else None
    if of_run and is_saved_game(run):
        with errors_with_path(run):
            show_saved_game(run, make_pause(pace), show_hands, site)
    elif of_run and site:
        serve_run(run, site)
    elif of_run:
        follow(run, make_pause(pace), show_hands)
    elif site:
        wait = make_pause(PACES["normal"] if pace is None else pace)
        with play_live(_table_order(what, flags), wait) as live:
            _serve(live, *site)
        say("stopped")
    else:
        with open_game(_table_order(what, flags)) as game:
            _play_and_print(game, pace, show_hands, flags["save"])


def _table_order(names: tuple[str, ...], flags: dict[str, Any]) -> TableOrder:
    server = {key: flags.pop(key) for key in SHORT_FORM_SETTINGS}
    of_bots = {key: flags.pop(key) for key in ("on_bot_error", "bot_deadline")}
    checked = parse_config({}, "the command", of_bots).model_dump(include={*of_bots})
    return TableOrder(names=names, server=server, **checked, **flags | {"game": flags["game"].name})


def _play_and_print(watched: BotsGame, pace: float | None, show_hands: bool, save: Path | None) -> None:
    """Play the game and print it; raises RunStopped if a model cannot be called."""
    if fake_models := describe_fake_models(dict(zip(watched.names, watched.kinds, strict=True))):
        note(fake_models)
    voice = make_voice(watched.reader.names(len(watched.names)), watched.game.results.lie_words[0])
    narrator = Narrator(show_hands, voice, make_pause(pace))
    session = watched.start(narrator.print_thought, narrator.show_partial_reply)
    try:
        with session.code:
            narrator.narrate(session)
    except Suspended as error:
        raise RunStopped(f"the game is paused: {error}", hint=f"`{repeat_command()}` continues it") from None
    if save is not None:
        save_record(save, watched.game, watched.record(session))


# How often a run is checked for a new finished game.
POLL_SECONDS: Final = 0.5


def follow(run: Path | None, wait: Callable[[], None], show_hands: bool) -> None:
    """Print the last finished game of the run, then new ones as they finish, until the run ends or Ctrl-C."""
    with open_run_folder(run) as folder, closing(FollowedRun(folder, Path.cwd())) as followed:
        try:
            print_new_games(followed, wait, show_hands, lambda: time.sleep(POLL_SECONDS))
        except KeyboardInterrupt:
            note("stopped")


def print_new_games(
    followed: FollowedRun, wait: Callable[[], None], show_hands: bool, until_next: Callable[[], None]
) -> None:
    """Print the newest game whenever a game has finished. `until_next` pauses between checks."""
    if not followed.finished() and followed.is_playing:
        note("no game is finished yet")
    for game, missed in followed.newest(until_next):
        if missed:
            note(f"{missed:,} game{'s' * (missed != 1)} skipped")
        try:
            # Raises an error if the replay differs from the record.
            story = followed.games.play(game)
            decisions = followed.questions(game, story)["decisions"]
            voice = make_voice(story["names"], story["lie"])
            voice(f"Game {game}: {', '.join(story['names'])}.")
            _narrate_with_thoughts(followed.games.replay(game)[0], decisions, Narrator(show_hands, voice, wait))
        except DubitoError as error:
            note(f"cannot show game {game}: {error}")
        for pair in followed.pairs():
            note(pair)
    note(followed.standing())


def show_saved_game(path: Path, wait: Callable[[], None], show_hands: bool, site: WebAddress | None) -> None:
    """Print a saved game or show it in the browser, with the models' replies if they are in the same folder."""
    if site is not None:
        _serve(SavedGame(path), *site)
        say("stopped")
        return
    page, (game, record) = page_of_file(path, path.name, path.name), saved_record(path)
    for warning in page.warnings:
        note(warning)
    reader = table_reader(record.players)
    voice = make_voice(reader.names(len(record.players)), game.results.lie_words[0])
    session = session_of_record(game, record, reader)
    with require_whole_game(session.state):
        _narrate_with_thoughts(session, page.story["decisions"], Narrator(show_hands, voice, wait))


def _narrate_with_thoughts(session: Session, decisions: Iterable[Mapping[str, Any]], narrator: Narrator) -> None:
    """Narrate a game that was played, and before each move what its models thought."""
    thoughts: dict[tuple[int, int], list[Thought]] = {}  # by turn and seat
    for one in decisions:
        last = one["attempts"][-1] if one["attempts"] else {}
        attempts, reasoning = len(one["attempts"]), last.get("reasoning") or ""
        thought = Thought(one["seat"], one["node"], one["answer"], one["outcome"], attempts, one["p_bluff"], reasoning)
        thoughts.setdefault((one["turn"], one["seat"]), []).append(thought)
    moves = session.move

    def move() -> Any:
        for thought in thoughts.pop((session.state.turns_played + 1, session.state.seat), ()):
            narrator.print_thought(thought)
        return moves()

    session.move = move
    narrator.narrate(session)


# How long to wait for a model's answer when the server stops.
_STOP_GRACE_SECONDS: Final = 5.0


@contextmanager
def play_live(wanted: TableOrder, wait: Callable[[], None]) -> Iterator[LiveGame]:
    """Play the game in a thread once a page is opened. `wait` pauses before each turn."""
    stop = threading.Event()
    with open_game(wanted, stop.is_set) as game, ExitStack() as opened:
        database = None
        if game.number is not None:
            database = opened.enter_context(RunDb.open(wanted.games / DATABASE))
        live = LiveGame(game, database)
        player = threading.Thread(target=_play, args=(game, live, wait, stop, wanted.save), daemon=True)
        player.start()
        try:
            yield live
        finally:
            stop.set()
            live.followed.set()
            player.join(_STOP_GRACE_SECONDS)


def _play(game: BotsGame, live: LiveGame, wait: Callable[[], None], stop: threading.Event, save: Path | None) -> None:
    """Play the game. If an error ends it early, the page shows the error."""
    live.followed.wait()
    try:
        session = live.play(wait, stop)
        if session.over and save is not None:
            save_record(save, game.game, game.record(session))
    except DubitoError as error:
        live.trouble = describe_trouble(error)
        note(f"dubito: {error}")
    except BaseException:
        live.trouble = as_sentence(BROKEN)
        raise


def serve_run(run: Path | None, site: WebAddress) -> None:
    """Show the run's last finished game in the browser, then new ones as they finish."""
    with (
        open_run_folder(run) as folder,
        closing(FollowedRun(folder, Path.cwd())) as followed,
        suppress(KeyboardInterrupt),
    ):
        if not followed.finished():
            note("no game is finished yet")
        while not followed.finished() and followed.is_playing:
            time.sleep(POLL_SECONDS)
        if followed.finished():
            _serve(RunGames(followed, str(run or folder)), *site)
    say("stopped")


def _serve(shown: GameSource, host: str, port: int | None, allowed: Sequence[str]) -> None:
    def announce(at: str) -> None:
        if not is_loopback(listener.getsockname()[0]):
            note(f"Warning: anyone who can reach {one_line(host)} can watch without a password.")
        say(f"Watch at {at} (press Ctrl-C to stop)")

    with listen(host, port) as listener:
        serve(watching_app(shown, host, allowed), host, listener, announce)
