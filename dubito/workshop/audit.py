"""Check that requests to models contain no hidden information.

Two worlds that look the same to a seat must produce the same request, byte for byte. The worlds come from leaks.py. If
two requests differ, the audit reports the first differing byte, the template and line that wrote it, and the fact that
causes the difference on its own.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Final, NamedTuple

from dubito.errors import DubitoError, one_line
from dubito.game.log import Position
from dubito.hooks import Flaw
from dubito.llm.prompts import Prompt, RenderedPrompt, load_prompt
from dubito.llm.recording import common_length
from dubito.llm.templates import DESCRIPTION, Piece
from dubito.workshop.leaks import check_leaks
from dubito.workshop.subject import Subject

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
    if _schema_text(prompt, here) != _schema_text(prompt, there):
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
            texts_here = " or ".join(_quote_line(text[len(at) :]) for text in texts)
            template, line = _find_template(one, other, len(at))
            what = f"byte {byte + 1:,} of the {name} (line {at.count(chr(10)) + 1}) reveals {seat}"
            sentence = f"{what} through {_find_fact(prompt, here, there)}: {texts_here}"
            return Leak(str(prompt.template_path(template)), line, sentence)
    return None


def _schema_text(prompt: Prompt, position: Position) -> str:
    return json.dumps(prompt.form_at(position).schema, default=dict)


def _parts(rendered: RenderedPrompt) -> tuple[str, str, str]:
    return rendered.system, "".join(rendered.history), rendered.user


def _quote_line(text: str) -> str:
    return repr(one_line(text.partition("\n")[0], _MAX_QUOTE)) if text.partition("\n")[0] else "the end of the line"


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
        if (place := _first_difference(unchanged, prompt.fill(exchanged[0], turn=exchanged))) is not None:
            causes.append((place, name))
    if causes:
        return f"the fact {min(causes)[1]}"
    return (
        f"the facts {', '.join(differing)} together" if differing else "no fact, since the text is different each time"
    )


def _first_difference(one: RenderedPrompt, other: RenderedPrompt) -> tuple[int, int] | None:
    pairs = enumerate(zip(_parts(one), _parts(other), strict=True))
    return next(((part, common_length(*texts)) for part, texts in pairs if texts[0] != texts[1]), None)


@dataclass
class Audit:
    """The audit of a game and its prompts, or only of the prompts in `only`."""

    subject: Subject
    only: Sequence[Prompt] | None = None
    turns: int = 0  # requests compared in two worlds
    prompts: list[Prompt] = field(default_factory=list)  # audited prompts
    _reported: set[str] = field(default_factory=set)  # files and lines of templates

    def leaks(self, _: Subject) -> Iterator[Flaw]:
        """Yield each leak once."""
        self.prompts += self.only or ()
        if self.only is None:
            yield from self._load()
        for flaw in check_leaks(self.subject, self._compare_prompts):
            if self.only is None or flaw.file in self._reported:
                yield flaw

    def _load(self) -> Iterator[Flaw]:
        for name in self.subject.prompts if self.subject.game.has_facts else ():
            try:
                self.prompts.append(load_prompt(name, self.subject.here, self.subject.game))
            except DubitoError as error:
                yield Flaw(f"prompts/{self.subject.game.folder}/{name}", str(error))

    def _compare_prompts(self, one: Position | None, other: Position | None, sure: bool) -> Iterator[Flaw]:
        self.turns += one is not None or not self.prompts
        if one is None or other is None:
            return
        for prompt in self.prompts:
            if leak := find_leak(prompt, one, other):
                file = leak._replace(file=self.subject.shown(leak.file)).place
                if file not in self._reported:
                    self._reported.add(file)
                    yield Flaw(file, leak.sentence, sure)
