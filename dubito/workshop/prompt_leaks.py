"""Check that requests to models contain no hidden information.

Two worlds that look the same to a seat must produce the same request, byte for byte. A leak is reported with the
first byte that differs, the template and line that wrote it, and the fact that causes the difference on its own.
"""

import json
from collections.abc import Sequence
from itertools import accumulate
from typing import Final, NamedTuple

from dubito.errors import one_line
from dubito.game.log import Position
from dubito.llm.prompts import Prompt, RenderedPrompt
from dubito.llm.recording import common_length
from dubito.llm.templates import DESCRIPTION, Piece

_MAX_QUOTE: Final = 40  # characters


class Leak(NamedTuple):
    """The first byte that differs between two requests, and what wrote it."""

    file: str
    line: int  # 0 for the whole file
    sentence: str

    @property
    def place(self) -> str:
        return f"{self.file}, line {self.line}" if self.line else self.file

    def __str__(self) -> str:
        return f"{self.place}: {self.sentence}"


def find_leak(prompt: Prompt, here: Position, there: Position) -> Leak | None:
    """Return the first difference between the requests in two worlds that look the same to the seat, or None."""
    seat = f"information hidden from seat {here.seat} at node {here.node}"
    schemas = [json.dumps(prompt.form_at(position).schema, default=dict) for position in (here, there)]
    if schemas[0] != schemas[1]:
        return Leak(
            str(prompt.folder / DESCRIPTION),
            0,
            f"the answer's schema reveals {seat} because different questions may follow",
        )
    if _parts(prompt.render(here)) == _parts(prompt.render(there)):
        return None
    names = "system text", "history", "user text"
    for name, one, other in zip(names, prompt.pieces(here), prompt.pieces(there), strict=True):
        texts = ["".join(piece.text for piece in pieces) for pieces in (one, other)]
        if texts[0] != texts[1]:
            byte = common_length(texts[0].encode(), texts[1].encode())
            at = texts[0].encode()[:byte].decode("utf-8", "ignore")
            rests = [text[len(at) :].partition("\n")[0] for text in texts]
            quotes = [repr(one_line(rest, _MAX_QUOTE)) if rest else "the end of the line" for rest in rests]
            template, line = _find_template(one, other, len(at))
            what = f"byte {byte + 1:,} of the {name} (line {at.count(chr(10)) + 1}) reveals {seat}"
            sentence = f"{what} through {_find_fact(prompt, here, there)}: {' or '.join(quotes)}"
            return Leak(str(prompt.template_path(template)), line, sentence)
    return None


def _parts(rendered: RenderedPrompt) -> tuple[str, str, str]:
    return rendered.system, "".join(rendered.history), rendered.user


def _find_template(one: Sequence[Piece], other: Sequence[Piece], place: int) -> tuple[str, int]:
    """Return the template and line that wrote the character at this index, using the earlier line if they differ."""
    pieces_there = []
    for pieces in (one, other):
        ends = accumulate(len(piece.text) for piece in pieces)
        pieces_there += [next((piece for piece, end in zip(pieces, ends, strict=True) if place < end), None)]
    (first, *more) = [piece for piece in pieces_there if piece is not None]
    return first.template, min(piece.line for piece in (first, *more) if piece.template == first.template)


def _find_fact(prompt: Prompt, here: Position, there: Position) -> str:
    """Describe the fact that causes the first difference on its own."""
    ours, theirs = ([*map(prompt.game.facts.facts, prompt.questions(position))] for position in (here, there))
    unchanged = prompt.fill(ours[0], turn=ours)
    both = [*zip(ours, theirs, strict=True)]  # same length because the schemas are the same
    differing = [name for name in ours[0] if any(repr(one[name]) != repr(other[name]) for one, other in both)]
    causes = []
    for name in differing:
        exchanged = [one | {name: other[name]} for one, other in both]
        texts = zip(_parts(unchanged), _parts(prompt.fill(exchanged[0], turn=exchanged)), strict=True)
        causes += [((part, common_length(*pair)), name) for part, pair in enumerate(texts) if pair[0] != pair[1]]
    if causes:
        return f"the fact {min(causes)[1]}"
    return (
        f"the facts {', '.join(differing)} together" if differing else "no fact, since the text is different each time"
    )
