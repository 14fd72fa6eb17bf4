"""Build the leaderboard's pages: the verified rows of each book, the invalid files, and a page for each row.

The pages only depend on the submissions, and not on the time or the machine.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from dubito.errors import one_line
from dubito.game import FALLBACK_OUTCOME
from dubito.plugins.leaderboard.board import (
    MAX_LISTED_GAMES,
    Board,
    GameResult,
    Row,
    build_board,
    build_title,
    command_with,
    report_path,
)
from dubito.plugins.leaderboard.first_screen import build_sections, describe_answer
from dubito.plugins.leaderboard.submissions import MIN_SAMPLE, Submissions
from dubito.report.run_tables import describe_significance, list_cautions
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
    Verbatim,
    column_kind,
    difference_kind,
    kind_title,
    measure_unit,
    points,
)
from dubito.report.verdicts import describe_verdict
from dubito.stats.players import fallback_share
from dubito.stats.ranking import ContenderRow, PairRow
from dubito.stats.relation import FALLBACK_LIMIT, ComparedPair, Relation
from dubito.store.folder import to_yaml
from dubito.store.spend import dollars

_TIERS: Final = (
    (
        "replayed",
        "Every game was replayed offline from the recorded replies: all requests, decisions, outcomes, counts and "
        "digests are identical. This fully verifies a hand-written bot, because its moves are recomputed. For a "
        "model "
        "it proves that the games follow from the replies, but not which model gave them.",
    ),
    (
        "attested",
        "In addition, every reply has an id and a model name, and a maintainer repeated at least "
        f"{MIN_SAMPLE} of the requests twice: the model agrees with the submission as often as with itself, within the "
        "95 % confidence interval of the paired difference.",
    ),
    (
        "challenged",
        "The replay is identical, but a maintainer disputes the run or the sample disagrees. Its page has the reason.",
    ),
    ("invalid", "The run could not be verified. It has no row, but is listed with the first reason."),
)
_NOT_VERIFIED: Final = (
    "What is marked as claimed comes from the submitted file: a replay cannot verify kinds of players, servers, names "
    "of models, tokens, costs, status codes, the commands and files of programs, dates or versions. It "
    "also cannot show that a run is the only one: someone could play twenty times and submit the best run. That is why "
    "everyone plays the book's deals."
)
_ROWS: Final = (
    "A rank is a range: rows that beat this row are ranked above it, and rows that it beats are ranked below it. A row "
    "beats another if their paired difference on the same deals is significant, with Holm's method for several pairs. "
    f"If more than {100 * FALLBACK_LIMIT:g} % of a row's games had a fallback or forfeit, its wins and losses count "
    "only if these games cannot change the order. Intervals are 95 %."
)


def leaderboard_pages(submissions: Submissions, title: str = "Leaderboard") -> Iterator[Page]:
    """Yield the index page, two pages per row, and one page per pair."""
    boards = [build_board(f"board-{number}", *book) for number, book in enumerate(submissions.books)]
    yield _index_page(submissions, boards, title)
    for board in boards:
        for place, ranked in enumerate(board.ranked):
            yield _page_of_row(board, place, ranked)
            yield _page_of_games(board, board.row(ranked))
        yield from (_page_of_pair(board, pair) for pair in board.pairs)


def _index_page(submissions: Submissions, boards: Sequence[Board], title: str) -> Page:
    rows = sum(len(board.rows) for board in boards)
    counted = f"{rows:,} row{'s' * (rows != 1)}, each replayed offline from its file"
    invalid = len(submissions.invalid)
    listed = f"{invalid:,} invalid {'file is' if invalid == 1 else 'files are'} listed under More"
    summary = f"{counted}; {listed}." if invalid else f"{counted}."
    answers = [_summary_sentence(board) for board in boards]
    sections = [section for board in boards for section in build_sections(board, alone=len(boards) == 1)]
    more: list[Block] = [block for board in boards for block in _build_blocks(board)]
    if invalid:
        columns = [
            Column("file", "file", "text", [one_line(one.file, 120) for one in submissions.invalid]),
            Column("tier", "tier", "text", ["invalid" for _ in submissions.invalid]),
            Column("reason", "reason", "text", [one.reason for one in submissions.invalid]),
        ]
        more.append(ResultTable("refused", "Invalid, with the first reason", columns))
    files = [one.file for _, runs in submissions.books for one in runs]
    more += _check_instructions(files[0]) if files else []
    more += [NamedValues(_TIERS, "What a row proves"), Paragraph(_NOT_VERIFIED)]
    sections.append(Section("More: all rows, what they prove, and how to check one", more, folded=True))
    preview = Preview(" ".join([*answers, summary]), _build_chart(boards[0]) if boards else None)
    heading = describe_answer(boards[0])[0] if len(boards) == 1 else ""
    about = f"{one_line(title)} · {summary}"
    return Page("index.html", one_line(title), sections, heading=heading, about=about, preview=preview)


def _summary_sentence(board: Board) -> str:
    if board.relation is None:
        return f"{board.label(board.ranked[0].contender.name)} is the only row of {build_title(board)}."
    text = describe_verdict(board.relation, board.label_with_kind)
    return f"{one_line(board.book)}: {text}" if board.book else text


def _build_blocks(board: Board) -> list[Block]:
    """Return what a book's first screen leaves out."""
    rows = [board.row(each) for each in board.ranked]
    blocks: list[Block] = [Paragraph(_summary_sentence(board), answer=True)]
    if any(row.dollars for row in rows):
        blocks.append(_cost_chart(board, rows, [board.label(row.id) for row in rows]))
    blocks.append(_build_table(board))
    if board.relation and (notes := list_cautions(_relation_by_label(board, board.relation))):
        blocks.append(Paragraph(" ".join(notes)))
    return blocks


