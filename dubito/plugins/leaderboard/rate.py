"""`dubito rate`: rate a player against a book, in three numbers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import click

from dubito.cli.options import (
    SPENDING,
    config_options,
    games_path_option,
    given_permits,
    json_option,
    program_options,
)
from dubito.cli.output import note, print_document, say, table
from dubito.cli.run import play_with_progress, print_warnings
from dubito.cli.summary import exit_code
from dubito.commands import build_command, repeat_command, typed_words
from dubito.errors import UsageError, join_names, one_line
from dubito.experiment.call_options import CallOptions, call_options, check_cache
from dubito.experiment.config import parse_config
from dubito.experiment.experiment import BookPart, PartName, describe_fake_models
from dubito.experiment.model_players import check_models
from dubito.experiment.resolve import parse_player, resolve
from dubito.experiment.resolved import ResolvedPlayer, ResolvedRun
from dubito.experiment.run import RunResult, find_finished_run
from dubito.experiment.saved_config import command_to_store
from dubito.experiment.stored import open_recorded_run
from dubito.game import Measure
from dubito.game.find import Registry, find_bots
from dubito.game.table import Entrant
from dubito.model_settings import SHORT_FORM_SETTINGS
from dubito.plugins.leaderboard.book import NamedBook, build_part_config, check_book, read_book
from dubito.plugins.leaderboard.documents import RatingObject, RatingTaken, RatingUsed, RatingWorst
from dubito.plugins.leaderboard.ladder import build_ladder_config, climb, print_climb
from dubito.plugins.leaderboard.rating import (
    ExploiterGain,
    RatingUsage,
    WorstNeighbours,
    exploiter_entries,
    exploiter_gains,
    mean_beside_worst,
    mean_rate,
    rated_games,
    sum_usage,
)
from dubito.report.documents import Interval
from dubito.report.tables import ColumnKind, cell_text, column_kind, difference_kind
from dubito.stats.rates import Rate
from dubito.store.spend import Spend

_OPENSPIEL: Final = "openspiel"  # the family whose small games are solved exactly
_DRAWS_PER_SITUATION: Final = 100  # for bots that do not state their strategy; same as in `dubito policy`


@click.command()
@click.argument("rated", metavar="PLAYER")
@click.option("--book", default="dubito-1", show_default=True, metavar="NAME", help="Name or file of the book.")
@click.option("--output", type=click.Path(path_type=Path), metavar="FOLDER", help="[default: runs/rate-BOOK-DIGEST]")
@click.option("--ladder", is_flag=True, help="Instead, show which hand-written bots it beats on the book's deals.")
@config_options("workers", *SHORT_FORM_SETTINGS, "in_flight", *SPENDING)
@games_path_option
@program_options
@click.option("--quiet", is_flag=True, help="Hide the progress line.")
@json_option
def rate(
    rated: str,
    book: str,
    ladder: bool,
    output: Path | None,
    quiet: bool,
    as_json: bool,
    **given: str | bool | None,
) -> int:
    """Rate a player against a book of fixed deals and opponents.

    A PLAYER is a bot, or a model such as openai:MODEL@PROMPT. It gets three numbers: its result against the opponents,
    next to its worst neighbours, and what the best known exploiters win from it. The same command resumes, or prints it
    again.
    """
    player = _load_book_player(read_book(book), rated, given)
    if ladder:
        if as_json:
            raise UsageError("--ladder and --json cannot be combined; `dubito compare RUN --json` prints its pairs")
        return _climb(player, output, quiet)
    experiment = player.plan_part("field")[0].experiment
    folder = output or Path("runs") / f"rate-{player.named.name}-{experiment.digest()}"
    field = player.play_part("field", folder, quiet)
    if code := exit_code(field, repeat_command()):
        return code
    with open_recorded_run(folder / "field") as run:
        worst = mean_beside_worst([*rated_games(run)], run.names, run.game.results.measures[0])
        spent, entries = run.spent, exploiter_entries(run, player.named.book.exploiters)
    exploiters = player.play_part("exploiters", folder, quiet, entries, spent)
    if code := exit_code(exploiters, repeat_command()):
        return code
    rating = _Rating(
        player,
        folder,
        field,
        exploiters,
        mean_rate(field.tally, field.contenders, field.game.results),
        worst,
        exploiter_gains(exploiters.tally, exploiters.experiment, exploiters.game.results),
        *_best_response_gain(player),
        sum_usage([*field.models.values(), *exploiters.models.values()]),
    )
    if as_json:
        print_document(_rating_object(rating))
    else:
        _print_rating(rating)
    return 0


@dataclass(frozen=True, slots=True)
class _BookPlayer:
    """A player and the book against which it is rated."""

    named: NamedBook
    registry: Registry
    player: ResolvedPlayer
    flags: Mapping[str, Any]
    workers: int | None

    @property
    def name(self) -> str:
        return self.player.name

    def plan(self, content: Mapping[str, Any]) -> tuple[ResolvedRun, CallOptions]:
        """Return the checked run of a config with the command's settings; raises UsageError."""
        config = parse_config(content, self.named.name, self.flags)
        calls = call_options(config, self.registry.working_directory, given_permits())
        return check_models(resolve(config, self.registry), calls), calls

    def plan_part(self, part: PartName, exploiters: Sequence[dict[str, Any]] = ()) -> tuple[ResolvedRun, CallOptions]:
        """Return the checked run of a part; raises UsageError."""
        book = self.named.book
        content = build_part_config(book, part, self.player.spec, exploiters, self.registry.game)
        run, calls = self.plan(content)
        experiment = replace(run.experiment, book=BookPart(self.named.name, book.digest, part))
        return replace(run, experiment=experiment), calls

    def play_part(
        self,
        part: PartName,
        folder: Path,
        quiet: bool,
        exploiters: Sequence[dict[str, Any]] = (),
        spent: Spend | None = None,
    ) -> RunResult:
        """Play a part, or return its finished run. `spent` is what the other part used of the budget."""
        return self.play(*self.plan_part(part, exploiters), folder / part, quiet, spent)

    def play(
        self, run: ResolvedRun, calls: CallOptions, into: Path, quiet: bool, spent: Spend | None = None
    ) -> RunResult:
        if finished := find_finished_run(run, into):
            note(f"this run is already finished in {into}; nothing was played")
            return finished
        print_warnings(run, calls)
        if warning := check_cache(run, calls):
            note(warning)
        calls = replace(calls, caps=calls.caps.subtract(spent) if spent else calls.caps)
        stored = command_to_store(*typed_words())
        return play_with_progress(run, into, calls, stored, workers=self.workers, quiet=quiet)


