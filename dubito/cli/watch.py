"""`dubito watch`: a game between bots and models, or the games of a run as they finish; told, or in the browser."""

import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import Any, Final

import click
from click.core import ParameterSource

from dubito.cli.company import TableOrder, seated
from dubito.cli.narrator import PACES, Narrator, pace_option, save_record, waits
from dubito.cli.options import (
    GameCommand,
    allow_host_option,
    company_options,
    config_options,
    folder_of,
    game_option,
)
from dubito.cli.output import note, say, voice_for
from dubito.cli.share import faults_named, is_saved_game
from dubito.errors import DubitoError, RunStopped, UsageError, one_line
from dubito.experiment.config import parse_config
from dubito.experiment.experiment import describe_fake_models
from dubito.game.record import require_whole_game
from dubito.game.words import labels
from dubito.llm.request import Suspended
from dubito.llm.settings import SHORT_FORM_SETTINGS
from dubito.report.share import page_of_file, saved_record
from dubito.serve import listen, serve
from dubito.show.company import Thought, as_sentence, describe_trouble
from dubito.show.run import FollowedRun
from dubito.show.session import BotsGame, Session, session_of_record
from dubito.store.folder import DATABASE
from dubito.store.run_db import RunDb
from dubito.web.guard import is_loopback
from dubito.web.tables import BROKEN
from dubito.web.watching import GameSource, LiveGame, RunGames, SavedGame, watching_app

_OF_BOTS: Final = (  # flags that say how bots play a game, which those of a run were played without
    "game", "seed", "deal", "on_bot_error", "bot_deadline", "save", "config", "games",
    *SHORT_FORM_SETTINGS,
)  # fmt: skip
WebAddress = tuple[str, int, Sequence[str]]  # host, port, and further names of the host


@click.command(cls=GameCommand)
@click.argument("what", nargs=-1, metavar="[RUN | GAME | BOT BOT ...]")
@game_option
@click.option(
    "--seed", type=click.IntRange(0), default=0, show_default=True, help="Seed; with --deal it fixes the cards."
)
@click.option(
    "--deal", type=click.IntRange(0), default=0, show_default=True, help="Number of the deal: fixes deck and chance."
)
@click.option("--show-hands", is_flag=True, help="Show every hand before its turn, and what was really played.")
@click.option("--save", type=click.Path(path_type=Path), help="Save the game's record, for `dubito replay`.")
@company_options
@config_options("on_bot_error", "bot_deadline", *SHORT_FORM_SETTINGS)
@pace_option
@click.option(
    "--web", is_flag=True, help="Show it in the browser, hands open, with the models' reasons beside their seats."
)
@click.option("--port", default=8765, show_default=True, help="With --web: port; 0 takes a free one.")
@click.option("--host", default="127.0.0.1", show_default=True, help="With --web: where to listen.")
@allow_host_option
def watch(
    what: tuple[str, ...],
    pace: float | None,
    show_hands: bool,
    web: bool,
    port: int,
    host: str,
    allow_host: Sequence[str],
    **flags: Any,
) -> None:
    """Watch bots and models play, or the games of a run as they finish.

    A BOT is a class name, a player of --config, or a model such as openai:MODEL@PROMPT or house:MODEL; they sit in this
    order. Models' answers and reasons are shown as they arrive. RUN is a run's folder or a file of `dubito export`, by
    default the latest run: its last finished game is shown, then each new one until the run ends. GAME is the file of a
    saved game.
    """
    if len(what) == 1 and "," in what[0] and not os.path.exists(what[0]):
        raise UsageError(f"who sits at one table is parted by spaces: {what[0].replace(',', ' ')}")
    of_run = not what or (len(what) == 1 and _means_a_run(what[0]))
    _refuse((*_OF_BOTS, *flags["rules"]) if of_run else (), "is for a game between bots: name them, or leave it out")
    _refuse(() if web else ("port", "host", "allow_host"), "goes with --web")
    _refuse(("pace",) if web and of_run else (), "is chosen on the page: leave it out")
    run, site = Path(what[0]) if what else None, (host, port, allow_host) if web else None
    if of_run and is_saved_game(run):
        with faults_named(run):
            again(run, waits(pace), show_hands, site)
    elif of_run and site:
        serve_run(run, site)
    elif of_run:
        follow(run, waits(pace), show_hands)
    elif site:
        serve_game(_wanted(what, flags), waits(PACES["normal"] if pace is None else pace), site)
    else:
        with seated(_wanted(what, flags)) as game:
            _tell(game, pace, show_hands, flags["save"])


def _means_a_run(word: str) -> bool:
    return os.path.exists(word) or not (word.isidentifier() or ":" in word)


def _refuse(flags: Sequence[str], why: str) -> None:
    context = click.get_current_context()
    for name in flags:
        if context.get_parameter_source(name) is not ParameterSource.DEFAULT:
            raise UsageError(f"--{name.replace('_', '-')} {why}")


def _wanted(names: tuple[str, ...], flags: dict[str, Any]) -> TableOrder:
    server = {key: flags.pop(key) for key in SHORT_FORM_SETTINGS}
    of_bots = {key: flags.pop(key) for key in ("on_bot_error", "bot_deadline")}
    checked = parse_config({}, "the command", of_bots).model_dump(include={*of_bots})
    return TableOrder(names=names, server=server, **checked, **flags | {"game": flags["game"].name})


