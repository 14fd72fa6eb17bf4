"""Pages that compare two contenders' choices at the same positions of the same deals.

Contenders take the same seats in the same deals, and each deal's random draws are the same. Two games of a deal are
therefore identical until the contenders first decide differently. The page shows that position with both choices, both
results and the cost of the choice.
"""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any, Final

from dubito.errors import DubitoError, one_line, pluralize
from dubito.experiment.stored import Run
from dubito.game import PlayerKind, Results
from dubito.report.run_tables import pairs_table
from dubito.report.tables import (
    Block,
    Column,
    DrawnCards,
    Page,
    Paragraph,
    ResultTable,
    Section,
    ShownChoice,
    ShownPosition,
    column_kind,
)
from dubito.report.verdicts import describe_winner
from dubito.show.odds import load_odds
from dubito.show.run import ReplayedGames
from dubito.show.story import (
    ModelDecisions,
    Texts,
    count_cards,
    drawn_cards,
    list_moves,
    panel_states,
    played_cards,
    story_of_game,
)
from dubito.stats.ranking import Contender, contender_pairs, relate_contenders
from dubito.stats.rates import Rate
from dubito.stats.tally import Tally

_MAX_PAIRS: Final = 15  # maximum number of pairs with their own page
_MAX_DEALS: Final = 100  # number of deals whose games are played again
_MAX_POSITIONS: Final = 30  # positions on a page
_MAX_REASON: Final = 300  # characters
_EXPLANATION: Final = (
    "Both players take the same seat in the same deal, so their games are identical until they first decide "
    "differently. The costliest choices come first. The cost is the difference between the results of the two games, "
    "so it includes everything that happens later."
)
_OTHER_MOVE: Final = "other move"
_WITH_ODDS: Final = " The chance of winning after each choice is estimated by playing the game on from there."


@dataclass(frozen=True)
class Side:
    """One contender of a compared run.

    `pages` is the location of its run's pages, and `with_pages` lists the games that have one.
    """

    name: str
    run: Run
    place: int  # index among the contenders of its run
    pages: str
    with_pages: Collection[int]
    replays: ReplayedGames  # shared by the contenders of a run
    _played: dict[int, "ReplayedGame"] = field(default_factory=dict)
    _decisions: dict[int, list[dict[str, Any]]] = field(default_factory=dict)

    @property
    def kind(self) -> PlayerKind:
        return self.run.kinds[self.run.contenders[self.place]]

    @property
    def label(self) -> str:
        """The name for headings, which do not show the player's kind separately."""
        own = self.run.contenders[self.place]
        return self.run.label(own) if self.name == own else one_line(self.name)

    def games(self, deal: int) -> range:
        seats = self.run.planned.contender_seats
        first = deal * self.run.planned.games_per_deal + self.place * seats
        return range(first, first + seats)

    def play(self, number: int) -> "ReplayedGame":
        """Replay a game. Raises DubitoError if it cannot be repeated."""
        if number not in self._played:
            run, results = self.run, self.run.game.results
            session, names, outcome = self.replays.replay(number)
            assert outcome is not None
            assert outcome.contender_seat is not None
            session.start_recording(run.planned.rules)
            story = story_of_game(session, session.reader.names(len(names)))
            first, seat = results.measures[0], outcome.contender_seat
            rate = Rate(outcome.measure_seats(results)[seat][0] / first.scale).on_span(first.span)
            ending = results.describe_ending(outcome.marks[seat], outcome.capped)
            self._played[number] = ReplayedGame(number, story, session.outputs, seat, ending, rate.value or 0.0)
        return self._played[number]

    def decisions(self, game: "ReplayedGame") -> list[dict[str, Any]]:
        """Return this side's model decisions in a game."""
        if game.number not in self._decisions:
            asked = ModelDecisions(self.run.db, self.run.game)
            self._decisions[game.number] = asked.decisions(game.number, game.story, Texts())
        return self._decisions[game.number]


