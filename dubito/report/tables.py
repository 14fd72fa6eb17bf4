"""The content of pages as plain data, which templates render.

Tables are shown on pages and written as CSV and JSON from the same values. Other blocks include paragraphs, charts and
heat maps.
"""

import csv
import io
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import copysign
from textwrap import shorten
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from dubito.game import Measure, PlayerKind
from dubito.stats.rates import Rate
from dubito.store.spend import PICO, dollars

if TYPE_CHECKING:
    from pydantic import BaseModel

ColumnKind = Literal[
    "text",
    "player",
    "kind",
    "count",
    "rate",
    "points",
    "decimal",
    "difference",
    "seconds",
    "dollars",
    "price",
    "cards",
]
Value = str | int | float | Rate | None
_FORMATS: Final[Mapping[ColumnKind, tuple[int, str, int]]] = {  # factor, sign, digits
    "rate": (100, "", 1),
    "points": (100, "+", 1),
    "decimal": (1, "", 3),
    "difference": (1, "+", 3),
    "seconds": (1, "", 2),
    "price": (1, "", 6),
    "cards": (1, "", 2),
}
_MAX_EXTRA_DIGITS: Final = 3  # extra digits
_FORMULA_STARTS: Final = ("=", "+", "-", "@", "\t", "\r")  # characters that start a formula
_TEXTS: Final = ("text", "player", "kind")
_MAX_ROWS: Final = 500  # rows of a table on a page, except the list of games
_MAX_JSON_ROWS: Final = 1000  # larger tables are written only as CSV, which takes half the space


DrawnCards = Sequence[Sequence[str]]  # the name, sign and icon of each card


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its key in files, its title, how its values are shown, and a value for each row.

    `player` is a name, and `kind` is the kind of that player. `rate` is a share, shown in percent; `points` is a signed
    difference of shares. `decimal` and `difference` are the same for measures that are not shares. `dollars` are
    picodollars; `price` is in dollars and may be tiny. `cards` is a mean number of cards. Columns marked `detail` are
    left out in terminals to save space.
    """

    key: str
    title: str
    kind: ColumnKind
    values: Sequence[Value]
    links: Sequence[str | None] = ()  # link for each value
    detail: bool = False
    only_in_files: bool = False

    @property
    def numeric(self) -> bool:
        return self.kind not in _TEXTS

    @property
    def texts(self) -> list[str]:
        return [cell_text(value, self.kind) for value in self.values]


def kind_title(kinds: Iterable[str]) -> str:
    """Return the title of a column of kinds. A replay proves only which moves are a hand-written bot's."""
    return "kind" if {*kinds} == {"hand-written"} else "kind (claimed)"


