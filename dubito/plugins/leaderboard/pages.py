"""A leaderboard's pages: by book the rows that were proved, what was not and why, and a page for each row.

Nothing in them comes from a clock or from the machine: the same submissions, the same bytes.
"""

import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final
from urllib.parse import urlsplit

from dubito.errors import one_line
from dubito.experiment.compare import compare_runs
from dubito.experiment.experiment import PlayerSpec, describe_fake_models, kind_of_player, player_labels
from dubito.experiment.resolve import model_settings
from dubito.game import FALLBACK_OUTCOME, Results
from dubito.llm.prices import PICO, dollars
from dubito.llm.settings import account_for
from dubito.plugins.leaderboard.submissions import LEAST_SAMPLE, Answerers, Proven, Submissions
from dubito.report.games import GameChoice
from dubito.report.run_tables import cautions, significance_in_words
from dubito.report.tables import (
    Block,
    Chart,
    Column,
    NamedValues,
    Page,
    Paragraph,
    Preview,
    ResultTable,
    Section,
    Value,
    Verbatim,
    counts,
    difference_of,
    kind_of,
    points,
    texts,
    unit_of,
)
from dubito.report.verdicts import verdict_in_words
from dubito.stats.players import fallback_share
from dubito.stats.ranking import (
    ContenderRow,
    Order,
    PairRow,
    contender_pairs,
    contender_ranking,
    rank_contenders,
)
from dubito.stats.verdict import FALLBACK_LIMIT
from dubito.store.folder import to_yaml
from dubito.store.model_log import PlayerLog

_SHOWN: Final = 20  # games of each run that can be opened turn by turn
_LISTED: Final = 2_000  # games of a row that are listed
_TIERS: Final = (
    (
        "replayed",
        "Every game was played again offline from the replies that the file keeps, and every request, decision, "
        "outcome, count and digest was the same. Of a hand-written bot that is the whole proof, since its moves are "
        "computed anew. Of a model it proves that the games follow from the replies, not who gave them: that takes "
        "the maintainer's word.",
    ),
    (
        "attested",
        "Besides, each reply has an id and names the model that answered, and a maintainer asked a sample of at least "
        f"{LEAST_SAMPLE} of its requests again, twice each: the model agrees with the submission as often as with "
        "itself, within the 95 % confidence interval of the paired difference.",
    ),
    (
        "challenged",
        "It was replayed, and a maintainer questions it, or the sample disagrees: the reason stands on its page.",
    ),
    ("invalid", "It could not be proved. It has no row; it is listed with the first reason."),
)
_UNPROVED: Final = (
    "Calls without a reply, dollars, dates and the versions it was made with are what a file says of itself: no "
    "replay can prove them. Nor does it prove that a run is the only one that was made: who plays twenty times and "
    "hands in the best has been lucky. So everybody plays the book's own deals."
)
_ROWS: Final = (
    "A rank is a range: every row that wins against this one is ranked before it, and every row that it wins against "
    "is ranked behind it. Wins are significant paired differences on the same deals, with Holm's method for several "
    f"pairs. A row whose fallback took more than {100 * FALLBACK_LIMIT:g} % of its decisions wins or loses only if its "
    "games with a fallback cannot change the order. Intervals are 95 %."
)


@dataclass(frozen=True)
class _Row:
    """A contender of a submission."""

    id: str  # in the statistics
    name: str  # on the pages
    of: Proven
    spec: PlayerSpec
    place: int  # among its run's contenders

    @property
    def path(self) -> str:
        return f"rows/{self.of.key}-{self.place}.html"

    @property
    def games_path(self) -> str:
        return f"rows/{self.of.key}-{self.place}-games.html"

    @property
    def log(self) -> PlayerLog | None:
        return self.of.run.models.get(self.spec.name)

    @property
    def answerers(self) -> Answerers | None:
        return self.of.answerers.get(self.spec.name)

    @property
    def server(self) -> str | None:
        """Return the host that a model player asks."""
        if self.log is None:
            return None
        server = account_for(model_settings(self.spec, self.of.run.registry)).server
        return one_line(urlsplit(server).netloc or server, 80)

    @property
    def dollars(self) -> float | None:
        if self.log is None:
            return 0.0
        return None if self.log.picodollars is None else self.log.picodollars / PICO


