"""`dubito web`: a table in the browser, until Ctrl-C."""

import threading
import time
from pathlib import Path

import click

from dubito.cli.company import opponents, others
from dubito.cli.options import server_options
from dubito.cli.output import note, say
from dubito.errors import one_line
from dubito.experiment.experiment import labelled_by


@click.command()
@click.argument("config", required=False, type=click.Path(path_type=Path))
@click.option("--port", default=8765, show_default=True, help="Port; 0 takes a free one.")
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    help="Where to listen; any address but loopback can be reached by others, without a password.",
)
@click.option(
    "--games", type=click.Path(path_type=Path), default="games", show_default=True, help="Folder that keeps the games."
)
@click.option("--game", metavar="NAME", help="The game that is offered first. [default: that of CONFIG, or dubito]")
@server_options
def web(config: Path | None, port: int, host: str, games: Path, game: str | None, **asked: str | None) -> None:
    """Play in the browser, against hand-written bots and the players of CONFIG, including those that ask models.

    Only this machine can reach the page unless --host says so.
    """
    from dubito.serve import listen, serve  # late: no other command needs a web server
    from dubito.web.app import make_app
    from dubito.web.guard import is_loopback
    from dubito.web.tables import Tables

    stop = threading.Event()
    first = int(time.time() * 1000)
    with listen(host, port) as listener, opponents(config, None, games, first, stop.is_set, asked, game) as company:
        tables = Tables(games, {company.game.name: company} | others(company.game), time.time)
        choices = company.choices()
        label = labelled_by({one.name: one.kind for one in choices})
        models = [label(one.name) for one in choices if one.asks]
        open_to_all = not is_loopback(listener.getsockname()[0])
        serve(make_app(tables, host), host, listener, lambda at: _announce(at, host, open_to_all, games, models))
        stop.set()
        tables.close()
    say("ended")


def _announce(address: str, host: str, open_to_all: bool, games: Path, models: list[str]) -> None:
    """Where to play, and who can."""
    if open_to_all:
        asked = ", and ask the models at your cost" if models else ""
        everybody = f"Everybody who can reach {one_line(host)}"
        note(f"{everybody} can play{asked} and see the saved games: there is no password.")
    say(f"Play at {address}")
    if models:
        say(f"model players: {', '.join(models)}")
    say(f"games are kept in {games}; Ctrl-C ends it, and no game is lost")