def _load_book_player(named: NamedBook, rated: str, given: Mapping[str, Any]) -> _BookPlayer:
    """Find the player. Raises UsageError if it is unknown or the book cannot be played."""
    registry = find_bots(Path.cwd(), named.book.game)
    check_book(named, registry)
    config = parse_config({"game": named.book.game}, "the command", given)
    return _BookPlayer(named, registry, parse_player(rated, registry, config), given, config.workers)


def _climb(player: _BookPlayer, output: Path | None, quiet: bool) -> int:
    spec, named = player.player.spec, player.named
    entry = {"bot": spec.bot, "name": spec.name, **spec.settings}
    run, calls = player.plan(build_ladder_config(named.book, entry, player.registry))
    folder = output or Path("runs") / f"ladder-{named.name}-{run.experiment.digest()}"
    result = player.play(run, calls, folder, quiet)
    if code := exit_code(result, repeat_command()):
        return code
    print_climb(climb(player.name, result), named.name, folder)
    return 0


def _best_response_gain(player: _BookPlayer) -> tuple[float | None, int | None]:
    """Return what a best response wins from a hand-written bot, averaged over the seats of a small game.

    The second value is how often the bot was asked in each situation, or None if it states its strategy. Both are None
    for models and larger games.
    """
    game, cls = player.registry.game, player.player.bot.cls
    if game.family != _OPENSPIEL or cls.is_model:
        return None, None
    # Imported late because only small games need the plugin.
    from dubito.plugins.openspiel.policy.small import small_game
    from dubito.plugins.openspiel.policy.stated_policy import read_bot_policy
    from dubito.plugins.openspiel.policy.tree import Tree
    from dubito.plugins.openspiel.policy.values import nash_conv

    small = small_game(game, game.rules())
    tree = Tree(small.engine)
    stated = read_bot_policy(
        Entrant(player.name, cls, player.player.spec.settings), small, tree.states, _DRAWS_PER_SITUATION, 0
    )
    return nash_conv(tree, stated.rows) / tree.players, stated.draws


