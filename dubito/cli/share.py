"""`dubito share`: write one game as a page."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
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
from dubito.report.share_run import shared_game, suggest_game
from dubito.show.person import MAX_NAME
from dubito.store.folder import RUNS, is_export, latest_run, missing_run_error


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
            suggested = what and f"choose a game of the run with --game, for example: {_suggest_game(what)}"
            raise UsageError(suggested or _suggest_games())
        with open_run_folder(what) as folder, open_recorded_run(folder, Path.cwd()) as source:
            shared, path = shared_game(source, game, play_url), output or Path(f"game-{game}.html")
    if path.is_dir():
        raise UsageError(f"{one_line(str(path))} is a folder", hint=f"name a file: --output {path / 'game.html'}")
    picture = path.with_suffix(".png")
    png = b""
    if url:
        # Imported late: only pages with an address need Pillow. It may be missing, so draw before anything is written.
        from dubito.report.picture import picture_of_game

        png = picture_of_game(shared.page)
    text = shared_page(shared, url and urljoin(url, quote(picture.name)))
    write_whole(path, text)
    say(f"page: {path} ({len(text.encode()) // 1000:,} kB)")
    if url:
        picture.write_bytes(png)
        say(f"picture: {picture} (publish it next to the page)")


def _suggest_game(run: Path) -> str:
    """Return the command that shares a run's best game, and what happens in it."""
    with open_run_folder(run) as folder, open_recorded_run(folder, Path.cwd()) as source:
        game, event = suggest_game(source)
    return f"`{build_command('share', run, '--game', game)}`{f' ({one_line(event, 120)})' if event else ''}"


def _suggest_games() -> str:
    """Return an error message that suggests games to share."""
    saved = sorted(saved_games_folder().glob("*.json"), key=lambda file: (file.stat().st_mtime, file))
    found = [f"`{build_command('share', file)}` (the last game played here)" for file in saved[-1:]]
    with suppress(UsageError):  # no runs
        found.append(_suggest_game(latest_run(Path(RUNS))))
    if not found:
        return "there are no games here yet; play one with `dubito web`, or run `dubito demo`"
    return f"choose a game: {' or '.join(found)}"


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
