"""`dubito watch --web`: games in the browser with nobody sitting, until Ctrl-C."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import Final

from dubito.cli.bots_table import BotsGame, TableOrder, seated
from dubito.cli.following import LOOK
from dubito.cli.narrator import save_record
from dubito.cli.output import note, say
from dubito.cli.which_run import folder_of
from dubito.errors import DubitoError, one_line
from dubito.game.words import told_of
from dubito.serve import listen, serve
from dubito.show.person import as_sentence, trouble
from dubito.show.run import FollowedRun
from dubito.store.folder import DATABASE
from dubito.store.run_db import RunDb
from dubito.web.guard import is_loopback
from dubito.web.tables import BROKEN
from dubito.web.watching import GameSource, LiveGame, RunGames, make_app

_GRACE: Final = 5.0  # seconds that the end waits for a model's answer


def serve_game(wanted: TableOrder, wait: Callable[[], None], host: str, port: int) -> None:
    """Play the game and show it."""
    with playing(wanted, wait) as live:
        _serve(live, host, port)
    say("ended")


@contextmanager
def playing(wanted: TableOrder, wait: Callable[[], None]) -> Iterator[LiveGame]:
    """The game, played from the moment that a page follows it; `wait` lets the time before a turn pass."""
    stop = threading.Event()
    with seated(wanted, stop.is_set) as game, ExitStack() as opened:
        database = None
        if game.number is not None:
            database = opened.enter_context(RunDb.open(wanted.games / DATABASE))
        about = f"{told_of(game.spec).in_short(game.rules)}; deal {wanted.deal} of seed {wanted.seed}."
        live = LiveGame(game.spec, wanted.names, game.dealt, about, database, game.number or 0, kinds=game.kinds)
        player = threading.Thread(target=_play, args=(game, live, wait, stop), daemon=True)
        player.start()
        try:
            yield live
        finally:
            stop.set()
            live.followed.set()
            player.join(_GRACE)


def _play(game: BotsGame, live: LiveGame, wait: Callable[[], None], stop: threading.Event) -> None:
    """Play to the end, or to what stands in the way, which the page says."""
    live.followed.wait()
    try:
        game.begin(lambda thought: None)
        begun = -1  # the turn that was waited for
        while not (game.game.over or stop.is_set()):
            live.thinks = game.game.seat if game.asks_a_model(game.game.seat) else None
            if game.game.turns_played > begun:
                begun = game.game.turns_played
                wait()
            output, _ = game.move()
            faults, forfeit = game.faults()
            live.faults += faults  # first: whoever sees the last move asks no more
            live.outputs += [game.as_kept(each) for each in (output, forfeit) if each is not None]
        if game.game.over and game.wanted.save is not None:
            save_record(game.wanted.save, game.spec, game.record())
    except DubitoError as error:
        live.trouble = trouble(error)
        note(f"dubito: {error}")
    except BaseException:
        live.trouble = as_sentence(BROKEN)
        raise


def serve_run(run: Path | None, host: str, port: int) -> None:
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
            _serve(RunGames(followed), host, port)
    say("ended")


def _serve(shown: GameSource, host: str, port: int) -> None:
    def announce(at: str) -> None:
        if not is_loopback(listener.getsockname()[0]):
            note(f"Everybody who can reach {one_line(host)} can watch: there is no password.")
        say(f"Watch at {at} (Ctrl-C ends it)")

    with listen(host, port) as listener:
        serve(make_app(shown, host), host, listener, announce)
