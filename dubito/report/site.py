"""Write a report: its pages, data files and static files."""

import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from importlib.resources import as_file, files
from itertools import islice
from pathlib import Path
from typing import Final
from urllib.parse import quote

from dubito.errors import RunStopped, UsageError, one_line
from dubito.experiment.compare import check_comparable, compare_runs
from dubito.experiment.lies import LieCounts
from dubito.experiment.stored import Run, list_contenders, open_recorded_run
from dubito.files import describe_os_error
from dubito.game.words import display_name
from dubito.hooks import report_pages
from dubito.report.bots import bot_pages, neighbours, strategy
from dubito.report.deception import Stories
from dubito.report.games import ShownGames, choose_games
from dubito.report.overview import headline, overview
from dubito.report.pairs import compare_pages
from dubito.report.players import RunPlayers
from dubito.report.positions import Side, sides_of_run
from dubito.report.render import COMPARE, Renderer, Site, Viewer, script_of
from dubito.report.scan import SCANNED_GAMES, Scan, scan
from dubito.report.tables import (
    Column,
    Links,
    Page,
    Paragraph,
    Preview,
    ResultTable,
    Section,
)
from dubito.show.run import CannotShowGame, ReplayedGames
from dubito.show.story import ModelDecisions

FOLDER: Final = "report"  # inside a run folder
_COMPARE_LINK: Final = (
    "Compare two players",
    "compare.html",
    "Where they decided differently, the largest difference first",
)
_MARK_FILE: Final = ".dubito-report"  # marks folders that may be overwritten


def write_pages(folder: Path, site: Site, pages: Iterable[Page], *, ours: bool = False) -> Path:
    """Write pages that do not belong to a run, and return the first page's path.

    Old content of the folder is deleted. With `ours`, the check that the folder is a report is skipped. Raises
    UsageError if the folder is not a report, and RunStopped if it cannot be written.
    """
    with draft_site(folder, ours) as draft:
        render = Renderer(site)
        for page in pages:
            put_page(draft, page, render)
    return folder / "index.html"


def write_report(
    run_folder: Path,
    home: Path | None = None,
    *,
    output: Path | None = None,
    games: str | None = None,
    odds: bool = False,
    scanned: int = SCANNED_GAMES,
    name: str = "",
    address: str | None = None,
    given: str | None = None,
) -> Path:
    """Write the report of a run and return its first page.

    Args:

    `home`: the folder in which `read_run` looks for games.
    `games`: `all`, or numbers such as 0,5,17.
    `scanned`: number of games used to estimate the widths of intervals.
    `name`: shown instead of the folder's name.
    `address`: see `Site`.
    `given`: the run as the user named it, for commands, by default its folder; empty to show none.

    Raises UsageError if there is nothing to show or the folder is not a report, RunStopped if it cannot be written.
    """
    folder = output or run_folder / FOLDER
    # the run may come from a stranger, so follow only links that the user named
    if output is None and folder.is_symlink():
        raise UsageError(
            f"{one_line(str(folder))} is a symbolic link", hint="delete it, or choose a folder with --output"
        )
    with open_recorded_run(run_folder, home) as source:
        if not source.game_count:
            raise UsageError(f"{source} has no counted games yet, so there is nothing to show")
        choice = choose_games(source, games)
        with draft_site(folder) as draft:
            decisions = ModelDecisions(source.db, source.game)
            named = str(run_folder) if given is None else given
            shown = ShownGames(source, choice, ReplayedGames(source), decisions, odds=odds, given=named)
            write_run_pages(draft, source, shown, scan(source, scanned), name, address=address)
    return folder / "index.html"


def write_site(folder: Path, title: str, about: str, runs: Mapping[str, Path], home: Path, address: str = "") -> Path:
    """Write the reports of several runs with an index page, and return the index page's path.

    `address` is the URL at which the site will be published, ending in `/`, if known. Raises the same errors as
    `write_report`, and writes nothing in that case.
    """
    with draft_site(folder) as draft, ExitStack() as stack:
        opened: dict[str, Run] = {}
        for name, run in runs.items():
            write_report(
                run, home, output=draft / name, name=name, address=address and f"{address}{quote(name)}/", given=""
            )
            opened[name] = stack.enter_context(open_recorded_run(run, home))
        answers = [headline(run)[0] for run in opened.values()]
        chart = RunPlayers(next(iter(opened.values()))).chart()
        columns = [
            Column("run", "run", "text", [*opened], [f"{name}/index.html" for name in opened]),
            Column("game", "game", "text", [display_name(run.game) for run in opened.values()]),
            Column("games", "games", "count", [run.tally.games for run in opened.values()]),
            Column("answer", "answer", "text", answers),
        ]
        table = ResultTable("runs", "Runs", columns)
        sections = [Section("Runs", [*([Paragraph(about)] if about else []), table])]
        description = about or " ".join(f"{name}: {answer}" for name, answer in zip(opened, answers, strict=True))
        pages = [*_pages_of_pairs(draft, opened)]
        if pages:
            sections.append(Section("Look closer", [Links([_COMPARE_LINK])]))
        render = Renderer(Site("", pages=[("index.html", title), *([COMPARE] if pages else [])], address=address))
        for page in (Page("index.html", title, sections, preview=Preview(description, chart)), *pages):
            put_page(draft, page, render)
    return folder / "index.html"


