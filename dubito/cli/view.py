"""`dubito view`: a run's report in the browser."""

import webbrowser
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import click

from dubito.cli.output import note, say
from dubito.cli.which_run import folder_of, run_argument
from dubito.errors import UsageError
from dubito.experiment.stored import bots_of_run
from dubito.report.site import FOLDER, write_report
from dubito.store.folder import last_written


@click.command()
@run_argument
@click.option("--port", type=click.IntRange(0, 65535), help="Serve it on loopback until Ctrl-C; 0 takes a free port.")
@click.option("--browser/--no-browser", default=True, show_default=True, help="Open a browser window.")
def view(run: Path | None, port: int | None, browser: bool) -> None:
    """Open the report of RUN, by default the latest, in the browser.

    It is written first where there is none, or where the run has gone on since. An exported file is served.
    """
    with folder_of(run) as folder:
        index = _current(folder)
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


def _current(folder: Path) -> Path:
    """The first page of its report, which shows all that the run keeps."""
    index = folder / FOLDER / "index.html"
    if not index.exists() or index.stat().st_mtime < last_written(folder):
        write_report(folder, bots_of_run(folder, Path.cwd()))
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
