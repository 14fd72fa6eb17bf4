"""`dubito report`: a run as pages, opened in the browser, served, or several runs as a site."""

import webbrowser
from contextlib import ExitStack
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final

import click

from dubito.cli.options import folder_of, games_path_option, site_url_option
from dubito.cli.output import note, say
from dubito.cli.share import game_of_file, is_saved_game
from dubito.errors import UsageError, one_line
from dubito.experiment.stored import opened_run
from dubito.files import write_whole
from dubito.report.share import shared_page
from dubito.report.site import FOLDER, write_report, write_site
from dubito.store.folder import last_written

_TITLE: Final = "Runs of Dubito"


@click.command()
@click.argument("runs", nargs=-1, metavar="[RUN...]", type=click.Path(path_type=Path))
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
@click.option("--open", "opens", is_flag=True, help="Open it in the browser, written anew if the run has gone on.")
@click.option("--port", type=click.IntRange(0, 65535), help="Serve it on loopback until Ctrl-C; 0 takes a free port.")
@click.option("--site", metavar="FOLDER", type=click.Path(path_type=Path), help="Write all RUN... as a site instead.")
@click.option("--title", help=f"Of the site's first page. [default: {_TITLE}]")
@click.option("--about", help="What the runs of the site are about, in a sentence or two.")
@site_url_option
@games_path_option
def report(
    runs: tuple[Path, ...],
    output: Path | None,
    games: str | None,
    odds: bool,
    opens: bool,
    port: int | None,
    site: Path | None,
    **of_site: Any,
) -> None:
    """Write a run as pages that open in a browser.

    RUN is by default the latest run. It may be a file of `dubito export`, or a saved game of `dubito web` or --save,
    which is one page. With --site all RUN... and an index become a site, ready for any static host.
    """
    if site is not None:
        _check_given({"--output": output, "--games": games, "--odds": odds or None, "--port": port}, "--site has none")
        index = _write_site(runs, site, of_site)
        say(f"site: {index}")
    else:
        _check_given({f"--{key}": value or None for key, value in of_site.items()}, "it belongs to --site")
        if len(runs) > 1:
            raise UsageError("one report is of one run: name one, or add --site FOLDER to write several as a site")
        index = _write_pages(runs[0] if runs else None, output, games, odds, opens)
        if port is None:
            say(f"report: {index}")
    if port is not None:
        _serve(index.parent, port, opens)
    elif opens and not webbrowser.open(index.resolve().as_uri()):
        note("no browser could be opened here: open that page in one")


def _check_given(options: dict[str, Any], why: str) -> None:
    """Refuse options that were given where they mean nothing."""
    for option, value in options.items():
        if value is not None:
            raise UsageError(f"{option}: {why}: leave it out")


def _write_pages(run: Path | None, output: Path | None, games: str | None, odds: bool, opens: bool) -> Path:
    """Write the report and return its first page. One that is there is kept if it is only to be opened."""
    if is_saved_game(run):
        if games is not None or odds:
            flag = "--games chooses among a run's games" if games is not None else "--odds needs the bots of a run"
            raise UsageError(f"{flag}, and this is one saved game: leave it out")
        return _page_of_game(run, output or run.with_name(f"{run.name}-report"))
    with folder_of(run) as folder:
        if run is not None and run.is_file() and output is None:
            output = run.with_name(f"{run.name}-report")
        index = folder / FOLDER / "index.html"
        chosen = output is not None or games is not None or odds
        if opens and not chosen and index.exists() and index.stat().st_mtime >= last_written(folder):
            return index
        with opened_run(folder) as opened:
            if opened.changed_game:
                note(f"manifest mismatch: {opened.changed_game}")
        return write_report(folder, output=output, games=games, odds=odds)


def _page_of_game(game: Path, folder: Path) -> Path:
    """Write a saved game as the one page of that folder, and return it."""
    text = shared_page(game_of_file(game))
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"cannot write a report at {one_line(str(folder))}: {error.strerror}") from None
    write_whole(folder / "index.html", text)
    return folder / "index.html"


def _write_site(runs: tuple[Path, ...], site: Path, given: dict[str, Any]) -> Path:
    if not runs:
        raise UsageError("--site: name the runs, as in: dubito report RUN RUN --site site")
    with ExitStack() as stack:
        folders: dict[str, Path] = {}
        for run in runs:
            name = run.resolve().name.removesuffix(".zip")
            if name in folders:
                raise UsageError(
                    f"two runs are called {one_line(name)}: rename one, since each has a folder by its name"
                )
            folders[name] = stack.enter_context(folder_of(run))
        title, about = given["title"] or _TITLE, given["about"] or ""
        return write_site(site, title, about, folders, Path.cwd(), given["url"])


class _Pages(SimpleHTTPRequestHandler):
    """Serves a folder without a log."""

    def log_message(self, format: str, *args: Any) -> None:
        """Print nothing."""


def _serve(folder: Path, port: int, opens: bool) -> None:
    """Serve the folder until Ctrl-C."""
    try:
        server = ThreadingHTTPServer(("127.0.0.1", port), partial(_Pages, directory=str(folder)))
    except OSError as error:
        raise UsageError(f"cannot serve on port {port}: {error.strerror}; choose another --port") from None
    with server:
        address = f"http://127.0.0.1:{server.server_address[1]}/"
        say(f"report: {address} (Ctrl-C ends)")
        if opens and not webbrowser.open(address):
            note("no browser could be opened here: open that address in one")
        server.serve_forever()