@dataclass(frozen=True, slots=True)
class ResultTable:
    """A table. Its key is the name of its files."""

    key: str
    title: str
    columns: Sequence[Column]
    notes: Sequence[str] = ()  # notes about the values for readers
    headings: Sequence[str] = ()  # heading for each row, shown when it changes
    max_rows: int = _MAX_ROWS  # rows on a page

    def with_kinds(self, kinds: Mapping[str, str]) -> "ResultTable":
        """Return the table with a column for the player's kind after each player column."""
        columns: list[Column] = []
        for column in self.columns:
            columns.append(column)
            if kinds and column.kind == "player":
                key = f"{column.key}_kind" if any(one.kind == "kind" for one in columns) else "kind"
                values = [kinds.get(f"{player}") for player in column.values]
                columns.append(Column(key, kind_title(kinds.values()), "kind", values))
        return replace(self, columns=columns)

    def with_links(self, links: Sequence[str | None]) -> "ResultTable":
        """Return the table with links in its first column."""
        first, *others = self.columns
        return replace(self, columns=[replace(first, links=links), *others])

    @property
    def rows(self) -> list[tuple[Value, ...]]:
        return [*zip(*(column.values for column in self.columns), strict=True)]

    @property
    def shown_columns(self) -> list[Column]:
        return [column for column in self.columns if not column.only_in_files]

    @property
    def has_json(self) -> bool:
        return len(self.rows) <= _MAX_JSON_ROWS

    @property
    def shown_notes(self) -> list[str]:
        total = len(self.rows)
        left_out = f"These are the first {self.max_rows} of {total:,} rows. The CSV file contains all rows."
        return [*self.notes, *([left_out] if total > self.max_rows else [])]

    def shown_rows(self) -> Iterator[list["Cell"]]:
        """Yield up to `max_rows` rows for a page."""
        columns = self.shown_columns
        for place in range(min(len(self.rows), self.max_rows)):
            yield [Cell(one, one.values[place], one.links[place] if one.links else None) for one in columns]

    def to_csv(self) -> str:
        """Return CSV with full precision and separate columns for interval ends.

        Texts that a spreadsheet would treat as a formula get a leading apostrophe.
        """
        file = io.StringIO()
        writer = csv.writer(file, lineterminator="\n")
        keys: list[str] = []
        for column, with_intervals in zip(self.columns, self._intervals(), strict=True):
            keys.append(column.key)
            if with_intervals:
                keys += [f"{column.key}_low", f"{column.key}_high"]
        writer.writerow(keys)
        writer.writerows([_csv_cell(value) for value in record.values()] for record in self._records())
        return file.getvalue()

    def to_json(self) -> str:
        head = json.dumps({"title": self.title, "notes": list(self.notes)}, ensure_ascii=False)[:-1]
        rows = ",\n".join(json.dumps(record, ensure_ascii=False) for record in self._records())
        return f'{head}, "rows": [\n{rows}\n]}}\n'

    def _intervals(self) -> list[bool]:
        return [any(isinstance(value, Rate) for value in column.values) for column in self.columns]

    def _records(self) -> Iterator[dict[str, Any]]:
        intervals = self._intervals()
        for row in self.rows:
            record: dict[str, Any] = {}
            for column, value, with_intervals in zip(self.columns, row, intervals, strict=True):
                plain, low, high = _value_and_ends(value)
                record[column.key] = plain / PICO if column.kind == "dollars" and plain is not None else plain
                if with_intervals:
                    record |= {f"{column.key}_low": low, f"{column.key}_high": high}
            yield record


@dataclass(frozen=True, slots=True)
class Cell:
    """A table cell on a page. A rate with few cases is shown as a count."""

    column: Column
    value: Value
    link: str | None = None

    @property
    def is_few(self) -> bool:
        return self.column.kind == "rate" and isinstance(self.value, Rate) and has_few_cases(self.value)

    @property
    def sort_key(self) -> float | None:
        """The value to sort by, or None if the cell's text is that value."""
        value = self.value.value if isinstance(self.value, Rate) else self.value
        if not self.column.numeric or isinstance(value, str) or self.text == f"{value}":
            return None
        # Six digits are enough to sort by.
        return float(f"{value:.6g}") if isinstance(value, float) else value

    @property
    def text(self) -> str:
        if self.is_few and isinstance(self.value, Rate):
            return f"{self.value.count} of {self.value.cases}"
        return cell_text(self.value, self.column.kind)

    @property
    def estimate(self) -> str:
        return self.text.partition(" ")[0]

    @property
    def interval(self) -> str:
        """The interval to show next to an estimate, or an empty string."""
        return self.text.partition(" ")[2] if isinstance(self.value, Rate) and not self.is_few else ""


def has_few_cases(rate: Rate) -> bool:
    """Return whether a share has too few cases to be shown in percent."""
    return rate.cases is not None and rate.cases < _FEW_CASES


def describe_rate(rate: Rate) -> str:
    """Format a share for a sentence: in percent with its interval, or as a count if it has few cases."""
    return f"{rate.count} of {rate.cases}" if has_few_cases(rate) else cell_text(rate, "rate").replace(" [", " % [")


def _csv_cell(value: Any) -> Any:
    return (
        f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA_STARTS) else "" if value is None else value
    )


def _value_and_ends(value: Value) -> tuple[Any, float | None, float | None]:
    if not isinstance(value, Rate):
        return value, None, None
    return (None, None, None) if value.value is None else (value.value, value.low, value.high)