@dataclass(frozen=True, slots=True)
class _Rating:
    """The results of both runs."""

    player: _BookPlayer
    folder: Path
    field: RunResult
    exploiters: RunResult
    mean: Rate
    worst: WorstNeighbours
    gains: Sequence[ExploiterGain]
    exact: float | None
    draws: int | None
    use: RatingUsage

    @property
    def measure(self) -> Measure:
        return self.field.game.results.measures[0]


def _print_rating(rating: _Rating) -> None:
    named, measure, name = rating.player.named, rating.measure, one_line(rating.player.name)
    if warning := describe_fake_models({name: rating.field.experiment.kinds[rating.player.name]}):
        say(warning)
    neighbours = "against its worst opponent" if rating.field.game.is_duel else "next to its worst neighbours"
    rows: list[tuple[str, Rate, int, ColumnKind]] = [
        ("against the opponents", rating.mean, rating.field.tally.games, column_kind(measure)),
        (neighbours, rating.worst.rate, rating.worst.games, column_kind(measure)),
    ]
    seats = rating.field.experiment.contender_seats
    rows += [(f"gain of {one.name}", one.rate, one.deals * seats, difference_kind(measure)) for one in rating.gains]
    cells = [[what, cell_text(rate, kind), f"{games:,}"] for what, rate, games, kind in rows]
    title = f"{name} rated against {named.name} ({named.book.digest})"
    table(title, ["", f"{measure.column_title} [95 % CI]", "games"], cells)
    for side, who in rating.worst.who.items():
        say(f"worst {side}: {join_names([one_line(each) for each in who])}")
    if rating.exact is not None:
        basis = f"from {rating.draws} draws of each situation" if rating.draws else "exact"
        say(f"a best response wins {rating.exact:+.3f} ({basis})")
    elif rating.field.game.family == _OPENSPIEL:
        command = build_command("policy", rating.player.name, "--game", rating.field.game.name)
        say(f"to compute what a best response wins: {command}")
    use = rating.use
    if use.decisions:
        cost = "" if use.usd is None else f", ${use.usd:.4f}"
        usage = f"{use.decisions:,} decisions, {use.calls:,} calls, {use.tokens:,} tokens"
        say(f"{usage}{cost}; {use.fallbacks:,} fallbacks")
    say(f"runs: {rating.folder / 'field'} and {rating.folder / 'exploiters'}")


def _rating_object(rating: _Rating) -> RatingObject:
    def interval(rate: Rate) -> Interval:
        return Interval.model_validate(rate)

    named, experiment = rating.player.named, rating.field.experiment
    return RatingObject(
        book=named.name,
        book_digest=named.book.digest,
        game=rating.field.game.name,
        player=rating.player.name,
        kind=experiment.kinds[rating.player.name],
        measure=rating.measure.key,
        games=rating.field.tally.games,
        mean=interval(rating.mean),
        beside_worst=RatingWorst.model_validate(rating.worst),
        taken=[RatingTaken.model_validate(one) for one in rating.gains],
        exact=rating.exact,
        exact_draws=rating.draws,
        use=RatingUsed.model_validate(rating.use),
        folders=[str(rating.folder / part) for part in ("field", "exploiters")],
        results_digests=[rating.field.results_digest, rating.exploiters.results_digest],
    )