def _tell(watched: BotsGame, pace: float | None, show_hands: bool, save: Path | None) -> None:
    """Play the game and tell it; raises RunStopped, one sentence, where a model cannot be asked."""
    if stand_ins := describe_fake_models(dict(zip(watched.names, watched.kinds, strict=True))):
        note(stand_ins)
    voice = voice_for([watched.label(seat) for seat in range(len(watched.names))], watched.game.results.lie_words[0])
    narrator = Narrator(show_hands, voice, waits(pace))
    session = watched.start(narrator.thought, narrator.speaks)
    try:
        with session.code:
            narrator.tell(session)
    except Suspended as error:
        raise RunStopped(f"the game is paused ({error}): the same command continues it, from the cache") from None
    if save is not None:
        save_record(save, watched.game, watched.record(session))


LOOK: Final = 0.5  # seconds between two looks whether another game is finished


def follow(run: Path | None, wait: Callable[[], None], show_hands: bool) -> None:
    """Tell the last finished game of the run, then each time the newest one, until the run ends or Ctrl-C."""
    with folder_of(run) as folder, closing(FollowedRun(folder, Path.cwd())) as followed:
        try:
            tell_newest(followed, wait, show_hands, lambda: time.sleep(LOOK))
        except KeyboardInterrupt:
            note("ended")


def tell_newest(
    followed: FollowedRun, wait: Callable[[], None], show_hands: bool, until_next: Callable[[], None]
) -> None:
    """Tell the newest game each time there is one; `until_next` lets time pass where there is none."""
    if not followed.finished() and followed.is_playing:
        note("no game is finished yet")
    for game, missed in followed.newest(until_next):
        if missed:
            note(f"{missed:,} game{'s' * (missed != 1)} finished meanwhile and passed over")
        try:
            _tell_followed(followed, game, wait, show_hands)
        except DubitoError as error:
            note(f"game {game} is not told: {error}")
        for pair in followed.pairs():
            note(pair)
    note(followed.standing())


def _tell_followed(followed: FollowedRun, game: int, wait: Callable[[], None], show_hands: bool) -> None:
    told = followed.games.play(game)  # refuses one that is not as it was
    thoughts = _by_move(followed.questions(game, told)["decisions"])
    voice = voice_for(told["names"], told["lie"])
    voice(f"Game {game}: {', '.join(told['names'])}.")
    _tell_again(followed.games.replay(game)[0], thoughts, Narrator(show_hands, voice, wait))


def again(path: Path, wait: Callable[[], None], show_hands: bool, site: WebAddress | None) -> None:
    """Tell a saved game, with what models said if that is beside it; or show it in the browser."""
    if site is not None:
        _serve(SavedGame(path), *site)
        say("ended")
        return
    page, (game, record) = page_of_file(path, path.name, path.name), saved_record(path)
    for warning in page.warnings:
        note(warning)
    label = labels(record.players, None)
    voice = voice_for([label(seat) for seat in range(len(record.players))], game.results.lie_words[0])
    thoughts = _by_move(page.told["decisions"])
    session = session_of_record(game, record, label)
    with require_whole_game(session.state):
        _tell_again(session, thoughts, Narrator(show_hands, voice, wait))


def _tell_again(session: Session, thoughts: dict[tuple[int, int], list[Thought]], narrator: Narrator) -> None:
    moves = session.move

    def move() -> Any:
        for thought in thoughts.pop((session.state.turns_played + 1, session.state.seat), ()):
            narrator.thought(thought)
        return moves()

    session.move = move
    narrator.tell(session)


def _by_move(decisions: Iterable[Mapping[str, Any]]) -> dict[tuple[int, int], list[Thought]]:
    thoughts: dict[tuple[int, int], list[Thought]] = {}
    for one in decisions:
        last = one["attempts"][-1] if one["attempts"] else {}
        asked, reasoning = len(one["attempts"]), last.get("reasoning") or ""
        thought = Thought(one["seat"], one["node"], one["answer"], one["outcome"], asked, one["p_bluff"], reasoning)
        thoughts.setdefault((one["turn"], one["seat"]), []).append(thought)
    return thoughts


_GRACE: Final = 5.0  # seconds that the end waits for a model's answer


def serve_game(wanted: TableOrder, wait: Callable[[], None], site: WebAddress) -> None:
    with playing(wanted, wait) as live:
        _serve(live, *site)
    say("ended")


@contextmanager
def playing(wanted: TableOrder, wait: Callable[[], None]) -> Iterator[LiveGame]:
    """The game, played from the moment that a page follows it; `wait` lets the time before a turn pass."""
    stop = threading.Event()
    with seated(wanted, stop.is_set) as game, ExitStack() as opened:
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
            player.join(_GRACE)


def _play(game: BotsGame, live: LiveGame, wait: Callable[[], None], stop: threading.Event, save: Path | None) -> None:
    """Play to the end, or to what stands in the way, which the page says."""
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
    """Show the last finished game of the run, and the newer ones."""
    with (
        folder_of(run) as folder,
        closing(FollowedRun(folder, Path.cwd())) as followed,
        suppress(KeyboardInterrupt),
    ):
        if not followed.finished():
            note("no game is finished yet")
        while not followed.finished() and followed.is_playing:
            time.sleep(LOOK)
        if followed.finished():
            _serve(RunGames(followed), *site)
    say("ended")


def _serve(shown: GameSource, host: str, port: int, allowed: Sequence[str]) -> None:
    def announce(at: str) -> None:
        if not is_loopback(listener.getsockname()[0]):
            note(f"Everybody who can reach {one_line(host)} can watch: there is no password.")
        say(f"Watch at {at} (Ctrl-C ends it)")

    with listen(host, port) as listener:
        serve(watching_app(shown, host, allowed), host, listener, announce)
