"""`dubito web`: a table in the browser, until Ctrl-C."""

import time
from contextlib import suppress
from pathlib import Path

import click

from dubito.cli.output import note, say
from dubito.errors import one_line
from dubito.registry import find_bots


@click.command()
@click.option("--port", default=8765, show_default=True, help="Port; 0 takes a free one.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Where to listen; others than loopback are open.")
@click.option(
    "--games", type=click.Path(path_type=Path), default="games", show_default=True, help="Folder that keeps the games."
)
def web(port: int, host: str, games: Path) -> None:
    """Play in the browser, against hand-written bots. Only this machine can reach the page unless --host says so."""
    from dubito.web.app import make_app  # late: no other command needs a web server
    from dubito.web.guard import is_loopback
    from dubito.web.server import listen, make_server
    from dubito.web.tables import Tables

    tables = Tables(games, find_bots(Path.cwd()), time.time)
    with listen(host, port) as listener:
        if not is_loopback(host):
            note(f"Everybody who can reach {one_line(host)} can play and see the saved games: there is no password.")
        shown = f"[{host}]" if ":" in host else host
        say(f"Play at http://{shown}:{listener.getsockname()[1]}/")
        say(f"games are kept in {games}; Ctrl-C ends it, and no game is lost")
        with suppress(KeyboardInterrupt):
            make_server(make_app(tables, host)).run([listener])
    say("ended")