@dataclass(frozen=True)
class _Board:
    """The rows of one book, compared."""

    key: str
    book: str
    rows: Mapping[str, _Row]  # by id
    ranked: Sequence[ContenderRow]  # the best first
    pairs: Sequence[PairRow]
    order: Order | None
    results: Results
    games: Mapping[str, Mapping[tuple[int, int], "_Ended"]]  # by id, as `_games_of_row` has them

    def row(self, ranked: ContenderRow) -> _Row:
        return self.rows[ranked.contender.name]

    def path_of(self, pair: PairRow) -> str:
        one, other = self.rows[pair.one.name], self.rows[pair.other.name]
        return f"pairs/{one.of.key}-{one.place}-{other.of.key}-{other.place}.html"

    def label(self, id_: str) -> str:
        return one_line(self.rows[id_].name)

    @property
    def labelled(self) -> Callable[[str], str]:
        named = player_labels({id_: kind_of_player(row.spec) for id_, row in self.rows.items()})
        return lambda id_: named(id_).replace(id_, self.label(id_), 1)

    def ranks(self, place: int) -> str:
        """The places that a row may have, as in 1-3."""
        every = range(len(self.ranked))
        if self.order is None:
            return "1"
        better = sum(self.order.wins(other, place) for other in every)
        worse = sum(self.order.wins(place, other) for other in every)
        first, last = 1 + better, len(self.ranked) - worse
        return f"{first}" if first == last else f"{first}-{last}"


def report_of(run: Proven) -> str:
    return f"runs/{run.key}"


def games_of(run: Proven) -> GameChoice:
    """The games of a run that its report shows turn by turn: its first ones."""
    first, kept = run.run.planned.first_game, run.run.game_count
    shown = min(kept, _SHOWN)
    file = shlex.quote(one_line(run.file.rpartition("/")[2]))
    why = f"The first {shown:,} of {kept:,} games. All of them: dubito report {file} --games all"
    return GameChoice([*range(first, first + shown)], why)


def pages_of_leaderboard(found: Submissions, title: str = "Leaderboard") -> Iterator[Page]:
    """The first page, two for each row, and one for each pair."""
    boards = [_board(f"board-{number}", *book) for number, book in enumerate(found.books)]
    yield _first_page(found, boards, title)
    for board in boards:
        for place, ranked in enumerate(board.ranked):
            yield _page_of_row(board, place, ranked)
            yield _page_of_games(board, board.row(ranked))
        yield from (_page_of_pair(board, pair) for pair in board.pairs)


def _board(key: str, book: str, proven: Sequence[Proven]) -> _Board:
    comparison = compare_runs([one.run for one in proven])
    entered = [(one, spec, place) for one in proven for place, spec in enumerate(one.run.planned.contenders)]
    names = [spec.name for _, spec, _ in entered]
    rows = {}
    for number, (one, spec, place) in enumerate(entered):
        name = f"{spec.name} ({one.file})" if names.count(spec.name) > 1 else spec.name
        rows[f"{number:06}"] = _Row(f"{number:06}", name, one, spec, place)
    contenders = [replace(each, name=id_) for each, id_ in zip(comparison.contenders, rows, strict=True)]
    results = comparison.results
    by = proven[0].run.planned.book
    return _Board(
        key,
        book or (by.name if by else ""),
        rows,
        contender_ranking(comparison.tally, contenders, results),
        contender_pairs(comparison.tally, contenders, results),
        rank_contenders(comparison.tally, contenders, results),
        results,
        {id_: _games_of_row(row, results) for id_, row in rows.items()},
    )