def _build_chart(board: Board) -> Chart:
    first = board.results.measure(board.results.headline[0])
    names, rates = (
        [board.label(board.row(each).id) for each in board.ranked],
        [each.rates[first.key] for each in board.ranked],
    )
    title = f"{first.name} of each row with its 95 % confidence interval"
    return Chart("intervals", title, first.heading, names, [points(first.name, rates, measure_unit(first))])


def _relation_by_label(board: Board, relation: Relation) -> Relation:
    return replace(relation, names=[board.label(name) for name in relation.names])


def _cost_chart(board: Board, rows: Sequence[Row], names: Sequence[str]) -> Chart:
    first = board.results.measure(board.results.headline[0])
    scaled = points(first.name, [each.rates[first.key] for each in board.ranked], measure_unit(first))["points"]
    kinds = [row.kind_in_words for row in rows]
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
    return Chart("scatter", title, "dollars (claimed), for all these deals", names, series, vertical=first.heading)


def _build_table(board: Board) -> ResultTable:
    first = board.results.measure(board.results.headline[0])
    rows = [board.row(each) for each in board.ranked]
    kinds, logs = [row.kind_in_words for row in rows], [row.log for row in rows]
    models = [one_line(", ".join(row.answerers.ids), 120) if row.answerers else None for row in rows]
    files = [one_line(row.submission.file, 120) for row in rows]
    reports = [f"{report_path(row.submission)}/index.html" for row in rows]
    fallbacks = [None if log is None else fallback_share(log.outcomes) for log in logs]
    rates, games = [each.rates[first.key] for each in board.ranked], [row.games_path for row in rows]
    columns = [
        Column("player", "player", "text", [board.label(row.id) for row in rows], [row.path for row in rows]),
        Column("rank", "rank", "text", [board.ranks(place) for place in range(len(rows))]),
        Column(first.key, first.column_title, column_kind(first), rates, games),
        Column("tier", "tier", "text", [row.submission.tier for row in rows]),
        Column("kind", kind_title(kinds), "kind", kinds),
        Column("server", "server (claimed)", "text", [row.server for row in rows]),
        Column("answered", "answered by (claimed)", "text", [names or None for names in models]),
        Column("prompt", "prompt", "text", [row.spec.prompt[:12] or None for row in rows]),
        Column("calls", "calls", "count", [None if log is None else log.calls for log in logs]),
        Column("cost", "dollars (claimed)", "dollars", [None if log is None else log.picodollars for log in logs]),
        Column("fallback", "fallback %", "rate", fallbacks),
        Column("file", "submission", "text", files, reports),
    ]
    title = "All rows: click a name for its page, a number for its games, a file for its run's report"
    return ResultTable(board.key, title, columns, [_ROWS])


