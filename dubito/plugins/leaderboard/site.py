"""The leaderboard as a folder of pages, with a report of each run that was proved."""

from pathlib import Path

from dubito.errors import one_line
from dubito.plugins.leaderboard.pages import games_of, pages_of_leaderboard, report_of
from dubito.plugins.leaderboard.submissions import Submissions
from dubito.report.games import ShownGames
from dubito.report.render import Renderer, Site
from dubito.report.scan import SCANNED_GAMES, scan
from dubito.report.site import draft_site, put_page, write_run_pages
from dubito.show.run import ReplayedGames
from dubito.show.story import ModelDecisions


def write_leaderboard(folder: Path, found: Submissions, title: str, address: str = "") -> Path:
    """Write what was handed in as pages, with a report of each run that was proved; returns the first.

    `address` is where the site will stand, ending in `/`, if that is known.
    Raises UsageError if the folder is not ours, RunStopped if it cannot be written.
    """
    with draft_site(folder) as draft:
        render = Renderer(Site("", pages=[("index.html", "Leaderboard")], address=address))
        for page in pages_of_leaderboard(found, title):
            put_page(draft, page, render)
        for run in (proven for _, runs in found.books for proven in runs):
            place = draft / report_of(run)
            (place / "data").mkdir(parents=True)
            shown = ShownGames(run.run, games_of(run), ReplayedGames(run.run), ModelDecisions(run.run.db, run.run.game))
            report = address and f"{address}{report_of(run)}/"
            write_run_pages(
                place, run.run, shown, scan(run.run, SCANNED_GAMES), one_line(run.file), "../../static/", report
            )
    return folder / "index.html"