def _first_page(found: Submissions, boards: Sequence[_Board], title: str) -> Page:
    rows = sum(len(board.rows) for board in boards)
    counted = f"{rows:,} row{'s' * (rows != 1)}, each replayed offline from its file"
    listed = (
        f"{len(found.refused):,} that could not be proved {'is' if len(found.refused) == 1 else 'are'} listed below"
    )
    said = [f"{counted}; {listed}, with the reason." if found.refused else f"{counted}."]
    answers = [_answer(board) for board in boards]
    short: list[Block] = [*(Paragraph(answer, answer=True) for answer in answers), *map(Paragraph, said)]
    sections = [Section("Summary", short)]
    sections += [Section(_title_of(board), _blocks_of(board)) for board in boards]
    if found.refused:
        cells = [[one_line(one.file, 120), "invalid", one.reason] for one in found.refused]
        table = ResultTable("refused", "Invalid, with the first reason", texts("file", "tier", "reason"), cells)
        sections.append(Section("Not on the board", [table]))
    files = [one.file for _, proven in found.books for one in proven]
    if files:
        sections.append(Section("Check a row yourself", _how_to_check(files[0])))
    sections.append(Section("What a row proves, and what it does not", [NamedValues(_TIERS), Paragraph(_UNPROVED)]))
    preview = Preview(" ".join([*answers, *said]), _chart_of(boards[0]) if boards else None)
    return Page("index.html", one_line(title), sections, preview=preview)


def _answer(board: _Board) -> str:
    if board.order is None:
        return f"{board.label(board.ranked[0].contender.name)} is the only row of {_title_of(board)}."
    text = verdict_in_words(board.order, board.labelled)
    return f"{one_line(board.book)}: {text}" if board.book else text


def _title_of(board: _Board) -> str:
    planned = next(iter(board.rows.values())).of.run.planned
    least, most = min(planned.table_sizes), max(planned.table_sizes)
    every = [*range(least, most + 1)] == sorted(planned.table_sizes) and least < most
    sizes = f"{least} to {most}" if every else ", ".join(map(str, planned.table_sizes))
    about = f"{one_line(planned.game, 60)}, {board.ranked[0].deals:,} deals of seed {planned.seed}, tables of {sizes}"
    return f"{one_line(board.book)}: {about}" if board.book else about


def _blocks_of(board: _Board) -> list[Block]:
    rows = [board.row(each) for each in board.ranked]
    names = [board.label(row.id) for row in rows]
    kinds = {row.name: kind_of_player(row.spec) for row in rows}
    blocks: list[Block] = [Paragraph(text, warning=True) for text in [describe_fake_models(kinds)] if text]
    blocks.append(_chart_of(board))
    if any(row.dollars for row in rows):
        blocks.append(_against_dollars(board, rows, names))
    blocks.append(_table_of(board))
    blocks += [Paragraph(" ".join(said))] if board.order and (said := cautions(_order_by_label(board))) else []
    return blocks


def _chart_of(board: _Board) -> Chart:
    first = board.results.measure(board.results.headline[0])
    names, rates = (
        [board.label(board.row(each).id) for each in board.ranked],
        [each.rates[first.key] for each in board.ranked],
    )
    title = f"{first.name} of each row with its 95 % confidence interval"
    return Chart("intervals", title, first.heading, names, [points(first.name, rates, unit_of(first))])


def _order_by_label(board: _Board) -> Order:
    assert board.order is not None
    return replace(board.order, names=[board.label(name) for name in board.order.names])


def _against_dollars(board: _Board, rows: Sequence[_Row], names: Sequence[str]) -> Chart:
    first = board.results.measure(board.results.headline[0])
    scaled = points(first.name, [each.rates[first.key] for each in board.ranked], unit_of(first))["points"]
    kinds = [kind_of_player(row.spec) for row in rows]
    series = [
        {
            "name": kind,
            "points": [
                [round(row.dollars, 4), *point] if row.dollars is not None and point and own == kind else None
                for row, own, point in zip(rows, kinds, scaled, strict=True)
            ],
        }
        for kind in sorted({*kinds})
    ]
    title = f"{first.name} against dollars: higher and further left is better"
    return Chart("scatter", title, "dollars, for all these deals", names, series, vertical=first.heading)


