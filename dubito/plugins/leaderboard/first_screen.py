"""The first screen of a leaderboard: the best players, a chart, each model's rung and its best lie."""

from collections.abc import Iterator
from typing import Final

from dubito.errors import pluralize
from dubito.experiment.experiment import describe_fake_models
from dubito.plugins.leaderboard.board import Board, Row, build_title, choose_games, report_path
from dubito.report.own_words import ModelMoment, model_moment
from dubito.report.players import compare_with_first, draw_scores
from dubito.report.tables import (
    Block,
    Climber,
    Ladder,
    Paragraph,
    Pills,
    ScoreChart,
    ScoreChartRow,
    Section,
    Tiles,
    cell_text,
    column_kind,
    difference_kind,
)
from dubito.report.verdicts import describe_winner
from dubito.show.run import ReplayedGames
from dubito.stats.relation import PRELIMINARY, find_rung
from dubito.store.spend import dollars

_RUNGS: Final = (
    "Hand-written bots are the rungs. A model is on the strongest bot that it significantly beats, by Holm's method "
    "for all pairs; the line below its name says which is the weakest bot that beats it."
)
_OF_PAGES: Final = "Of the games that have a page."


def describe_answer(board: Board) -> tuple[str, str]:
    """Return the headline, and a sentence about how certain it is."""
    if board.relation is None:
        return f"{board.label(board.ranked[0].contender.name)} is the only row so far", ""
    return describe_winner(board.relation, board.label)


def build_sections(board: Board, *, alone: bool) -> Iterator[Section]:
    """Yield a book's sections. If it is the only one, its answer is already the page's heading."""
    rows = [board.row(each) for each in board.ranked]
    answer, sure = describe_answer(board)
    blocks: list[Block] = [Paragraph(text, warning=True) for text in _warnings(rows)]
    blocks += [Paragraph(" ".join(([] if alone else [answer]) + [sure]))] if sure or not alone else []
    is_preliminary = board.relation is not None and board.relation.deals < PRELIMINARY
    marked = [f"Preliminary: only {pluralize(board.ranked[0].deals, 'deal')}"] if is_preliminary else []
    yield Section(
        "" if alone else build_title(board),
        [*blocks, Pills(marked, [*([build_title(board)] if alone else []), _describe_cost(rows)]), _draw_chart(board)],
    )
    if (ladder := _build_ladder(board)) is not None:
        yield Section("The rung that each model reaches", [Paragraph(_RUNGS), ladder])
    if lies := [*_best_lies(rows)]:
        yield Section("The best lie of each model", [Paragraph(_OF_PAGES), *lies])


def _warnings(rows: list[Row]) -> list[str]:
    text = describe_fake_models({row.name: row.kind for row in rows})
    return [text] if text else []


def _describe_cost(rows: list[Row]) -> str:
    paid = [row.log.picodollars for row in rows if row.log is not None]
    if not paid:
        return "No models played, so nothing was spent."
    return "Cost unknown." if None in paid else f"Cost (claimed): {dollars(sum(filter(None, paid)))} for all rows."


def _draw_chart(board: Board) -> ScoreChart:
    first = board.results.measure(board.results.headline[0])
    drawn = []
    for each in board.ranked:
        row, relation = board.row(each), board.relation
        beside = ("", "", False)
        if relation is not None:
            beside = compare_with_first(relation, row.id, difference_kind(first))
        drawn.append(ScoreChartRow(board.label(row.id), row.kind, row.path, each.rates[first.key], *beside))
    return draw_scores(first, [row for row in drawn if row.rate.value is not None])


def _build_ladder(board: Board) -> Ladder | None:
    """Return the rungs of all models, or None without models or without hand-written bots."""
    relation, rows = board.relation, [board.row(each) for each in board.ranked]
    bots = [row for row in rows if row.kind == "hand-written"]
    models = [row for row in rows if row.log is not None]
    if relation is None or not bots or not models:
        return None
    on: dict[str | None, list[Climber]] = {}
    for row in models:
        rung = find_rung(relation, row.id, [bot.id for bot in bots])
        text = f"loses to {board.label(rung.loses_to)}" if rung.loses_to else "loses to no bot"
        on.setdefault(rung.beats, []).append(_climber(board, row, text))
    rungs = [(_climber(board, bot, _score(board, bot)), on.get(bot.id, [])) for bot in bots]
    return Ladder(rungs, on.get(None, []))


def _climber(board: Board, row: Row, text: str) -> Climber:
    return Climber(board.label(row.id), row.kind, row.path, text)


def _score(board: Board, row: Row) -> str:
    first = board.results.measure(board.results.headline[0])
    ranked = next(each for each in board.ranked if each.contender.name == row.id)
    return f"{first.column_title} {cell_text(ranked.rates[first.key], column_kind(first))}"


def _best_lies(rows: list[Row]) -> Iterator[Tiles]:
    """Yield each model's uncaught lie with the most cards at stake, rather one with its own words."""
    for row in rows:
        found = [*_lies(row)]
        if found:
            game, moment = max(found, key=lambda one: (one[1].quote is not None, one[1].stake, -one[0]))
            link = f"{report_path(row.submission)}/games/{game}.html#turn-{moment.opens}"
            quote = f"“{moment.quote['text']}”" if moment.quote else "It gave no reason."
            more = f"{pluralize(moment.stake)} on the pile · game {game}, turn {moment.opens}"
            yield Tiles(row.name, row.kind, row.path, (), quote, [(moment.event, link, more, ())])


def _lies(row: Row) -> Iterator[tuple[int, ModelMoment]]:
    """Yield the best lie in each of the row's games that have a page."""
    run = row.submission.run
    if row.log is None or not run.game.results.lies:
        return
    per_deal, seats = run.planned.games_per_deal, run.planned.contender_seats
    own = (game for game in choose_games(row.submission).games if game % per_deal // seats == row.place)
    for game, story in ReplayedGames(run).stories(own):
        if (moment := model_moment(story, only_lies=True)) is not None:
            yield game, moment
