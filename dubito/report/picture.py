"""Draw the preview picture that chats and feeds show for a link."""

import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from io import BytesIO
from textwrap import wrap
from typing import Any, Final

from dubito.errors import UsageError, one_line
from dubito.report.tables import Chart, GamePage, Preview
from dubito.show.story import count_cards

try:
    from PIL import Image, ImageDraw, ImageFont
except ModuleNotFoundError:
    raise UsageError("--url needs Pillow to draw preview pictures", hint="pip install 'dubito[pictures]'") from None

WIDTH: Final = 1200
HEIGHT: Final = 630
_OVERSAMPLING: Final = 2  # draw at this multiple of the size and scale down, for smooth lines
_FELT: Final = "#14532d"
_INK: Final = "#ffffff"
_SOFT: Final = "#d1fae5"
_DIM: Final = "#6fa488"
_SEATS: Final = ("#facc15", "#60a5fa", "#f87171", "#4ade80", "#e879f9", "#fb923c", "#22d3ee", "#f5f5f4")
_MAX_ROWS: Final = 8
_NAME_SIZES: Final = (27, 23, 20)  # the largest at which all names fit
_ASCII_PUNCTUATION: Final = str.maketrans({"–": "-", "—": "-", "−": "-", "‘": "'", "’": "'"})  # noqa: RUF001, characters to replace


class _Picture:
    """A picture with a title and a sentence below it. Units are pixels of the final size."""

    def __init__(self, title: str, about: str) -> None:
        self._image = Image.new("RGB", (_OVERSAMPLING * WIDTH, _OVERSAMPLING * HEIGHT), _FELT)
        self._draw = ImageDraw.Draw(self._image)
        self.text(60, 50, 46, one_line(title, 44))
        for number, line in enumerate(wrap(about, 76, max_lines=2, placeholder=" ...")):
            self.text(60, 120 + 38 * number, 28, line, _SOFT)
        self.text(1140, 575, 24, "Dubito", _SOFT, right=True)

    def text(self, x: float, y: float, size: int, text: str, colour: str = _INK, right: bool = False) -> None:
        font = ImageFont.load_default(_OVERSAMPLING * size)
        place = (_OVERSAMPLING * x, _OVERSAMPLING * y)
        self._draw.text(place, _to_ascii(text), fill=colour, font=font, anchor="ra" if right else "la")

    def line(self, points: Sequence[tuple[float, float]], colour: str, width: int) -> None:
        scaled = [(_OVERSAMPLING * x, _OVERSAMPLING * y) for x, y in points]
        self._draw.line(scaled, fill=colour, width=_OVERSAMPLING * width, joint="curve")

    def dot(self, x: float, y: float, radius: int, colour: str) -> None:
        self._draw.circle((_OVERSAMPLING * x, _OVERSAMPLING * y), _OVERSAMPLING * radius, fill=colour)

    def png(self, colours: int | None = None) -> bytes:
        drawn, file = self._image.reduce(_OVERSAMPLING), BytesIO()
        (drawn.quantize(colours) if colours else drawn).save(file, "PNG")
        return file.getvalue()


def fit_names(names: Sequence[str], room: float) -> tuple[int, list[str]]:
    """Return a text size, and the names as they fit into `room` pixels.

    Names that are too wide at the smallest size are cut in the middle. Equal results are numbered.
    """
    shown = [_to_ascii(one_line(name)) for name in names]
    for size in _NAME_SIZES:
        width = ImageFont.load_default(size).getlength
        if all(width(name) <= room for name in shown):
            break
    cut, fitted = [_cut(name, room, width) for name in shown], list[str]()
    for place, (name, text) in enumerate(zip(shown, cut, strict=True)):
        is_double, number = cut.count(text) > 1, cut[: place + 1].count(text)
        fitted.append(f"{_cut(name, room - width(' 99'), width)} {number}" if is_double else text)
    return size, fitted