def _table_of(board: _Board) -> ResultTable:
    first = board.results.measure(board.results.headline[0])
    columns = [*texts("player", "rank"), Column(first.key, first.column_title, kind_of(first)), *texts("tier")]
    columns += [Column("kind", "kind", "kind"), *texts("server")]
    columns += [Column("answered", "answered by", "text"), *texts("prompt")]
    columns += [*counts("calls"), Column("cost", "dollars", "dollars"), Column("fallback", "fallback %", "rate")]
    columns += [Column("file", "submission", "text")]
    rows = [board.row(each) for each in board.ranked]
    cells: list[list[Value]] = []
    for place, (row, each) in enumerate(zip(rows, board.ranked, strict=True)):
        log = row.log
        asked: list[Value] = [None, None, None]
        if log is not None:
            asked = [log.calls, log.picodollars, fallback_share(log.outcomes)]
        answered = ", ".join(row.answerers.ids) if row.answerers else ""
        who: list[Value] = [kind_of_player(row.spec), row.server, one_line(answered, 120) or None]
        who.append(row.spec.prompt[:12] or None)
        known: list[Value] = [board.label(row.id), board.ranks(place), each.rates[first.key], row.of.tier]
        cells.append([*known, *who, *asked, one_line(row.of.file, 120)])
    links = {first.key: [row.games_path for row in rows], "file": [f"{report_of(row.of)}/index.html" for row in rows]}
    title = "The rows: a name leads to its page, a number to its games, a file to its run's report"
    return ResultTable(board.key, title, columns, cells, [_ROWS], [row.path for row in rows], links)


def _how_to_check(file: str, digest: str = "") -> list[Block]:
    name = shlex.quote(one_line(file.rpartition("/")[2], 120))
    expected = f"identical: ...\nresults digest: {digest}" if digest else "identical: ..., and the row's results digest"
    return [
        Paragraph(
            "In a clone of Dubito, with the submission's file: no key, no network and no model are needed. It plays "
            "every game again, and prints the results digest, or the first thing that differs."
        ),
        Verbatim("Run", f"dubito replay {name}"),
        Verbatim("It prints", expected),
    ]


def _page_of_row(board: _Board, place: int, ranked: ContenderRow) -> Page:
    row, first = board.row(ranked), board.results.measure(board.results.headline[0])
    run = row.of.run
    blocks: list[Block] = [Paragraph(text, warning=row.of.tier == "challenged") for text in row.of.said]
    tier = dict(_TIERS)[row.of.tier]
    shown = [(row.games_path, "its games"), (f"{report_of(row.of)}/index.html", "the whole run, as a report")]
    more = ResultTable("more", "Where its numbers come from", texts("more"), [[text] for _, text in shown])
    sections = [
        Section("What it is", [NamedValues(_facts(row, board.ranks(place), ranked)), *blocks, Paragraph(tier)]),
        Section("Against the others", [_pairs_of(board, row)] if board.pairs else [Paragraph("There are none yet.")]),
        Section("Its games", [replace(more, key=f"{row.of.key}-{row.place}-more", links=[path for path, _ in shown])]),
        Section("Check it yourself", _how_to_check(row.of.file, run.results_digest)),
    ]
    rate = ranked.rates[first.key]
    score = "" if rate.value is None else f" {first.name} {unit_of(first) * rate.value:.1f}."
    about = (
        f"{board.label(row.id)} at {_title_of(board)}: rank {board.ranks(place)} of {len(board.rows)}, {row.of.tier}."
    )
    preview = Preview(f"{about}{score}", _chart_of(board), [board.label(row.id)])
    return Page(row.path, board.label(row.id), sections, preview=preview)