def cell_text(value: Value, kind: ColumnKind) -> str:
    """Format a value as on pages. None becomes a dash."""
    if isinstance(value, Rate):
        if value.value is None:
            return "-"
        # Show enough digits that the ends of the interval differ.
        for more in range(_MAX_EXTRA_DIGITS + 1):
            low, high = _number(value.low, kind, more), _number(value.high, kind, more)
            if low != high:
                break
        return f"{_number(value.value, kind, more)} [{low}, {high}]"
    if value is None:
        return "-"
    return value if isinstance(value, str) else _number(value, kind)


def _number(value: float, kind: ColumnKind, more: int = 0) -> str:
    if kind not in _FORMATS:
        return dollars(int(value)) if kind == "dollars" else f"{value:,}"
    times, sign, digits = _FORMATS[kind]
    # Round halves away from zero like JavaScript's toFixed: tables and charts must agree.
    return f"{times * value + copysign(_HALF_AWAY, value):{sign}.{digits + more}f}"


_CHART_DIGITS: Final = 9  # digits beyond this are noise
_HALF_AWAY: Final = 1e-9
FEW_GAMES: Final = 20  # cells with fewer games have no colour
_FEW_CASES: Final = 10  # shares of fewer cases are shown as counts
ChartKind = Literal["intervals", "stacked", "calibration", "scatter"]


@dataclass(frozen=True, slots=True)
class Paragraph:
    """A paragraph. `warning` and `answer` emphasize it."""

    text: str
    warning: bool = False
    answer: bool = False


@dataclass(frozen=True, slots=True)
class NamedValues:
    """Pairs of names and values."""

    pairs: Sequence[tuple[str, str]]
    title: str = ""


@dataclass(frozen=True, slots=True)
class Tiles:
    """A card that shows how one player plays, with bars for its rates, and links."""

    title: str
    kind: PlayerKind
    path: str  # of the player's page
    figures: Sequence[tuple[str, Rate]]  # name, rate
    text: str = ""
    links: Sequence[tuple[str, str, str, DrawnCards]] = ()  # name, path, description, cards

    def bars(self) -> Iterator[tuple[str, str, Rate | None]]:
        """Yield the name, text and bar of each rate. A rate with few cases has no bar."""
        for name, rate in self.figures:
            if rate.value is None:
                yield name, "none", None
            elif has_few_cases(rate):
                yield name, f"{rate.count} of {rate.cases}", None
            else:
                yield name, f"{100 * rate.value:.1f} %", rate


@dataclass(frozen=True, slots=True)
class Pills:
    """Short facts on one line. Some are marked because readers must not miss them."""

    marked: Sequence[str]
    facts: Sequence[str]


@dataclass(frozen=True, slots=True)
class Links:
    """Links to other pages as (name, path, description)."""

    links: Sequence[tuple[str, str, str]]


@dataclass(frozen=True, slots=True)
class ScoreChartRow:
    """A player in a chart of scores."""

    name: str
    kind: PlayerKind
    path: str  # of the player's page
    rate: Rate
    verdict: str = ""  # compared with the first player
    difference: str = ""
    is_worse: bool = False
    is_opponent: bool = False  # shown without a comparison


@dataclass(frozen=True, slots=True)
class ScoreChart:
    """The players' scores with intervals, drawn without a script."""

    title: str
    note: str
    rows: Sequence[ScoreChartRow]
    kind: ColumnKind
    ends: tuple[float, float]  # ends of the axis
    chance: float | None
    left_out: int = 0  # number of players without a row

    def place(self, value: float) -> str:
        """Return the position of a value, in percent of the axis length."""
        low, high = self.ends
        return f"{100 * (value - low) / (high - low):.2f}"

    def text(self, value: float) -> str:
        return f"{100 * value:.0f}" if self.kind == "rate" else f"{value:.2f}"

    def ticks(self) -> Iterator[float]:
        low, high = self.ends
        yield from (low + (high - low) * part / 4 for part in range(5))


@dataclass(frozen=True, slots=True)
class Climber:
    """A player on a ladder."""

    name: str
    kind: PlayerKind
    path: str
    text: str