def _cut(name: str, room: float, width: Callable[[str], float]) -> str:
    """Return the start and the end of a name that is too wide."""
    start, end = (len(name) + 1) // 2, len(name) - (len(name) + 1) // 2
    cut = name
    while start and width(cut) > room:
        start, end = (start, end - 1) if end > start else (start - 1, end)
        cut = f"{name[:start]}...{name[len(name) - end :]}"
    return cut


def _to_ascii(text: str) -> str:
    apart = unicodedata.normalize("NFKD", text.translate(_ASCII_PUNCTUATION))
    return "".join(one for one in apart if not unicodedata.combining(one)).encode("ascii", "replace").decode()


def picture_of_page(title: str, preview: Preview) -> bytes:
    """Draw the first rows of a preview's chart as a PNG. If `lit` names players, all others are dimmed."""
    picture, chart, lit = _Picture(title, preview.words), preview.chart, preview.lit
    rows = list(_rows(chart)) if chart else []
    shown = [row for row in rows if row[0] in lit or not lit or len(rows) <= _MAX_ROWS][:_MAX_ROWS]
    low = min((row[1][1] for row in shown), default=0.0)
    high = max((row[1][2] for row in shown), default=1.0)

    def at(value: float) -> float:
        return 510 + 510 * (value - low) / ((high - low) or 1)

    apart = min(70, 340 / max(1, len(shown)))
    size, names = fit_names([name for name, _ in shown], room=420)
    for place, (label, (name, (value, least, most))) in enumerate(zip(names, shown, strict=True)):
        y, strong = 215 + apart * (place + 0.5), not lit or name in lit
        picture.text(60, y - 15, size, label, _INK if strong else _DIM)
        picture.line([(at(least), y), (at(most), y)], _SOFT if strong else _DIM, 5)
        picture.dot(at(value), y, 10, _SEATS[0] if strong else _DIM)
        picture.text(1140, y - 15, 27, f"{value:.1f}", _INK if strong else _DIM, right=True)
    more = f"; {len(rows) - len(shown)} more" if len(rows) > len(shown) else ""
    picture.text(60, 575, 24, one_line(f"{chart.title.partition(',')[0] if chart else ''}{more}", 80), _SOFT)
    return picture.png()


def _rows(chart: Chart) -> Iterator[tuple[str, tuple[float, float, float]]]:
    for place, name in enumerate(chart.names):
        for series in chart.series:
            point = series["points"][place]
            if point is not None:
                yield name, (point[0], point[1], point[2]) if len(point) > 2 else (point[0],) * 3


def picture_of_game(page: GamePage) -> bytes:
    """Draw the winners and each seat's number of cards by turn as a PNG.

    For games that do not count cards, draw only the winners.
    """
    story: Mapping[str, Any] = page.story
    picture, turns, card_counts = _Picture(page.title, page.about), len(story["turns"]), count_cards(story)
    most = max((cards for row in card_counts for cards in row), default=0)
    step, high = 640 / max(1, turns), 330 / max(1, most)
    x, room = (760, 350) if card_counts else (60, 1050)
    winners = [f"{name} (won)" if seat in story["winners"] else name for seat, name in enumerate(story["names"])]
    size, names = fit_names(winners, room)
    for seat, name in enumerate(names):
        won, colour = seat in story["winners"], _SEATS[seat % len(_SEATS)]
        if len(card_counts) > 1:
            points = [(60 + step * at, 550 - high * row[seat]) for at, row in enumerate(card_counts)]
            picture.line(points, colour, 7 if won else 3)
        y = 230 + 42 * seat
        picture.dot(x, y + 15, 11 if won else 7, colour)
        picture.text(x + 30, y, size, name)
    scale = f"Cards in hand over {turns:,} turns (at most {most})" if most else f"{turns:,} turns"
    picture.text(60, 575, 24, scale, _SOFT)
    # Fewer colours make a smaller file.
    return picture.png(colours=64)