def _facts(row: _Row, ranks: str, ranked: ContenderRow) -> list[tuple[str, str]]:
    run, spec, log = row.of.run, row.spec, row.log
    facts = [
        ("rank", ranks),
        ("tier", row.of.tier),
        ("kind", kind_of_player(spec)),
        ("bot", f"{spec.bot}, file {spec.source}"),
        ("deals", f"{ranked.deals:,}"),
        ("submission", row.of.file),
        ("sha256 of the file", row.of.sha256),
        ("results digest, recomputed", run.results_digest),
        ("made with dubito", f"{run.versions.get('dubito')}"),
    ]
    if settings := to_yaml(spec.settings).strip().removeprefix("{}"):
        facts.append(("settings", settings))
    if log is None:
        return facts
    ids = row.answerers.ids if row.answerers else {}
    fallbacks = {name: count for name, count in log.outcomes.items() if name.startswith(FALLBACK_OUTCOME)}
    causes = ", ".join(f"{name.removeprefix(FALLBACK_OUTCOME)} {count:,}" for name, count in sorted(fallbacks.items()))
    return [
        *facts,
        ("server", row.server or "not kept"),
        ("model that was asked", log.asked or "not kept"),
        ("models that answered", ", ".join(f"{name} ({count:,} replies)" for name, count in ids.items()) or "not said"),
        ("prompt", f"{spec.settings.get('prompt')}, digest {spec.prompt}"),
        ("decisions", f"{log.decisions:,}"),
        ("fallbacks", f"{sum(fallbacks.values()):,}{f' ({causes})' if causes else ''}"),
        ("calls, as the file says", f"{log.calls:,}"),
        ("tokens, as the file says", f"{log.tokens['input']:,} in, {log.tokens['output']:,} out"),
        ("cost, as the file says", "no price" if log.picodollars is None else dollars(log.picodollars)),
    ]


def _pairs_of(board: _Board, row: _Row) -> ResultTable:
    """The paired differences of a row with each other one, seen from it."""
    measures = [board.results.measure(key) for key in board.results.headline]
    columns = [Column("against", "against", "text")]
    columns += [Column(one.key, f"{one.title}, more than theirs", difference_of(one)) for one in measures]
    columns += [Column("apart", f"{measures[0].title} significant", "text")]
    cells: list[list[Value]] = []
    links, paths = [], []
    for pair in board.pairs:
        if row.id not in (pair.one.name, pair.other.name):
            continue
        paths.append(board.path_of(pair))
        ours = pair.one.name == row.id
        other = board.rows[pair.other.name if ours else pair.one.name]
        rates = [pair.differences[one.key].rate.times(1 if ours else -1) for one in measures]
        rates = rates if ours else [replace(rate, low=rate.high, high=rate.low) for rate in rates]
        cells.append([board.label(other.id), *rates, significance_in_words(pair.differences[measures[0].key])])
        links.append(other.path)
    key = f"{row.of.key}-{row.place}-pairs"
    title = (
        "Paired differences on the same deals, with 95 % confidence intervals: a name leads to its page, a number to "
        "the pair's"
    )
    return ResultTable(key, title, columns, cells, [], links, {one.key: paths for one in measures})


@dataclass(frozen=True, slots=True)
class _Ended:
    """What a game of a row came to."""

    game: int
    size: int
    seat: int
    result: str
    length: int
    page: str | None  # where it is told turn by turn, if it is


