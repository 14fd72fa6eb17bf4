"""A book's rows: the contenders of the submissions, ranked and compared."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final
from urllib.parse import urlsplit

from dubito.commands import build_command
from dubito.errors import one_line
from dubito.experiment.compare import compare_runs
from dubito.experiment.experiment import PlayerSpec, kind_of_player, player_labels
from dubito.game import PlayerKind, Results
from dubito.llm.settings import build_account
from dubito.plugins.leaderboard.submissions import Answerers, VerifiedRun
from dubito.report.games import GameChoice
from dubito.stats.ranking import ContenderRow, PairRow, contender_pairs, contender_ranking, relate_contenders
from dubito.stats.relation import Relation
from dubito.store.spend import PICO, PlayerLog

_MAX_SHOWN_GAMES: Final = 20  # games per run, each with its own page
MAX_LISTED_GAMES: Final = 2_000  # per row


@dataclass(frozen=True)
class Row:
    """A contender of a submission."""

    id: str  # used in the statistics
    name: str  # shown on the pages
    submission: VerifiedRun
    spec: PlayerSpec
    place: int  # index among its run's contenders

    @property
    def path(self) -> str:
        return f"rows/{self.submission.key}-{self.place}.html"

    @property
    def games_path(self) -> str:
        return f"rows/{self.submission.key}-{self.place}-games.html"

    @property
    def log(self) -> PlayerLog | None:
        return self.submission.run.models.get(self.spec.name)

    @property
    def answerers(self) -> Answerers | None:
        return self.submission.answerers.get(self.spec.name)

    @property
    def server(self) -> str | None:
        """Return the host that a model player calls."""
        if self.log is None:
            return None
        server = build_account(self.submission.run.resolved.model(self.spec.name).settings).server
        return one_line(urlsplit(server).netloc or server, 80)

    @property
    def kind(self) -> PlayerKind:
        return kind_of_player(self.spec)

    @property
    def kind_in_words(self) -> str:
        """The kind, or for a program that a model wrote: the model and its rounds."""
        author = self.spec.settings.get("written_by")
        return f"written by {one_line(str(author), 80)}" if author else self.kind

    @property
    def dollars(self) -> float | None:
        if self.log is None:
            return 0.0
        return None if self.log.picodollars is None else self.log.picodollars / PICO


@dataclass(frozen=True)
class Board:
    """A book's rows and their comparisons."""

    key: str
    book: str
    rows: Mapping[str, Row]  # by id
    ranked: Sequence[ContenderRow]  # best first
    pairs: Sequence[PairRow]
    relation: Relation | None
    results: Results
    games: Mapping[str, Mapping[tuple[int, int], "GameResult"]]  # by id; see `_games_of_row`

    def row(self, ranked: ContenderRow) -> Row:
        return self.rows[ranked.contender.name]

    def page_path(self, pair: PairRow) -> str:
        one, other = self.rows[pair.one.name], self.rows[pair.other.name]
        return f"pairs/{one.submission.key}-{one.place}-{other.submission.key}-{other.place}.html"

    def label(self, id_: str) -> str:
        return one_line(self.rows[id_].name)

    @property
    def label_with_kind(self) -> Callable[[str], str]:
        named = player_labels({id_: row.kind for id_, row in self.rows.items()})
        return lambda id_: named(id_).replace(id_, self.label(id_), 1)

    def ranks(self, place: int) -> str:
        """Return the range of a row's possible ranks, such as 1-3."""
        every = range(len(self.ranked))
        if self.relation is None:
            return "1"
        better = sum(self.relation.wins(other, place) for other in every)
        worse = sum(self.relation.wins(place, other) for other in every)
        first, last = 1 + better, len(self.ranked) - worse
        return f"{first}" if first == last else f"{first}-{last}"


def report_path(run: VerifiedRun) -> str:
    return f"runs/{run.key}"


def command_with(name: str, file: str, *flags: str) -> str:
    """Return a command for a downloaded file."""
    return build_command(name, one_line(file.rpartition("/")[2], 120), *flags, program="dubito")


def choose_games(run: VerifiedRun) -> GameChoice:
    """Choose the first games of a run for the report's game pages."""
    first, count = run.run.planned.first_game, run.run.game_count
    shown = min(count, _MAX_SHOWN_GAMES)
    command = command_with("report", run.file, "--games", "all")
    why = f"The first {shown:,} of {count:,} games. For all of them: {command}"
    return GameChoice([*range(first, first + shown)], why)


@dataclass(frozen=True, slots=True)
class GameResult:
    """The result of one of a row's games."""

    game: int
    size: int
    seat: int
    result: str
    length: int
    page: str | None  # the page that shows the game turn by turn, if there is one


def _games_of_row(row: Row, results: Results) -> dict[tuple[int, int], GameResult]:
    """Return a row's games, up to the limit, by deal and index in the deal."""
    run = row.submission.run
    seats, per_deal = run.planned.contender_seats, run.planned.games_per_deal
    shown = {*choose_games(row.submission).games}
    query = "SELECT game, outcome FROM games WHERE (game % ?) / ? = ? ORDER BY game LIMIT ?"
    games = {}
    for game, packed in run.db.read(query, (per_deal, seats, row.place, MAX_LISTED_GAMES)):
        outcome = run.outcome(packed)
        seat = outcome.contender_seat or 0
        result = results.describe_ending(outcome.marks[seat], outcome.capped)
        page = f"{report_path(row.submission)}/games/{game}.html" if game in shown else None
        length = outcome.game_counts[0]
        games[game // per_deal, game % seats] = GameResult(game, len(outcome.seats), seat, result, length, page)
    return games


def build_title(board: Board) -> str:
    run = next(iter(board.rows.values())).submission.run
    planned = run.planned
    least, most = min(planned.table_sizes), max(planned.table_sizes)
    every = [*range(least, most + 1)] == sorted(planned.table_sizes) and least < most
    sizes = f"{least} to {most}" if every else ", ".join(map(str, planned.table_sizes))
    seed = f"seed {planned.seed}, which {run.secrecy_in_words}"
    about = f"{one_line(planned.game, 60)}, {board.ranked[0].deals:,} deals of {seed}, tables of {sizes}"
    return f"{one_line(board.book)}: {about}" if board.book else about


def build_board(key: str, book: str, runs: Sequence[VerifiedRun]) -> Board:
    comparison = compare_runs([one.run for one in runs])
    entered = [(one, spec, place) for one in runs for place, spec in enumerate(one.run.planned.contenders)]
    names = [spec.name for _, spec, _ in entered]
    rows = {}
    for number, (one, spec, place) in enumerate(entered):
        name = f"{spec.name} ({one.file})" if names.count(spec.name) > 1 else spec.name
        rows[f"{number:06}"] = Row(f"{number:06}", name, one, spec, place)
    contenders = [replace(each, name=id_) for each, id_ in zip(comparison.contenders, rows, strict=True)]
    results = comparison.results
    part = runs[0].run.planned.book
    return Board(
        key,
        book or (part.name if part else ""),
        rows,
        contender_ranking(comparison.tally, contenders, results),
        contender_pairs(comparison.tally, contenders, results),
        relate_contenders(comparison.tally, contenders, results),
        results,
        {id_: _games_of_row(row, results) for id_, row in rows.items()},
    )
