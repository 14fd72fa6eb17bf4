"""`dubito share`: a game as one page that can be sent."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeGuard
from urllib.parse import quote, urljoin

import click

from dubito.cli.options import folder_of, kept_games, page_url_option
from dubito.cli.output import say
from dubito.errors import UsageError, one_line
from dubito.experiment.stored import opened_run
from dubito.files import write_whole
from dubito.report.share import SharedGame, shared_file, shared_game, shared_page
from dubito.store.folder import RUNS, is_export, missing_run_error, run_folders


@click.command()
@click.argument("what", metavar="[GAME|RUN]", required=False, type=click.Path(path_type=Path))
@click.option("--game", type=int, metavar="K", help="Of a run: which of its games.")
@click.option("--output", type=click.Path(path_type=Path), help="The page. [default: game.html, or game-K.html]")
@page_url_option
def share(what: Path | None, game: int | None, output: Path | None, url: str) -> None:
    """Write one game as a page that can be sent to anyone.

    GAME is the file of a saved game; RUN is a run (by default the latest) or an exported one. The page shows everyone's
    cards, and what models were asked and answered. It loads nothing from elsewhere. With --url, the picture for links
    to it is written beside it.
    """
    if what is not None and not what.exists():
        raise missing_run_error(what, Path(RUNS), "`dubito share` alone says which games and runs are here")
    if is_saved_game(what):
        if game is not None:
            raise UsageError("--game belongs to a run, and this is one saved game: leave it out")
        shared, path = game_of_file(what), output or Path("game.html")
    else:
        if game is None:
            raise UsageError(_what_to_share(what))
        with folder_of(what) as folder, opened_run(folder, Path.cwd()) as source:
            shared, path = shared_game(source, game), output or Path(f"game-{game}.html")
    if path.is_dir():
        raise UsageError(f"{one_line(str(path))} is a folder: name the page, as in --output {path / 'game.html'}")
    picture = path.with_suffix(".png")
    drawn = _draw(shared) if url else b""  # before anything is written: Pillow may be missing
    text = shared_page(shared, url and urljoin(url, quote(picture.name)))
    write_whole(path, text)
    say(f"page: {path} ({len(text.encode()) // 1000:,} kB)")
    if url:
        picture.write_bytes(drawn)
        say(f"picture: {picture}, to be put beside the page")


def _draw(shared: SharedGame) -> bytes:
    from dubito.report.picture import picture_of_game  # late: only pages with an address need Pillow

    return picture_of_game(shared.page)


def _what_to_share(run: Path | None) -> str:
    """What could have been meant where no game was named."""
    if run is not None:
        return f"a run has many games: say which with --game, as in: dubito share {one_line(str(run))} --game 0"
    saved = sorted(kept_games().glob("*.json"), key=lambda file: (file.stat().st_mtime, file))
    last = [f"`dubito share {one_line(str(file))}` (the last game played here)" for file in saved[-1:]]
    runs = [f"`dubito share {one_line(str(folder))} --game 0`" for folder in run_folders(Path(RUNS))[:1]]
    if not last and not runs:
        return "there is no game here yet: `dubito web` plays one, `dubito demo` some"
    return f"say which: {' or '.join([*last, *runs])}"


def is_saved_game(what: Path | None) -> TypeGuard[Path]:
    return what is not None and what.is_file() and not is_export(what)


def game_of_file(path: Path) -> SharedGame:
    with faults_named(path):
        return shared_file(path)


@contextmanager
def faults_named(path: Path) -> Iterator[None]:
    """Within, what is wrong with a file is said with its name."""
    try:
        yield
    except UsageError as error:
        raise UsageError(f"{one_line(str(path))}: {error}") from None
