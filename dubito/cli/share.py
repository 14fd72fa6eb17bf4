"""`dubito share`: write one game as a page."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeGuard
from urllib.parse import quote, urljoin

import click

from dubito.cli.options import open_run_folder, page_url_option, play_url_option, saved_games_folder
from dubito.cli.output import say
from dubito.commands import build_command
from dubito.errors import UsageError, one_line
from dubito.experiment.stored import open_recorded_run
from dubito.files import write_whole
from dubito.report.sender import SharedGame
from dubito.report.share import shared_file, shared_page
from dubito.report.share_run import shared_game
from dubito.show.person import MAX_NAME
from dubito.store.folder import RUNS, is_export, missing_run_error, run_folders


@click.command()
@click.argument("what", metavar="[GAME|RUN]", required=False, type=click.Path(path_type=Path))
@click.option("--game", type=int, metavar="K", help="Number of the game in the run.")
@click.option("--name", "person", metavar="NAME", default="", help="Your name, for a saved game that you played.")
@click.option("--output", type=click.Path(path_type=Path), help="The page. [default: game.html, or game-K.html]")
@page_url_option
@play_url_option
def share(what: Path | None, game: int | None, person: str, output: Path | None, url: str, play_url: str) -> None:
    """Write one game as a page that can be sent to anyone.

    GAME is a saved game's file. RUN is a run (by default the latest) or an exported run. The page shows everyone's
    cards and the models' requests and replies. It loads nothing from other sites. With --url, a preview picture for
    links is written next to the page.
    """
    if what is not None and not what.exists():
        raise missing_run_error(what, Path(RUNS), "`dubito share` without arguments suggests games")
    if is_saved_game(what):
        if game is not None:
            raise UsageError("--game only works with runs, and this is a saved game", hint="leave it out")
        shared, path = load_shared_game(what, person, play_url), output or Path("game.html")
    else:
        if game is None:
            raise UsageError(_suggest_games(what))
        with open_run_folder(what) as folder, open_recorded_run(folder, Path.cwd()) as source:
            shared, path = shared_game(source, game, play_url), output or Path(f"game-{game}.html")
    if path.is_dir():
        raise UsageError(f"{one_line(str(path))} is a folder", hint=f"name a file: --output {path / 'game.html'}")
    picture = path.with_suffix(".png")
    # Drawn before anything is written, since Pillow may be missing.
    png = _draw(shared) if url else b""
    text = shared_page(shared, url and urljoin(url, quote(picture.name)))
    write_whole(path, text)
    say(f"page: {path} ({len(text.encode()) // 1000:,} kB)")
    if url:
        picture.write_bytes(png)
        say(f"picture: {picture} (publish it next to the page)")


def _draw(shared: SharedGame) -> bytes:
    # Imported late: only pages with an address need Pillow.
    from dubito.report.picture import picture_of_game

    return picture_of_game(shared.page)


def _suggest_games(run: Path | None) -> str:
    """Return an error message that suggests games to share."""
    if run is not None:
        return f"choose a game of the run with --game, for example: {build_command('share', run, '--game', 0)}"
    saved = sorted(saved_games_folder().glob("*.json"), key=lambda file: (file.stat().st_mtime, file))
    last = [f"`{build_command('share', file)}` (the last game played here)" for file in saved[-1:]]
    runs = [f"`{build_command('share', folder, '--game', 0)}`" for folder in run_folders(Path(RUNS))[:1]]
    if not last and not runs:
        return "there are no games here yet; play one with `dubito web`, or run `dubito demo`"
    return f"choose a game: {' or '.join([*last, *runs])}"


def is_saved_game(what: Path | None) -> TypeGuard[Path]:
    return what is not None and what.is_file() and not is_export(what)


def load_shared_game(path: Path, person: str = "", play_url: str = "") -> SharedGame:
    with errors_with_path(path):
        return shared_file(path, one_line(person, MAX_NAME).strip(), play_url)


@contextmanager
def errors_with_path(path: Path) -> Iterator[None]:
    """Add the file's path to usage errors."""
    try:
        yield
    except UsageError as error:
        raise UsageError(f"{one_line(str(path))}: {error}") from None