@dataclass(frozen=True)
class ReplayedGame:
    """A replayed game, with its contender's seat and score."""

    number: int
    story: Mapping[str, Any]
    outputs: Sequence[Any]
    seat: int
    ending: str
    score: float

    def cards_after(self, turn: int) -> int | None:
        """Return how many cards the contender holds after the next turn, in games that show hands."""
        held = count_cards(self.story)
        return held[min(turn + 1, len(held) - 1)][self.seat] if held else None

    def describe_view(self, turn: int) -> str:
        """Return the text that the contender sees before a turn, unless it is drawn as cards."""
        panel = self._panel(turn)
        return "" if panel.get("cards") else panel.get("truth") or panel.get("public", "")

    def hand(self, turn: int) -> DrawnCards:
        """Return the contender's cards before a turn."""
        return drawn_cards(self.story, self._panel(turn).get("cards", ()))

    def _panel(self, turn: int) -> dict[str, Any]:
        panels = next(islice(panel_states(self.story), turn - 1, None))
        return next((panel for panel in panels if panel.get("seat") == self.seat), {})


@dataclass(frozen=True)
class Split:
    """Two games of a deal, and the move at which they first differ."""

    deal: int
    games: tuple[ReplayedGame, ReplayedGame]
    move: int  # counted from 0
    turn: int
    place: int  # of the move in its turn

    @property
    def cost(self) -> float:
        return self.games[0].score - self.games[1].score

    @property
    def rank(self) -> tuple[float, int]:
        """The sort key: the cost, then the difference in cards."""
        one, other = (game.cards_after(self.turn) or 0 for game in self.games)
        return -abs(self.cost), -abs(one - other)

    def kind(self, game: ReplayedGame, results: Results) -> str:
        """Return the kind of move that a side made."""
        made = game.story["turns"][self.turn - 1]
        marks = made["kinds"][self.place] if "kinds" in made else made["marks"]
        if marks or not results.lies:
            return ", ".join(marks) or _OTHER_MOVE
        return "let it pass" if self.place else "honest play"  # the first move of a turn is a play


def find_splits(one: Side, other: Side) -> tuple[list[Split], int]:
    """Return the positions at which the sides first differed, costliest first, and the number of compared games."""
    splits, compared = list[Split](), 0
    first = one.run.planned.first_game // one.run.planned.games_per_deal
    for deal in range(first, first + min(one.run.deals, other.run.deals, _MAX_DEALS)):
        for numbers in zip(one.games(deal), other.games(deal), strict=True):
            if numbers[0] not in one.with_pages or numbers[1] not in other.with_pages:
                continue
            try:
                games = one.play(numbers[0]), other.play(numbers[1])
            except DubitoError:
                continue
            compared += 1
            outputs = zip(games[0].outputs, games[1].outputs, strict=False)
            move = next((place for place, (mine, theirs) in enumerate(outputs) if mine != theirs), None)
            if move is not None:
                seat, *where = next(islice(list_moves(games[0].story["turns"]), move, None))
                splits += [Split(deal, games, move, *where)] if seat == games[0].seat else []
    return sorted(splits, key=lambda split: split.rank), compared


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
    with_pages = table.first_rows(_MAX_PAIRS)
    for place, (path, pair) in enumerate(zip(paths[:_MAX_PAIRS], pairs, strict=False)):
        answer, sure = describe_winner(relation.only(pair.one.name, pair.other.name))
        one, other = by_name[pair.one.name], by_name[pair.other.name]
        positions = [*_side_by_side(one, other, f"compare-{place + 1}", odds=odds)]
        sections = [Section("", [Paragraph(sure)])] if sure else []
        # Only the first page has pairs without a page.
        shown = with_pages if place else table
        sections += [Section("Every pair", [shown]), Section("Side by side", positions)]
        title = f"{one_line(one.name)} and {one_line(other.name)}, side by side"
        yield Page(path, title, sections, heading=answer, about=title)


def _side_by_side(one: Side, other: Side, key: str, *, odds: bool) -> Iterator[Block]:
    """Yield how often the two contenders decided differently, a table of move kinds, and the costliest positions."""
    splits, compared = find_splits(one, other)
    if not compared:
        yield Paragraph(
            "There is nothing to compare: no deal has pages for both games. Write the report with `--games all`."
        )
    elif not splits:
        yield Paragraph(f"They never decided differently in {pluralize(compared, 'compared game')}.")
    else:
        text = f"They decided differently in {len(splits):,} of {pluralize(compared, 'compared game')}. {_EXPLANATION}"
        yield Paragraph(text + _WITH_ODDS * odds)
        table = _kinds_table(one, other, splits, key)
        if len(table.rows) > 1:
            yield table
    yield from (_position(one, other, split, odds=odds) for split in splits[:_MAX_POSITIONS])
    if len(splits) > _MAX_POSITIONS:
        yield Paragraph(f"Only the {_MAX_POSITIONS} costliest of {len(splits):,} positions are shown.")


