"""`dubito rate`: rate a player by a book, in three comparable numbers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import click

from dubito.cli.options import SPENDING, config_options, games_path_option, json_option
from dubito.cli.output import note, print_document, say, table
from dubito.cli.run import play_with_progress, print_warnings
from dubito.cli.summary import exit_code
from dubito.errors import listed, one_line
from dubito.experiment.config import parse_config
from dubito.experiment.experiment import BookPart, Experiment, PartName, PlayerSpec, describe_fake_models
from dubito.experiment.resolve import CallOptions, call_options, check_cache, check_models, parse_player, resolve
from dubito.experiment.run import RunResult, find_finished_run
from dubito.experiment.stored import opened_run
from dubito.game import Measure
from dubito.game.find import Registry, find_bots
from dubito.game.table import Entrant
from dubito.llm.settings import SHORT_FORM_SETTINGS
from dubito.plugins.leaderboard.book import NamedBook, check_book, config_of, read_book
from dubito.plugins.leaderboard.documents import RatingObject, RatingTaken, RatingUsed, RatingWorst
from dubito.plugins.leaderboard.rating import (
    BesideWorst,
    RatingUse,
    Taken,
    beside_worst,
    exploiter_entries,
    mean_rate,
    rated_games,
    taken,
    use_of,
)
from dubito.report.documents import Interval
from dubito.report.tables import ColumnKind, cell_text, difference_of, kind_of
from dubito.stats.rates import Rate
from dubito.store.model_log import Spend

_DRAWS: Final = 100  # in each situation, of a bot that does not say how it plays; as `dubito policy` has it


@click.command()
@click.argument("rated", metavar="PLAYER")
@click.option("--book", default="dubito-1", show_default=True, metavar="NAME", help="Name or file of the book.")
@click.option("--output", type=click.Path(path_type=Path), metavar="FOLDER", help="[default: runs/rate-BOOK-DIGEST]")
@config_options("workers", *SHORT_FORM_SETTINGS, "in_flight", *SPENDING)
@games_path_option
@click.option("--quiet", is_flag=True, help="Hide the progress line.")
@json_option
def rate(rated: str, book: str, output: Path | None, quiet: bool, as_json: bool, **given: str | bool | None) -> int:
    """Rate a player by a book of fixed deals and opponents.

    A PLAYER is a bot, or a model such as openai:MODEL@PROMPT. It gets three numbers: its result against the opponents,
    beside its worst neighbours, and what the best known exploiters win from it. The same command resumes, or prints it
    again.
    """
    by = _by_book(read_book(book), rated, given)
    alone = by.experiment("field")[0]
    folder = output or Path("runs") / f"rate-{by.named.name}-{alone.digest()}"
    field = by.played("field", folder, quiet)
    if code := exit_code(field):
        return code
    with opened_run(folder / "field") as run:
        beside = beside_worst([*rated_games(run)], run.names, run.game.results.measures[0])
        spent, entries = run.spent, exploiter_entries(run, by.named.book.exploiters)
    exploiters = by.played("exploiters", folder, quiet, entries, spent)
    if code := exit_code(exploiters):
        return code
    found = _Found(
        by,
        folder,
        field,
        exploiters,
        mean_rate(field.tally, field.contenders, field.game.results),
        beside,
        taken(exploiters.tally, exploiters.experiment, exploiters.game.results),
        *_exact(by),
        use_of([*field.models.values(), *exploiters.models.values()]),
    )
    if as_json:
        print_document(_document(found))
    else:
        _print(found)
    return 0


@dataclass(frozen=True, slots=True)
class _ByBook:
    """A player and the book to rate it by."""

    named: NamedBook
    registry: Registry
    player: PlayerSpec
    flags: Mapping[str, Any]
    workers: int | None

    def experiment(self, part: PartName, exploiters: Sequence[dict[str, Any]] = ()) -> tuple[Experiment, CallOptions]:
        """Return the checked experiment of a part; raises UsageError."""
        book, here = self.named.book, self.registry.working_directory
        content = config_of(book, part, self.player, exploiters, self.registry.game)
        config = parse_config(content, self.named.name, self.flags)
        calls = call_options(config, here)
        experiment = check_models(resolve(config, self.registry), self.registry, calls)
        return replace(experiment, book=BookPart(self.named.name, book.digest, part)), calls

    def played(
        self,
        part: PartName,
        folder: Path,
        quiet: bool,
        exploiters: Sequence[dict[str, Any]] = (),
        spent: Spend | None = None,
    ) -> RunResult:
        """Play a part. `spent` was used from the budget already."""
        experiment, calls = self.experiment(part, exploiters)
        into = folder / part
        if kept := find_finished_run(experiment, self.registry, into):
            note(f"{into} already has this finished run; nothing was played")
            return kept
        print_warnings(experiment, self.registry, calls)
        if warning := check_cache(experiment, self.registry, calls):
            note(warning)
        calls = replace(calls, caps=calls.caps.minus(spent) if spent else calls.caps)
        return play_with_progress(experiment, self.registry, into, calls, workers=self.workers, quiet=quiet)


def _by_book(named: NamedBook, rated: str, given: Mapping[str, Any]) -> _ByBook:
    """Raises UsageError if the player is unknown or the book cannot be played."""
    registry = find_bots(Path.cwd(), named.book.game)
    check_book(named, registry)
    config = parse_config({"game": named.book.game}, "the command", given)
    return _ByBook(named, registry, parse_player(rated, registry, config), given, config.workers)


def _exact(by: _ByBook) -> tuple[float | None, int | None]:
    """What a best response wins of a hand-written bot on average over the seats of a small game, None elsewhere; how
    often the bot was seen to act in each situation, None where it says itself how it plays."""
    game, cls = by.registry.game, by.registry.find(by.player.bot).cls
    engine = getattr(game.module("workshop"), "engine", None)
    if engine is None or cls.is_model:
        return None, None
    # late: only small games need the plugin
    from dubito.plugins.openspiel.policy.small import small_game
    from dubito.plugins.openspiel.policy.stated import of_bot
    from dubito.plugins.openspiel.policy.tree import Tree
    from dubito.plugins.openspiel.policy.values import nash_conv

    tree = Tree(engine)
    small = small_game(game, game.rules())
    stated = of_bot(Entrant(by.player.name, cls, by.player.settings), small, tree.states, _DRAWS, 0)
    return nash_conv(tree, stated.rows) / tree.players, stated.draws


@dataclass(frozen=True, slots=True)
class _Found:
    """Print the rating."""

    by: _ByBook
    folder: Path
    field: RunResult
    exploiters: RunResult
    mean: Rate
    beside: BesideWorst
    taken: Sequence[Taken]
    exact: float | None
    draws: int | None
    use: RatingUse

    @property
    def measure(self) -> Measure:
        return self.field.game.results.measures[0]


def _print(found: _Found) -> None:
    named, measure, name = found.by.named, found.measure, one_line(found.by.player.name)
    if stand_ins := describe_fake_models({name: found.field.experiment.kinds[found.by.player.name]}):
        say(stand_ins)
    neighbours = "against its worst opponent" if found.field.game.is_duel else "beside its worst neighbours"
    rows: list[tuple[str, Rate, int, ColumnKind]] = [
        ("over the field", found.mean, found.field.tally.games, kind_of(measure)),
        (neighbours, found.beside.rate, found.beside.games, kind_of(measure)),
    ]
    seats = found.field.experiment.contender_seats
    rows += [(f"{one.name} takes", one.rate, one.deals * seats, difference_of(measure)) for one in found.taken]
    cells = [[what, cell_text(rate, kind), f"{games:,}"] for what, rate, games, kind in rows]
    title = f"{name} by {named.name} ({named.book.digest})"
    table(title, ["", f"{measure.column_title} [95 % CI]", "games"], cells)
    for side, who in found.beside.who.items():
        say(f"worst {side}: {listed([one_line(each) for each in who])}")
    if found.exact is not None:
        basis = f"as it acts in {found.draws} draws of each situation" if found.draws else "exactly"
        say(f"a best response takes {found.exact:+.3f}, {basis}")
    elif hasattr(found.field.game.module("workshop"), "engine"):
        say(f"what a best response takes, exactly: dubito policy {name} --game {found.field.game.name}")
    use = found.use
    if use.decisions:
        cost = "" if use.usd is None else f", ${use.usd:.4f}"
        asked = f"{use.decisions:,} decisions, {use.calls:,} calls, {use.tokens:,} tokens"
        say(f"{asked}{cost}; {use.fallbacks:,} fallbacks")
    say(f"runs: {found.folder / 'field'} and {found.folder / 'exploiters'}")


def _document(found: _Found) -> RatingObject:
    def interval(rate: Rate) -> Interval:
        return Interval.model_validate(rate)

    named, experiment = found.by.named, found.field.experiment
    return RatingObject(
        book=named.name,
        book_digest=named.book.digest,
        game=found.field.game.name,
        player=found.by.player.name,
        kind=experiment.kinds[found.by.player.name],
        measure=found.measure.key,
        games=found.field.tally.games,
        mean=interval(found.mean),
        beside_worst=RatingWorst.model_validate(found.beside),
        taken=[RatingTaken.model_validate(one) for one in found.taken],
        exact=found.exact,
        exact_draws=found.draws,
        use=RatingUsed.model_validate(found.use),
        folders=[str(found.folder / part) for part in ("field", "exploiters")],
        results_digests=[found.field.results_digest, found.exploiters.results_digest],
    )
