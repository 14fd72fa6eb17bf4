"""Pages that compare two contenders' choices at the same positions of the same deals."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Final

from dubito.errors import one_line, pluralize
from dubito.game import Results
from dubito.report.positions import (
    HONEST,
    OTHER_MOVE,
    PASSED,
    Side,
    Split,
    find_splits,
    join_kinds,
    show_position,
)
from dubito.report.run_tables import pairs_table
from dubito.report.tables import (
    Block,
    Column,
    Links,
    Page,
    Paragraph,
    PositionFilters,
    ResultTable,
    Section,
    column_kind,
)
from dubito.report.verdicts import describe_winner
from dubito.stats.ranking import Contender, contender_pairs, relate_contenders
from dubito.stats.tally import Tally

_MAX_PAIRS: Final = 15  # maximum number of pairs with their own page
_MAX_POSITIONS: Final = 30  # positions on a page
_MAX_FILTERS: Final = 6
_AFTERWARDS: Final = (
    "“Afterwards” is about two whole games that part here, so it includes everything that happened later. The "
    "positions with the largest difference come first."
)
_WITH_ODDS: Final = " The chance of winning after each choice is estimated by playing the game on from there."
_NOTHING: Final = "There is nothing to compare: no deal has pages for both games. Write the report with `--games all`."

_ByKinds = Mapping[tuple[str, str], Sequence[Split]]


def compare_pages(
    sides: Sequence[Side], tally: Tally, contenders: Sequence[Contender], results: Results, *, odds: bool = False
) -> Iterator[Page]:
    """Yield a page for each pair of contenders, best pair first. With `odds`, show the winning chances."""
    pairs = contender_pairs(tally, contenders, results)
    relation = relate_contenders(tally, contenders, results, pairs)
    assert relation is not None
    by_name = {side.name: side for side in sides}
    table = pairs_table(pairs, relation.deals, results)
    paths = ["compare.html" if not place else f"compare-{place + 1}.html" for place in range(len(pairs))]
    table = table.with_links([path if place < _MAX_PAIRS else None for place, path in enumerate(paths)])
    first_rows = [replace(one, values=one.values[:_MAX_PAIRS], links=one.links[:_MAX_PAIRS]) for one in table.columns]
    with_pages = replace(table, columns=first_rows)
    titles = [f"{one_line(pair.one.name)} and {one_line(pair.other.name)}" for pair in pairs[:_MAX_PAIRS]]
    for place, (path, pair) in enumerate(zip(paths[:_MAX_PAIRS], pairs, strict=False)):
        answer, sure = describe_winner(relation.only(pair.one.name, pair.other.name))
        one, other = by_name[pair.one.name], by_name[pair.other.name]
        splits, compared = find_splits(one, other)
        grouped: dict[tuple[str, str], list[Split]] = {}
        for split in splits:
            grouped.setdefault(split.kinds(results), []).append(split)
        # the kinds of both moves, the most frequent first
        by_kinds = dict(sorted(grouped.items(), key=lambda item: -len(item[1])))
        lead = Paragraph(" ".join(filter(None, (answer, sure, _describe_splits(splits, compared)))))
        sections = [Section("", [lead]), *_positions(one, other, splits, by_kinds, odds=odds)]
        if len(titles) > 1:
            links = [(text, to, "") for text, to in zip(titles, paths, strict=False) if to != path]
            sections.append(Section("Other pairs", [Links(links)]))
        # Only the first page has pairs without a page.
        more: list[Block] = [with_pages if place else table]
        if len(by_kinds) > 1:
            more.append(_kinds_table(one, other, by_kinds, results, f"compare-{place + 1}"))
        sections.append(Section("More: tables and files", more, folded=True))
        title = f"{titles[place]}, side by side"
        yield Page(path, title, sections, heading=_headline(one, other, by_kinds, results) or answer, about=title)


def _headline(one: Side, other: Side, by_kinds: _ByKinds, results: Results) -> str:
    """Describe the most frequent difference, if any, in a sentence."""
    if not by_kinds or set(by_kinds) == {(OTHER_MOVE, OTHER_MOVE)}:
        return ""
    names, total = _short_names(one, other), sum(map(len, by_kinds.values()))
    of_all = f"of the {pluralize(total, 'choice')} that differ{'' if total > 1 else 's'}"
    same = sum(len(splits) for (mine, theirs), splits in by_kinds.items() if mine == theirs)
    if 2 * same > total:
        return f"{names[0]} and {names[1]} make the same kind of move in {same} {of_all}"
    mine, theirs = next(kinds for kinds in by_kinds if kinds[0] != kinds[1])
    count = len(by_kinds[mine, theirs])
    return f"{names[0]} {_verb(mine, results)} where {names[1]} {_verb(theirs, results)}: {count} {of_all}"


def _short_names(one: Side, other: Side) -> Sequence[str]:
    """Return what tells two names apart: the prompts of one model, or names without their providers."""
    names = [one_line(side.name) for side in (one, other)]
    (model, _, prompt), (other_model, _, other_prompt) = (name.partition("@") for name in names)
    if model == other_model and prompt and other_prompt:
        return prompt, other_prompt
    short = [name.partition(":")[2] or name for name in names]
    return short if short[0] != short[1] else names


def _verb(kind: str, results: Results) -> str:
    """Return a kind of move as a verb."""
    lie, call = results.lie_words
    verbs = {lie: f"{lie}s", call: f"{call}s", HONEST: "plays honestly", PASSED: "lets it pass"}
    return verbs.get(kind, f"chooses “{kind}”")


def _describe_splits(splits: Sequence[Split], compared: int) -> str:
    if not compared:
        return _NOTHING
    if not splits:
        return f"They never decided differently in {pluralize(compared, 'compared game')}."
    return (
        f"Both played the same seat of the same deals, so their games are identical until they first choose "
        f"differently. That happened in {len(splits):,} of {pluralize(compared, 'compared game')}, at these positions."
    )


def _positions(one: Side, other: Side, splits: Sequence[Split], by_kinds: _ByKinds, *, odds: bool) -> Iterator[Section]:
    """Yield a section with the positions, the largest difference first."""
    if not splits:
        return
    results, names = one.run.game.results, _short_names(one, other)
    filters = []
    for kinds in islice(by_kinds, _MAX_FILTERS):
        mine, theirs = (_verb(kind, results) for kind in kinds)
        label = f"Each {mine}" if mine == theirs else f"{names[0]} {mine}, {names[1]} {theirs}"
        filters.append((label, join_kinds(kinds)))
    blocks: list[Block] = [PositionFilters(filters)] if len(filters) > 1 else []
    blocks += [show_position(one, other, split, odds=odds) for split in splits[:_MAX_POSITIONS]]
    if len(splits) > _MAX_POSITIONS:
        blocks.append(Paragraph(f"Only the first {_MAX_POSITIONS} of {len(splits):,} positions are shown."))
    blocks.append(Paragraph(_AFTERWARDS + _WITH_ODDS * odds))
    yield Section("", blocks)


def _kinds_table(one: Side, other: Side, by_kinds: _ByKinds, results: Results, key: str) -> ResultTable:
    """Return a table of the moves that the sides made at these positions, and what followed."""
    first = results.measures[0]
    columns = [
        Column("one", one.label, "text", [kind for kind, _ in by_kinds]),
        Column("other", other.label, "text", [kind for _, kind in by_kinds]),
        Column("times", "times", "count", [*map(len, by_kinds.values())]),
    ]
    for side, side_key, label in ((0, "one", one.label), (1, "other", other.label)):
        scores = [sum(split.games[side].score for split in those) / len(those) for those in by_kinds.values()]
        title = f"{label}'s {first.column_title} afterwards"
        columns.append(Column(f"{side_key}_score", title, column_kind(first), scores))
    return ResultTable(key, "What they did when they first differed", columns)