def _kinds_table(one: Side, other: Side, splits: Sequence[Split], key: str) -> ResultTable:
    """Return a table of the moves that the sides made at these positions, and what followed."""
    results = one.run.game.results
    by_kinds: dict[tuple[str, str], list[Split]] = {}
    for split in splits:
        kinds = (split.kind(split.games[0], results), split.kind(split.games[1], results))
        by_kinds.setdefault(kinds, []).append(split)
    first = results.measures[0]
    found = sorted(by_kinds, key=lambda both: -len(by_kinds[both]))
    columns = [
        Column("one", one.label, "text", [kind for kind, _ in found]),
        Column("other", other.label, "text", [kind for _, kind in found]),
        Column("times", "times", "count", [len(by_kinds[both]) for both in found]),
    ]
    for side, side_key, label in ((0, "one", one.label), (1, "other", other.label)):
        scores = [sum(split.games[side].score for split in by_kinds[both]) / len(by_kinds[both]) for both in found]
        title = f"{label}'s {first.column_title} afterwards"
        columns.append(Column(f"{side_key}_score", title, column_kind(first), scores))
    return ResultTable(key, "What they did when they first differed", columns)


def _position(one: Side, other: Side, split: Split, *, odds: bool) -> ShownPosition:
    game, turn = split.games[0], split.turn
    before = f"Hand: {game.describe_view(turn)}. " if game.describe_view(turn) else ""
    before += game.story["story"][turn - 2] if turn > 1 else game.story["start"]
    points = _amount(one.run.game.results, abs(split.cost))
    worse = one.name if split.cost < 0 else other.name
    title = f"Deal {split.deal}, turn {turn}"
    cost = f"cost {one_line(worse)} {points}" if split.cost else ""
    choices = [_choice(side, played, split, odds=odds) for side, played in zip((one, other), split.games, strict=True)]
    mine, theirs = choices
    if (mine.text, mine.cards) == (theirs.text, theirs.cards):  # the story does not tell the choices apart
        outputs = (played.outputs[split.move] for played in split.games)
        choices = [
            replace(choice, text=f"{choice.text} (answer: {_describe_output(output)})")
            for choice, output in zip(choices, outputs, strict=True)
        ]
    return ShownPosition(title, cost, before, game.hand(turn), choices)


def _choice(side: Side, game: ReplayedGame, split: Split, *, odds: bool) -> ShownChoice:
    turn, held, results = split.turn, game.cards_after(split.turn), side.run.game.results
    made = game.story["turns"][turn - 1]
    truth = "; ".join(text for text, cards in made["truth"] if not cards)
    own = [one for one in side.decisions(game) if (one["seat"], one["turn"]) == (game.seat, turn)]
    reasons = (each["reasoning"] for one in own for each in one["attempts"][-1:])
    after = [] if held is None else [f"{pluralize(held)} after the next turn"]
    if odds:
        try:
            found = load_odds(side.run, game.number)
            after.append(
                f"{100 * found.won[split.move + 1][game.seat] / found.playouts:.0f} % chance of winning right after"
            )
        except DubitoError as error:
            after.append(f"no odds: {one_line(str(error))}")
    points = "" if results.measures[0].span else f" ({_amount(results, game.score)})"
    after.append(f"{game.ending} in the end{points}")
    return ShownChoice(
        side.name,
        side.kind,
        game.story["story"][turn - 1] + (f" ({truth})" if truth else ""),
        played_cards(game.story, made),
        split.kind(game, results).removeprefix(_OTHER_MOVE),
        one_line(next(filter(None, reasons), ""), _MAX_REASON),
        "; ".join(after),
        f"{side.pages}games/{game.number}.html#{own[0]['link'] if own else f'turn-{turn}'}",
    )


def _describe_output(output: Any) -> str:
    """Describe an output in the game's JSON form."""
    return {True: "yes", False: "no"}[output] if isinstance(output, bool) else one_line(json.dumps(output), 80)


def _amount(results: Results, score: float) -> str:
    first = results.measures[0]
    return f"{score:.2f} {first.name}" if first.span else pluralize(round(100 * score), "point")


def sides_of_run(run: Run, names: Sequence[str], pages: str, with_pages: Collection[int]) -> list[Side]:
    """Return the named contenders of a run as sides."""
    replays = ReplayedGames(run)
    return [Side(name, run, place, pages, frozenset(with_pages), replays) for place, name in enumerate(names)]