def _games_of_row(row: _Row, results: Results) -> dict[tuple[int, int], _Ended]:
    """Every game of a row, or the first ones, by its deal and its place in the deal."""
    run = row.of.run
    seats, per_deal = run.planned.contender_seats, run.planned.games_per_deal
    shown = {*games_of(row.of).games}
    query = "SELECT game, outcome FROM games WHERE (game % ?) / ? = ? ORDER BY game LIMIT ?"
    found = {}
    for game, packed in run.db.read(query, (per_deal, seats, row.place, _LISTED)):
        outcome = run.outcome(packed)
        seat = outcome.contender_seat or 0
        ended = results.ended_in_words(outcome.marks[seat], outcome.capped)
        page = f"{report_of(row.of)}/games/{game}.html" if game in shown else None
        told = _Ended(game, len(outcome.seats), seat, ended, outcome.game_counts[0], page)
        found[game // per_deal, game % seats] = told
    return found


def _page_of_pair(board: _Board, pair: PairRow) -> Page:
    """How two rows differ on their common deals, and the games in which they do."""
    one, other = board.rows[pair.one.name], board.rows[pair.other.name]
    names = [board.label(one.id), board.label(other.id)]
    measures = [board.results.measure(key) for key in board.results.headline]
    differences = [pair.differences[each.key] for each in measures]
    assert board.order is not None
    first, second = (board.order.names.index(row.id) for row in (one, other))
    order = board.order.pair(first, second, differences[0].more_games)
    said = f"{board.ranked[0].deals:,} common deals. {verdict_in_words(order, board.labelled)}"
    key = board.path_of(pair).partition("/")[2].partition(".")[0]
    columns = [Column(each.key, f"{each.title}, more than {names[1]}", difference_of(each)) for each in measures]
    table = ResultTable(
        key,
        "Paired differences on the same deals, with 95 % confidence intervals",
        [Column("player", "player", "text"), *columns],
        [[names[0], *(each.rate for each in differences)]],
        links=[one.path],
    )
    alike, listed = _differing(f"{key}-games", board.games[one.id], board.games[other.id], names)
    sections = [
        Section("Summary", [Paragraph(said, answer=True), table]),
        Section("Where they differ", [Paragraph(alike), listed]),
        Section("The two rows", [NamedValues([(names[0], one.of.file), (names[1], other.of.file)])]),
    ]
    title = " against ".join(names)
    preview = Preview(f"{title} at {_title_of(board)}. {said}", _chart_of(board), names)
    return Page(board.path_of(pair), title, sections, preview=preview)


def _differing(
    key: str,
    one: Mapping[tuple[int, int], _Ended],
    other: Mapping[tuple[int, int], _Ended],
    names: Sequence[str],
) -> tuple[str, ResultTable]:
    """How often two rows end alike on the same cards, and the games in which they do not."""
    both = sorted(one.keys() & other.keys())
    apart = [at for at in both if one[at].result != other[at].result]
    columns = [*counts("deal", "size", "seat")]
    columns += [
        Column(f"{part}{number}", title, "text")
        for number, name in enumerate(names)
        for part, title in (("game", f"game of {name}"), ("result", f"{name} has"))
    ]
    games = [(one[at], other[at]) for at in apart]
    cells: list[list[Value]] = [
        [at[0], first.size, first.seat, f"{first.game}", first.result, f"{second.game}", second.result]
        for at, (first, second) in zip(apart, games, strict=True)
    ]
    links = {f"game{number}": [each[number].page for each in games] for number in range(2)}
    said = (
        f"In {len(both) - len(apart):,} of {len(both):,} games on the same cards from the same seat both end alike; "
        f"in {len(apart):,} they do not."
    )
    title = "The same cards, another end: a game that is a link can be seen turn by turn"
    return said, ResultTable(key, title, columns, cells, more_links=links)


def _page_of_games(board: _Board, row: _Row) -> Page:
    """Every game of a row, or the first ones, each with what it came to."""
    columns = [*texts("game"), *counts("deal", "size", "seat"), *texts("result"), *counts(board.results.game_counts[0])]
    games = board.games[row.id]
    cells: list[list[Value]] = [
        [f"{one.game}", deal, one.size, one.seat, one.result, one.length] for (deal, _), one in games.items()
    ]
    links = [one.page for one in games.values()]
    file = shlex.quote(one_line(row.of.file.rpartition("/")[2], 120))
    notes = [f"One of them, turn by turn: dubito replay {file} --game K"]
    notes += [f"The first {_LISTED:,} games."] if len(cells) == _LISTED else []
    key = f"{row.of.key}-{row.place}-games"
    table = ResultTable(key, f"Games of {one_line(row.name)}", columns, cells, notes, links)
    return Page(row.games_path, f"Games of {one_line(row.name)}", [Section("Games", [table])])
