"""`dubito report`: write a run as HTML pages, open or serve them, or write several runs as a site."""

import webbrowser
from contextlib import ExitStack
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final

import click

from dubito.cli.options import games_path_option, open_run_folder, site_url_option
from dubito.cli.output import note, say
from dubito.cli.share import is_saved_game, load_shared_game
from dubito.errors import UsageError, one_line
from dubito.experiment.stored import open_recorded_run
from dubito.files import write_whole
from dubito.report.share import shared_page
from dubito.report.site import FOLDER, write_report, write_site
from dubito.store.folder import last_written

_DEFAULT_TITLE: Final = "Runs of Dubito"


@click.command()
@click.argument("runs", nargs=-1, metavar="[RUN...]", type=click.Path(path_type=Path))
@click.option(
    "--output",
    metavar="FOLDER",
    type=click.Path(path_type=Path),
    help="The report's folder. [default: RUN/report, or RUN-report for a file]",
)
@click.option(
    "--games",
    metavar="N,N,...",
    help="Games with a turn-by-turn viewer, or `all`. [default: all, or the first and the longest]",
)
@click.option("--odds", is_flag=True, help="Estimate each player's odds at every turn (takes seconds per game).")
@click.option("--open", "opens", is_flag=True, help="Open the report in the browser, updated if the run has new games.")
@click.option("--port", type=click.IntRange(0, 65535), help="Serve it on loopback until Ctrl-C; 0 picks a free port.")
@click.option("--site", metavar="FOLDER", type=click.Path(path_type=Path), help="Write all RUN... as one website.")
@click.option("--title", help=f"Title of the site's first page. [default: {_DEFAULT_TITLE}]")
@click.option("--about", help="A sentence or two about the site's runs.")
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

    RUN defaults to the latest run. It can be a file written by `dubito export`, or a game saved by `dubito web` or
    --save, which becomes one page. With --site, all RUN... become a site with an index, for any static host.
    """
    if site is not None:
        options = {"--output": output, "--games": games, "--odds": odds or None, "--port": port}
        _refuse_options(options, "cannot be used with --site")
        index = _write_site(runs, site, of_site)
        say(f"site: {index}")
    else:
        _refuse_options({f"--{key}": value or None for key, value in of_site.items()}, "needs --site")
        if len(runs) > 1:
            raise UsageError(
                "a report covers one run", hint="name one run, or add --site FOLDER to write several as a site"
            )
        index = _write_pages(runs[0] if runs else None, output, games, odds, opens)
        if port is None:
            say(f"report: {index}")
    if port is not None:
        try:
            server = ThreadingHTTPServer(("127.0.0.1", port), partial(_Pages, directory=str(index.parent)))
        except OSError as error:
            raise UsageError(f"cannot serve on port {port}: {error.strerror}", hint="choose another --port") from None
        with server:
            address = f"http://127.0.0.1:{server.server_address[1]}/"
            say(f"report: {address} (press Ctrl-C to stop)")
            if opens and not webbrowser.open(address):
                note("cannot open a browser; open this address yourself")
            server.serve_forever()
    elif opens and not webbrowser.open(index.resolve().as_uri()):
        note("cannot open a browser; open this page yourself")


def _refuse_options(options: dict[str, Any], why: str) -> None:
    for option, value in options.items():
        if value is not None:
            raise UsageError(f"{option} {why}")


def _write_pages(run: Path | None, output: Path | None, games: str | None, odds: bool, opens: bool) -> Path:
    """Write the report and return its first page. With only --open, an up-to-date report is not rewritten."""
    if is_saved_game(run):
        if games is not None or odds:
            flag = "--games" if games is not None else "--odds"
            raise UsageError(f"{flag} only works with runs, and this is a saved game", hint="leave it out")
        folder = output or run.with_name(f"{run.name}-report")
        text = shared_page(load_shared_game(run))
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UsageError(f"cannot write a report at {one_line(str(folder))}: {error.strerror}") from None
        write_whole(folder / "index.html", text)
        return folder / "index.html"
    with open_run_folder(run) as folder:
        if run is not None and run.is_file() and output is None:
            output = run.with_name(f"{run.name}-report")
        index = folder / FOLDER / "index.html"
        chosen = output is not None or games is not None or odds
        if opens and not chosen and index.exists() and index.stat().st_mtime >= last_written(folder):
            return index
        with open_recorded_run(folder) as opened:
            if opened.changed_game:
                note(f"manifest mismatch: {opened.changed_game}")
        name, given = (run.stem, str(run)) if run is not None and run.is_file() else ("", None)
        return write_report(folder, output=output, games=games, odds=odds, name=name, given=given)


def _write_site(runs: tuple[Path, ...], site: Path, given: dict[str, Any]) -> Path:
    if not runs:
        raise UsageError("--site needs the run folders", hint="for example: dubito report RUN RUN --site site")
    with ExitStack() as stack:
        folders: dict[str, Path] = {}
        for run in runs:
            name = run.resolve().name.removesuffix(".zip")
            if name in folders:
                raise UsageError(f"two runs are named {one_line(name)}", hint="rename one of their folders")
            folders[name] = stack.enter_context(open_run_folder(run))
        title, about = given["title"] or _DEFAULT_TITLE, given["about"] or ""
        return write_site(site, title, about, folders, Path.cwd(), given["url"])


class _Pages(SimpleHTTPRequestHandler):
    """Serves a folder without logging requests."""

    def log_message(self, format: str, *args: Any) -> None:
        pass