@dataclass(frozen=True, slots=True)
class Ladder:
    """Hand-written bots, the strongest first, with the players that stand on each of these rungs."""

    rungs: Sequence[tuple[Climber, Sequence[Climber]]]
    ground: Sequence[Climber]  # players that beat no bot


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart. Its numbers are also in a table on the same page.

    `intervals`: rows of names, series of points with or without intervals, `marks` beside them (such as the chance
    level); `stacked`: rows of names, series of parts of 100 %; `calibration`: stated probabilities against the truth;
    `scatter`: a point per name, [x, y, low, high], in the series of its kind.
    """

    kind: ChartKind
    title: str
    axis: str  # title of the horizontal axis, with its unit
    names: Sequence[str]
    series: Sequence[Mapping[str, Any]]
    zero: bool = False  # draw a line at 0, meaning "no difference"
    vertical: str = ""  # title of the vertical axis, if it does not show names
    curves: Sequence[tuple[str, Sequence[tuple[float, float]]]] = ()  # names and points; both axes are in percent then

    @property
    def spec(self) -> dict[str, Any]:
        """The data for the page's chart script."""
        return {
            "kind": self.kind,
            "title": self.title,
            "axis": self.axis,
            "vertical": self.vertical,
            "names": list(self.names),
            "series": [dict(series) for series in self.series],
            "zero": self.zero,
        } | ({"curves": [[name, [*map(list, curve)]] for name, curve in self.curves]} if self.curves else {})


_MAX_PREVIEW: Final = 300  # in characters; longer texts are truncated everywhere


@dataclass(frozen=True, slots=True)
class Preview:
    """The text and picture of a link's preview in chats and feeds.

    The picture shows the first rows of a chart.
    """

    words: str
    chart: Chart | None = None  # a chart of kind `intervals`
    lit: Sequence[str] = ()  # the names that the page is about; empty for all names

    @property
    def description(self) -> str:
        return shorten(self.words, _MAX_PREVIEW, placeholder=" …")


@dataclass(frozen=True, slots=True)
class HeatMap:
    """A matrix of shares by player and neighbour, and its table."""

    title: str
    corner: str  # describes rows and columns
    names: Sequence[str]
    cells: Sequence[Sequence[tuple[float | None, int]]]  # the share and the number of seats
    deviations: Sequence[float | None]  # deviations, or other values for the last column
    table: ResultTable  # the table that is written to files
    ends: tuple[float, float]  # the lightest and darkest share, from `value_range`; the same in maps that are compared

    def shade(self, value: float, games: int) -> str:
        """Return the shade class of a cell, `h0` to `h9`, or `few`."""
        low, high = self.ends
        if games < FEW_GAMES:
            return "few"
        return "h0" if high == low else f"h{min(9, int(10 * (value - low) / (high - low)))}"

    @property
    def too_few(self) -> str:
        """An explanation of missing colours, or an empty string."""
        played = [games for row in self.cells for _, games in row if games]
        if played and max(played) < FEW_GAMES:
            return f"No cell has a colour, since all have fewer than {FEW_GAMES} games."
        return (
            f"Cells with fewer than {FEW_GAMES} games have no colour."
            if min(played, default=FEW_GAMES) < FEW_GAMES
            else ""
        )


class ComparisonPart(NamedTuple):
    """A plugin's addition to `dubito compare`."""

    key: str  # in the object that `--json` prints
    rows: "Sequence[BaseModel]"  # its value in that object
    blocks: Sequence[ResultTable | Paragraph]  # printed without `--json`


@dataclass(frozen=True, slots=True)
class Verbatim:
    """Preformatted text. If `folded`, it opens on a click."""

    title: str
    text: str
    folded: bool = False


def value_range(cells: Iterable[tuple[float | None, int]]) -> tuple[float, float]:
    known = [value for value, games in cells if value is not None and games >= FEW_GAMES]
    return (min(known), max(known)) if known else (0.0, 0.0)


@dataclass(frozen=True, slots=True)
class ShownSeat:
    """A player at a position, as other players see it."""

    name: str
    kind: PlayerKind
    text: str  # number of cards
    claim: str  # in a speech bubble


@dataclass(frozen=True, slots=True)
class ShownBoard:
    """What a seat sees at a position. Both players see the same."""

    seats: Sequence[ShownSeat]
    backs: int  # cards drawn face down as the pile
    facts: Sequence[tuple[str, DrawnCards]]
    hand: DrawnCards
    note: str  # on the hand
    view: Sequence[str]  # what the seat sees in words, if no hand is drawn


