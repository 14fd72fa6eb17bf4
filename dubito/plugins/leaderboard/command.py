"""`dubito leaderboard`: build a site from exported runs that are verified by replaying them."""

from pathlib import Path

import click

from dubito.cli.main import Listing
from dubito.cli.options import games_path_option, site_url_option
from dubito.cli.output import note, say
from dubito.errors import UsageError, one_line
from dubito.experiment.workers import default_workers
from dubito.plugins.leaderboard.review import review
from dubito.plugins.leaderboard.site import write_leaderboard
from dubito.plugins.leaderboard.submissions import verify_submissions


class BuildByDefault(Listing):
    """A group whose first argument can also be the folder for `build`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        is_group = not args or args[0] in (*self.commands, *ctx.help_option_names)
        return super().parse_args(ctx, args if is_group else ["build", *args])


@click.group(cls=BuildByDefault)
def leaderboard() -> None:
    """Build a leaderboard from verified exported runs."""


leaderboard.add_command(review)


@leaderboard.command()
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option(
    "--output", metavar="SITE", type=click.Path(path_type=Path), help="Folder of the site. [default: DIR-site]"
)
@click.option("--title", default="Leaderboard", show_default=True, help="Title of the first page.")
@click.option("--workers", type=click.IntRange(1), help="Number of processes. [default: one per core]")
@click.option("--strict", is_flag=True, help="Exit with code 1 if a run cannot be verified.")
@site_url_option
@games_path_option
@click.option("--quiet", is_flag=True, help="Do not print the names of replayed files.")
def build(
    folder: Path, output: Path | None, title: str, workers: int | None, strict: bool, url: str, quiet: bool
) -> int:
    """Verify the exported runs in DIR and write the site.

    Runs that cannot be verified are listed with the reason. Files in DIR must belong to a single book, and so must the
    files in each subfolder.
    """
    if not folder.is_dir():
        raise UsageError(f"the folder {one_line(str(folder))} does not exist", hint="create it and export runs to it")
    site = output or folder.with_name(f"{folder.resolve().name}-site")

    def show_progress(file: str) -> None:
        if not quiet:
            note(f"replaying {one_line(file)}")

    with verify_submissions(folder, Path.cwd(), workers or default_workers(), show_progress) as submissions:
        rows = sum(len(one.run.contenders) for _, runs in submissions.books for one in runs)
        for one in submissions.invalid:
            note(f"invalid: {one_line(one.file)}: {one.reason}")
        say(f"leaderboard: {write_leaderboard(site, submissions, title, url)}")
        say(f"rows: {rows:,}; invalid: {len(submissions.invalid):,}")
        return int(strict and bool(submissions.invalid))