def _pages_of_pairs(site: Path, runs: Mapping[str, Run]) -> Iterator[Page]:
    """Yield pages that compare the contenders of all these runs, if they played the same deals."""
    sources = [*runs.values()]
    try:
        check_comparable(sources)
    except UsageError:
        return
    comparison = compare_runs(sources)
    names = iter([contender.name for contender in comparison.contenders])
    sides: list[Side] = []
    for folder, source in runs.items():
        there = {int(page.stem) for page in (site / folder / "games").glob("*.html")}
        sides += sides_of_run(source, [*islice(names, len(source.contenders))], f"{quote(folder)}/", there)
    if len(sides) > 1:
        yield from compare_pages(sides, comparison.tally, comparison.contenders, comparison.results)


@contextmanager
def draft_site(shown: Path, ours: bool = False) -> Iterator[Path]:
    """Yield a new folder with the static files, which replaces the `shown` folder at the end.

    Symbolic links are followed. If anything fails, the old folder remains unchanged.
    """
    folder = shown.resolve()
    draft = folder.with_name(f"{folder.name}.part")
    if not ours:
        _refuse_others(folder, shown)
        _refuse_others(draft, draft)
    try:
        shutil.rmtree(draft, ignore_errors=True)
        draft.mkdir(parents=True)
        (draft / _MARK_FILE).write_text("Dubito wrote this folder and may overwrite it.\n", encoding="utf-8")
        (draft / "data").mkdir()
        with as_file(files("dubito.report") / "static") as static:
            shutil.copytree(static, draft / "static")
        yield draft
        shutil.rmtree(folder, ignore_errors=True)
        draft.replace(folder)
    except OSError as error:
        raise RunStopped(f"cannot write {shown}: {describe_os_error(error)}") from None
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _refuse_others(folder: Path, shown: Path) -> None:
    """Refuse to overwrite anything but a report. `shown` is the folder as the user wrote it."""
    try:
        there = folder.exists() and (not folder.is_dir() or any(folder.iterdir()))
        ours = (folder / _MARK_FILE).exists()
    except OSError as error:
        raise UsageError(
            f"cannot read {one_line(str(shown))}: {error.strerror}", hint="choose another --output"
        ) from None
    if there and not ours:
        raise UsageError(f"{one_line(str(shown))} exists and is not a report", hint="choose another --output")


def write_run_pages(
    folder: Path,
    source: Run,
    shown: ShownGames,
    scanned: Scan,
    name: str = "",
    static: str = "static/",
    address: str | None = None,
) -> None:
    site = Site(name or source.folder.resolve().name, static=static, address=address)
    has_pairs = len(source.contenders) > 1 and source.deals > 0
    render = Renderer(site if has_pairs else replace(site, pages=[one for one in site.pages if one != COMPARE]))
    viewer = Viewer(render, "games")
    (folder / "games").mkdir()
    for game in shown.pages():
        text = viewer(game)
        shown.written += len(text)
        _write_text(folder / game.path, text)
    shared = {"DUBITO_SHARED": shown.asked.shared.pieces, "DUBITO_GAMES": shown.with_pages}
    _write_text(folder / "games" / "shared.js", "".join(script_of(name, value) for name, value in shared.items()))
    try:
        lies: LieCounts | str | None = shown.games.lies()
    except CannotShowGame as error:
        lies = str(error)
    counted = None if isinstance(lies, str) else lies
    stories = None if counted is None else Stories(source, counted, shown.turns, shown.plays)
    looks = [(f"{len(shown.with_pages):,} games", "games.html", "Replay any game with every prompt and reply")]
    pages = [strategy(source, scanned, lies), shown.list_page()]
    if has_pairs:
        contenders = list_contenders(source.planned)
        sides = sides_of_run(source, source.contenders, "", shown.with_pages)
        pages += compare_pages(sides, source.tally, contenders, source.game.results, odds=shown.odds)
        looks.append(_COMPARE_LINK)
    looks.append(("Strategy", "strategy.html", "How the players play, and how their games end"))
    if source.game.has_neighbours:
        pages.append(neighbours(source, scanned))
        looks.append(("Neighbours", "neighbours.html", "How results depend on who sits next to whom"))
    for page in report_pages(source, counted):
        pages.append(page)
        looks.append((page.title, page.path, page.about))
    pages.append(overview(source, scanned, counted, stories, looks))
    for page in (*pages, *bot_pages(source, scanned, lies, shown, stories)):
        put_page(folder, page.with_kinds(source.kinds), render)


def put_page(folder: Path, page: Page, render: Renderer) -> None:
    (folder / page.path).parent.mkdir(exist_ok=True)
    _write_text(folder / page.path, render(page))
    if page.preview and render.site.address:
        # Imported late, because only sites with an address need Pillow.
        from dubito.report.picture import picture_of_page

        (folder / page.picture).write_bytes(picture_of_page(page.title, page.preview))
    for table in page.tables:
        file = folder / "data" / f"{table.key}.csv"
        if file.exists():  # a table of several pages
            continue
        _write_text(file, table.to_csv())
        if table.has_json:
            _write_text(file.with_suffix(".json"), table.to_json())


def _write_text(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8", newline="\n", errors="replace")