@dataclass(frozen=True, slots=True)
class ShownChoice:
    """A player's choice at a position, the reason for it, and how the game ended."""

    name: str
    kind: PlayerKind
    text: str
    cards: DrawnCards  # that the player played
    what: str  # the kind of move
    is_lie: bool
    reason: str
    result: str
    score: str
    path: str  # path to the turn in the game


@dataclass(frozen=True, slots=True)
class ShownPosition:
    """A position at which two players chose differently."""

    title: str
    asked: str
    truth: str  # about the last play
    board: ShownBoard
    choices: Sequence[ShownChoice]
    kinds: str  # of both choices


@dataclass(frozen=True, slots=True)
class PositionFilters:
    """Buttons that show only the positions at which the players chose these kinds of moves."""

    filters: Sequence[tuple[str, str]]  # the label, and the kinds of both choices as `ShownPosition.kinds`


Block = (
    Paragraph
    | NamedValues
    | Verbatim
    | Tiles
    | Pills
    | Links
    | ScoreChart
    | Ladder
    | ShownPosition
    | PositionFilters
    | Chart
    | HeatMap
    | ResultTable
)


@dataclass(frozen=True, slots=True)
class Section:
    """A heading with its content. If `folded`, the section opens on a click."""

    title: str
    blocks: Sequence[Block]
    folded: bool = False


@dataclass(frozen=True, slots=True)
class Page:
    """A report page: its path and sections."""

    path: str
    title: str
    sections: Sequence[Section]
    more: Mapping[str, Any] = field(default_factory=dict)  # values for its own template
    template: str = "page.html"
    heading: str = ""  # shown instead of the title
    about: str = ""  # a line with the heading
    preview: Preview | None = None  # only for published pages

    @property
    def picture(self) -> str:
        return f"{self.path.removesuffix('.html')}.png"

    def with_kinds(self, kinds: Mapping[str, str]) -> "Page":
        sections = [replace(one, blocks=[_with_kinds(block, kinds) for block in one.blocks]) for one in self.sections]
        return replace(self, sections=sections)

    @property
    def blocks(self) -> list[Block]:
        return [block for section in self.sections for block in section.blocks]

    @property
    def folds(self) -> bool:
        return any(section.folded for section in self.sections)

    @property
    def tables(self) -> list[ResultTable]:
        tables = (block.table if isinstance(block, HeatMap) else block for block in self.blocks)
        return [block for block in tables if isinstance(block, ResultTable)]


@dataclass(frozen=True, slots=True)
class GamePage:
    """A viewer page: a game's data, with its title and surrounding texts."""

    path: str
    title: str
    about: str
    story: Mapping[str, Any]
    proof: str = ""  # how to verify the game
    warnings: Sequence[str] = ()

    @property
    def data(self) -> dict[str, Any]:
        return {**self.story, "about": self.about, "proof": self.proof, "warnings": list(self.warnings)}


def _with_kinds(block: Block, kinds: Mapping[str, str]) -> Block:
    if isinstance(block, HeatMap):
        return replace(block, table=block.table.with_kinds(kinds))
    return block.with_kinds(kinds) if isinstance(block, ResultTable) else block


def points(name: str, rates: Sequence[Rate | float | None], unit: float = 100) -> dict[str, Any]:
    return {"name": name, "points": [_scaled(unit, rate) for rate in rates]}


def column_kind(measure: Measure) -> ColumnKind:
    return "decimal" if measure.span else "rate"


def difference_kind(measure: Measure) -> ColumnKind:
    return "difference" if measure.span else "points"


def measure_unit(measure: Measure) -> float:
    return 1 if measure.span else 100


def _scaled(unit: float, rate: Rate | float | None) -> list[float] | None:
    if isinstance(rate, Rate):
        if rate.value is None:
            return None
        return [round(unit * end, _CHART_DIGITS) for end in (rate.value, rate.low, rate.high)]
    return None if rate is None else [round(unit * rate, _CHART_DIGITS)]