def _check_instructions(file: str, digest: str = "") -> list[Block]:
    expected = f"identical: ...\nresults digest: {digest}" if digest else "identical: ..., and the row's results digest"
    return [
        Paragraph(
            "Download the submission and replay it in a clone of Dubito. No key, network or model is needed. The "
            "command replays every game and prints the results digest, or the first difference."
        ),
        Verbatim("Run", command_with("replay", file)),
        Verbatim("Expected output", expected),
    ]


def _page_of_row(board: Board, place: int, ranked: ContenderRow) -> Page:
    row, first = board.row(ranked), board.results.measure(board.results.headline[0])
    run = row.submission.run
    blocks: list[Block] = [
        Paragraph(text, warning=row.submission.tier == "challenged") for text in row.submission.tier_reasons
    ]
    tier = dict(_TIERS)[row.submission.tier]
    shown = [(row.games_path, "its games"), (f"{report_path(row.submission)}/index.html", "the whole run, as a report")]
    column = Column("more", "more", "text", [text for _, text in shown], [path for path, _ in shown])
    more = ResultTable(f"{row.submission.key}-{row.place}-more", "Where its numbers come from", [column])
    sections = [
        Section("What it is", [NamedValues(_facts(row, board.ranks(place), ranked)), *blocks, Paragraph(tier)]),
        Section(
            "Against the others",
            [_build_pairs_table(board, row)] if board.pairs else [Paragraph("This is the only row so far.")],
        ),
        Section(
            "Its games",
            [more],
        ),
        Section("Check it yourself", _check_instructions(row.submission.file, run.results_digest)),
    ]
    rate = ranked.rates[first.key]
    score = "" if rate.value is None else f" {first.name} {measure_unit(first) * rate.value:.1f}."
    rank = f"rank {board.ranks(place)} of {len(board.rows)}, {row.submission.tier}."
    preview = Preview(
        f"{board.label(row.id)} at {build_title(board)}: {rank}{score}", _build_chart(board), [board.label(row.id)]
    )
    return Page(row.path, board.label(row.id), sections, preview=preview)


def _facts(row: Row, ranks: str, ranked: ContenderRow) -> list[tuple[str, str]]:
    run, spec, log = row.submission.run, row.spec, row.log
    facts = [
        ("rank", ranks),
        ("tier", row.submission.tier),
        (kind_title([row.kind]), row.kind_in_words),
        ("bot", f"{spec.bot}, file {spec.source}"),
        ("deals", f"{ranked.deals:,}"),
        ("seed", run.seed_in_words),
        ("submission", row.submission.file),
        ("sha256 of the file", row.submission.sha256),
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
        ("server (claimed)", row.server or "not recorded"),
        ("requested model", log.asked or "not recorded"),
        (
            "answering models (claimed)",
            ", ".join(f"{name} ({count:,} replies)" for name, count in ids.items()) or "not stated",
        ),
        ("prompt", f"{spec.settings.get('prompt')}, digest {spec.prompt}"),
        ("decisions", f"{log.decisions:,}"),
        ("fallbacks", f"{sum(fallbacks.values()):,}{f' ({causes})' if causes else ''}"),
        ("calls (claimed)", f"{log.calls:,}"),
        ("tokens (claimed)", f"{log.tokens['input']:,} in, {log.tokens['output']:,} out"),
        ("cost (claimed)", "no price" if log.picodollars is None else dollars(log.picodollars)),
    ]


def _build_pairs_table(board: Board, row: Row) -> ResultTable:
    """Return the paired differences between a row and every other row."""
    measures = [board.results.measure(key) for key in board.results.headline]
    pairs = [pair for pair in board.pairs if row.id in (pair.one.name, pair.other.name)]
    others = [board.rows[pair.other.name if pair.one.name == row.id else pair.one.name] for pair in pairs]
    names, links = [board.label(other.id) for other in others], [other.path for other in others]
    columns = [Column("against", "against", "text", names, links)]
    paths = [board.page_path(pair) for pair in pairs]
    for one in measures:
        differences = [_difference_of(row, pair, one.key).difference for pair in pairs]
        columns.append(Column(one.key, f"{one.title}, difference", difference_kind(one), differences, paths))
    verdicts = [describe_significance(_difference_of(row, pair, measures[0].key)) for pair in pairs]
    columns.append(Column("apart", f"{measures[0].title} significant", "text", verdicts))
    key = f"{row.submission.key}-{row.place}-pairs"
    title = (
        "Paired differences on the same deals, with 95 % confidence intervals. Click a name for its page, a number for "
        "the pair's page"
    )
    return ResultTable(key, title, columns)


