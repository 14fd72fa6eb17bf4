"""`dubito leaderboard`: exported runs as a site, each proved before it has a row."""

from pathlib import Path

import click

from dubito.cli.main import Listing
from dubito.cli.options import games_path_option, site_url_option
from dubito.cli.output import note, say
from dubito.errors import UsageError, one_line
from dubito.experiment.workers import cores
from dubito.plugins.leaderboard.review import review
from dubito.plugins.leaderboard.site import write_leaderboard
from dubito.plugins.leaderboard.submissions import submissions_in


class BuildByDefault(Listing):
    """A group whose first argument may also be the folder to build a site of."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        is_group = not args or args[0] in (*self.commands, *ctx.help_option_names)
        return super().parse_args(ctx, args if is_group else ["build", *args])


@click.group(cls=BuildByDefault)
def leaderboard() -> None:
    """Build a leaderboard of exported runs, each proved by a replay."""


leaderboard.add_command(review)


@leaderboard.command()
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option("--output", metavar="SITE", type=click.Path(path_type=Path), help="The site. [default: DIR-site]")
@click.option("--title", default="Leaderboard", show_default=True, help="The title of its first page.")
@click.option("--workers", type=click.IntRange(1), help="Processes; pages do not depend on it. [default: one per core]")
@click.option("--strict", is_flag=True, help="Exit code 1 if anything could not be proved.")
@site_url_option
@games_path_option
@click.option("--quiet", is_flag=True, help="Do not name each file as it is replayed.")
def build(
    folder: Path, output: Path | None, title: str, workers: int | None, strict: bool, url: str, quiet: bool
) -> int:
    """Write a site of the exported runs in DIR, each replayed first.

    A run that cannot be proved is listed with the reason. Files in DIR itself are of one book; each folder in it is
    another.
    """
    if not folder.is_dir():
        raise UsageError(f"there is no folder {one_line(str(folder))}: make one, and `dubito export` runs into it")
    site = output or folder.with_name(f"{folder.resolve().name}-site")

    def tell(file: str) -> None:
        if not quiet:
            note(f"replaying {one_line(file)}")

    with submissions_in(folder, Path.cwd(), workers or cores(), tell) as found:
        rows = sum(len(one.run.contenders) for _, proven in found.books for one in proven)
        for one in found.refused:
            note(f"invalid: {one_line(one.file)}: {one.reason}")
        say(f"leaderboard: {write_leaderboard(site, found, title, url)}")
        say(f"rows: {rows:,}; without a row: {len(found.refused):,}")
        return int(strict and bool(found.refused))
