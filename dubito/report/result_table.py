"""A table as data: shown on a page, written as CSV and as JSON, always from the same values."""

import csv
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from dubito.llm.prices import PICO, dollars
from dubito.stats.rates import Rate

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
_FORMATS: Final[Mapping[ColumnKind, tuple[int, str, int]]] = {  # times the value, its sign, digits
    "rate": (100, "", 1),
    "points": (100, "+", 1),
    "decimal": (1, "", 3),
    "difference": (1, "+", 3),
    "seconds": (1, "", 2),
    "price": (1, "", 6),
    "cards": (1, "", 2),
}
_MOST_MORE: Final = 3  # digits
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")  # how one begins
_TEXTS: Final = ("text", "player", "kind")


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its key in CSV and JSON, its title on the page, and how its values are shown.

    `player` is a name, and `kind` says what decides for that player; `rate` is a share, shown in percent; `points` a
    difference of shares, with its sign; `decimal` and `difference` are the same of measures that are no shares;
    `dollars` are picodollars, `price` dollars that may be very few; `cards` a mean number of cards. A `detail` is for
    pages and files: a terminal has no room for it.
    """

    key: str
    title: str
    kind: ColumnKind = "count"
    detail: bool = False

    @property
    def numeric(self) -> bool:
        """Whether the column stands to the right."""
        return self.kind not in _TEXTS


def texts(*keys: str) -> list[Column]:
    """Columns of texts that are called as in CSV and JSON."""
    return [Column(key, key, "text") for key in keys]


def named(*keys: str) -> list[Column]:
    """The same of players' names."""
    return [Column(key, key, "player") for key in keys]


def counts(*keys: str) -> list[Column]:
    """The same of counts."""
    return [Column(key, key) for key in keys]


@dataclass(frozen=True, slots=True)
class ResultTable:
    """Some rows with a key, which is the name of its files, and a title that says what they are."""

    key: str
    title: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[Value]]
    notes: Sequence[str] = ()  # what a reader must know of the values
    links: Sequence[str | None] = ()  # of the first cell of each row

    def with_kinds(self, kinds: Mapping[str, str]) -> "ResultTable":
        """The same with a column behind each one of players, that says of what kind each is."""
        places = [place for place, column in enumerate(self.columns) if column.kind == "player"]
        if not kinds:
            return self
        columns, rows = [*self.columns], [[*row] for row in self.rows]
        for place in reversed(places):
            key = "kind" if place == places[0] else f"{columns[place].key}_kind"
            for row in rows:
                row.insert(place + 1, kinds.get(str(row[place])))
            columns.insert(place + 1, Column(key, "kind", "kind"))
        return replace(self, columns=columns, rows=rows)

    def shown(self) -> Iterator[list[tuple[Column, str]]]:
        """The rows as a page shows them."""
        for row in self.rows:
            yield [(column, cell_text(value, column.kind)) for column, value in zip(self.columns, row, strict=True)]

    def to_csv(self) -> str:
        """The table with full precision; an interval's ends are columns of their own.

        A text that a spreadsheet would take for a formula begins with an apostrophe, which makes it a text there.
        """
        file = io.StringIO()
        writer = csv.writer(file, lineterminator="\n")
        records = self._records()
        writer.writerow(self._keys())
        writer.writerows([_cell(value) for value in record.values()] for record in records)
        return file.getvalue()

    def to_json(self) -> str:
        """The table with full precision, a row an object and a line."""
        head = json.dumps({"title": self.title, "notes": list(self.notes)}, ensure_ascii=False)[:-1]
        rows = ",\n".join(json.dumps(record, ensure_ascii=False) for record in self._records())
        return f'{head}, "rows": [\n{rows}\n]}}\n'

    def _keys(self) -> list[str]:
        keys: list[str] = []
        for column, with_intervals in zip(self.columns, self._intervals(), strict=True):
            keys.append(column.key)
            if with_intervals:
                keys += [f"{column.key}_low", f"{column.key}_high"]
        return keys

    def _intervals(self) -> list[bool]:
        """Whether a column's values have intervals."""
        return [any(isinstance(row[place], Rate) for row in self.rows) for place in range(len(self.columns))]

    def _records(self) -> Iterator[dict[str, Any]]:
        intervals = self._intervals()
        for row in self.rows:
            record: dict[str, Any] = {}
            for column, value, with_intervals in zip(self.columns, row, intervals, strict=True):
                plain, low, high = _ends(value)
                record[column.key] = plain / PICO if column.kind == "dollars" and plain is not None else plain
                if with_intervals:
                    record |= {f"{column.key}_low": low, f"{column.key}_high": high}
            yield record


def _cell(value: Any) -> Any:
    """A value as CSV has it."""
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else "" if value is None else value


def _ends(value: Value) -> tuple[Any, float | None, float | None]:
    """A value as it is, with both ends of its interval if it has one."""
    if not isinstance(value, Rate):
        return value, None, None
    return (None, None, None) if value.value is None else (value.value, value.low, value.high)


def cell_text(value: Value, kind: ColumnKind) -> str:
    """A value as a page shows it; a dash for none."""
    if isinstance(value, Rate):
        if value.value is None:
            return "-"
        return _interval(value.value, value.low, value.high, kind)
    if value is None:
        return "-"
    return value if isinstance(value, str) else _number(value, kind)


def _interval(value: float, low: float, high: float, kind: ColumnKind) -> str:
    """With as many more digits as it takes for a narrow interval not to look like a point."""
    for more in range(_MOST_MORE + 1):
        ends = _number(low, kind, more), _number(high, kind, more)
        if ends[0] != ends[1]:
            break
    return f"{_number(value, kind, more)} [{ends[0]}, {ends[1]}]"


def _number(value: float, kind: ColumnKind, more: int = 0) -> str:
    if kind not in _FORMATS:
        return dollars(int(value)) if kind == "dollars" else f"{value:,}"
    times, sign, digits = _FORMATS[kind]
    return f"{times * value:{sign}.{digits + more}f}"