def _difference_of(row: Row, pair: PairRow, key: str) -> ComparedPair:
    return pair.differences[key] if pair.one.name == row.id else -pair.differences[key]


def _page_of_pair(board: Board, pair: PairRow) -> Page:
    """Build the page that compares two rows on their common deals, with the games that differ."""
    one, other = board.rows[pair.one.name], board.rows[pair.other.name]
    names = [board.label(one.id), board.label(other.id)]
    measures = [board.results.measure(key) for key in board.results.headline]
    assert board.relation is not None
    verdict = describe_verdict(board.relation.only(one.id, other.id), board.label_with_kind)
    summary = f"{board.ranked[0].deals:,} common deals. {verdict}"
    key = board.page_path(pair).partition("/")[2].partition(".")[0]
    columns = [Column("player", "player", "text", names[:1], [one.path])]
    for each in measures:
        title, value = f"{each.title}, difference from {names[1]}", pair.differences[each.key].difference
        columns.append(Column(each.key, title, difference_kind(each), [value]))
    table = ResultTable(key, "Paired differences on the same deals, with 95 % confidence intervals", columns)
    counts_text, listed = _differing_games(f"{key}-games", board.games[one.id], board.games[other.id], names)
    sections = [
        Section("Summary", [Paragraph(summary, answer=True), table]),
        Section("Where they differ", [Paragraph(counts_text), listed]),
        Section("The two rows", [NamedValues([(names[0], one.submission.file), (names[1], other.submission.file)])]),
    ]
    title = " against ".join(names)
    preview = Preview(f"{title} at {build_title(board)}. {summary}", _build_chart(board), names)
    return Page(board.page_path(pair), title, sections, preview=preview)


def _differing_games(
    key: str,
    one: Mapping[tuple[int, int], GameResult],
    other: Mapping[tuple[int, int], GameResult],
    names: Sequence[str],
) -> tuple[str, ResultTable]:
    """Describe how often two rows had the same result on the same cards, and tabulate the other games."""
    both = sorted(one.keys() & other.keys())
    differing = [at for at in both if one[at].result != other[at].result]
    columns = [
        Column("deal", "deal", "count", [deal for deal, _ in differing]),
        Column("size", "size", "count", [one[at].size for at in differing]),
        Column("seat", "seat", "count", [one[at].seat for at in differing]),
    ]
    for number, (name, games) in enumerate(zip(names, (one, other), strict=True)):
        shown, results = [games[at] for at in differing], [games[at].result for at in differing]
        numbers, pages = [f"{each.game}" for each in shown], [each.page for each in shown]
        columns.append(Column(f"game{number}", f"game of {name}", "text", numbers, pages))
        columns.append(Column(f"result{number}", f"result of {name}", "text", results))
    sentence = (
        f"{len(both):,} games were played on the same cards from the same seat. Both had the same result in "
        f"{len(both) - len(differing):,} of them and different results in {len(differing):,}."
    )
    title = "Same cards, different results. Linked games can be viewed turn by turn"
    return sentence, ResultTable(key, title, columns)


def _page_of_games(board: Board, row: Row) -> Page:
    """Build the page that lists a row's games with their results."""
    games, length = board.games[row.id], board.results.game_counts[0]
    shown = [*games.values()]
    columns = [
        Column("game", "game", "text", [f"{one.game}" for one in shown], [one.page for one in shown]),
        Column("deal", "deal", "count", [deal for deal, _ in games]),
        Column("size", "size", "count", [one.size for one in shown]),
        Column("seat", "seat", "count", [one.seat for one in shown]),
        Column("result", "result", "text", [one.result for one in shown]),
        Column(length, length, "count", [one.length for one in shown]),
    ]
    notes = [f"To see a game turn by turn: {command_with('replay', row.submission.file, '--game', 'K')}"]
    notes += [f"The first {MAX_LISTED_GAMES:,} games."] if len(games) == MAX_LISTED_GAMES else []
    key = f"{row.submission.key}-{row.place}-games"
    table = ResultTable(key, f"Games of {one_line(row.name)}", columns, notes)
    return Page(row.games_path, f"Games of {one_line(row.name)}", [Section("Games", [table])])
