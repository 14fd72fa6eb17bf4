"""Write the leaderboard's pages, with a report for each verified run."""

from pathlib import Path

from dubito.errors import one_line
from dubito.plugins.leaderboard.board import choose_games, report_path
from dubito.plugins.leaderboard.pages import leaderboard_pages
from dubito.plugins.leaderboard.submissions import Submissions
from dubito.report.games import ShownGames
from dubito.report.render import Renderer, Site
from dubito.report.scan import SCANNED_GAMES, scan
from dubito.report.site import draft_site, put_page, write_run_pages
from dubito.show.run import ReplayedGames
from dubito.show.story import ModelDecisions


def write_leaderboard(folder: Path, submissions: Submissions, title: str, address: str = "") -> Path:
    """Write the site and return its first page.

    `address` is the site's URL, ending in `/`, if known. Raises UsageError if the folder contains other files, and
    RunStopped if it cannot be written.
    """
    with draft_site(folder) as draft:
        render = Renderer(Site("", pages=[("index.html", "Leaderboard")], address=address))
        for page in leaderboard_pages(submissions, title):
            put_page(draft, page, render)
        for run in (run for _, runs in submissions.books for run in runs):
            place = draft / report_path(run)
            (place / "data").mkdir(parents=True)
            shown = ShownGames(
                run.run, choose_games(run), ReplayedGames(run.run), ModelDecisions(run.run.db, run.run.game)
            )
            report = address and f"{address}{report_path(run)}/"
            write_run_pages(
                place, run.run, shown, scan(run.run, SCANNED_GAMES), one_line(run.file), "../../static/", report
            )
    return folder / "index.html"
