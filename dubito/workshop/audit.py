"""Whether what a model is sent tells what its seat cannot know: two worlds that a seat cannot tell apart have to make
the same request, byte by byte.

The worlds are those of leaks.py. Of a request that differs it is found which byte is the first, which line of which
template wrote it, and by which fact: the one that makes the difference when it alone is exchanged.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any, Final, NamedTuple

from dubito.errors import DubitoError, one_line
from dubito.game import Position
from dubito.llm.prompts import Prompt, RenderedPrompt, load_prompt
from dubito.llm.recording import common_length
from dubito.llm.templates import DESCRIPTION, Piece
from dubito.workshop.leaks import check_leaks
from dubito.workshop.subject import Flaw, Subject

_MAX_QUOTE: Final = 40  # characters of what differs


class Leak(NamedTuple):
    """The first byte at which two requests differ, and what put it there."""

    file: str
    line: int  # of the file; 0: it is about all of it
    sentence: str

    @property
    def place(self) -> str:
        return f"{self.file}, line {self.line}" if self.line else self.file

    def __str__(self) -> str:
        return f"{self.place}: {self.sentence}"


def find_leak(prompt: Prompt, here: Position, there: Position) -> Leak | None:
    """What the prompt tells of one world and not of another, where the seat observed the same."""
    seat = f"what seat {here.seat} cannot know at node {here.node}"
    if _schema_text(prompt, here) != _schema_text(prompt, there):
        return Leak(
            str(prompt.folder / DESCRIPTION), 0, f"the form of the answer tells {seat}: other questions may come"
        )
    if _parts(prompt.render(here)) == _parts(prompt.render(there)):
        return None
    names = "system text", "history", "user text"
    for name, one, other in zip(names, prompt.pieces(here), prompt.pieces(there), strict=True):
        texts = ["".join(piece.text for piece in pieces) for pieces in (one, other)]
        if texts[0] != texts[1]:
            byte = common_length(texts[0].encode(), texts[1].encode())
            at = texts[0].encode()[:byte].decode("utf-8", "ignore")
            said = " or ".join(_quote_line(text[len(at) :]) for text in texts)
            template, line = _find_template(one, other, len(at))
            what = f"byte {byte + 1:,} of the {name} (its line {at.count(chr(10)) + 1}) tells {seat}"
            sentence = f"{what}, by {_find_fact(prompt, here, there)}: {said}"
            return Leak(str(prompt.path_of(template)), line, sentence)
    return None


def _schema_text(prompt: Prompt, position: Position) -> str:
    return json.dumps(prompt.form_at(position).schema, default=dict)


def _parts(rendered: RenderedPrompt) -> tuple[str, str, str]:
    return rendered.system, "".join(rendered.history), rendered.user


def _quote_line(text: str) -> str:
    return repr(one_line(text.partition("\n")[0], _MAX_QUOTE)) if text.partition("\n")[0] else "the end of the line"


def _find_template(one: Sequence[Piece], other: Sequence[Piece], place: int) -> tuple[str, int]:
    """Template and line of the character at this place; the earlier one where they differ between the two texts."""
    found = []
    for pieces in (one, other):
        ends = accumulate(len(piece.text) for piece in pieces)
        found += [next((piece for piece, end in zip(pieces, ends, strict=True) if place < end), None)]
    (first, *more) = [piece for piece in found if piece is not None]
    return first.template, min(piece.line for piece in (first, *more) if piece.template == first.template)


def _find_fact(prompt: Prompt, here: Position, there: Position) -> str:
    """The fact that makes the first difference when it alone is that of the other world."""
    ours, theirs = ([*map(prompt.game.facts.facts, prompt.questions(position))] for position in (here, there))
    as_it_is = prompt.fill(ours[0], turn=ours)
    both = [*zip(ours, theirs, strict=True)]  # as many: they have the same form
    differing = [name for name in ours[0] if any(repr(one[name]) != repr(other[name]) for one, other in both)]
    told = []
    for name in differing:
        exchanged = [one | {name: other[name]} for one, other in both]
        if (place := _first_difference(as_it_is, prompt.fill(exchanged[0], turn=exchanged))) is not None:
            told.append((place, name))
    if told:
        return f"the fact {min(told)[1]}"
    return f"the facts {', '.join(differing)} together" if differing else "no fact: it is written otherwise each time"


def _first_difference(one: RenderedPrompt, other: RenderedPrompt) -> tuple[int, int] | None:
    pairs = enumerate(zip(_parts(one), _parts(other), strict=True))
    return next(((part, common_length(*texts)) for part, texts in pairs if texts[0] != texts[1]), None)


@dataclass
class Audit:
    """Of a game and all its prompts, or of these prompts `only`."""

    subject: Subject
    only: Sequence[Prompt] | None = None
    turns: int = 0  # that were compared in two worlds
    prompts: list[Prompt] = field(default_factory=list)  # that were looked at
    _told: set[str] = field(default_factory=set)  # of which file and line there is something to say

    def leaks(self, _: Subject) -> Iterator[Flaw]:
        """What is told that its seat cannot know, each thing once."""
        self.prompts += self.only or ()
        if self.only is None:
            yield from self._load()
        for flaw in check_leaks(self.subject, self._compared):
            if self.only is None or flaw.file in self._told:
                yield flaw

    def _load(self) -> Iterator[Flaw]:
        for name in self.subject.prompts if self.subject.game.module("facts") else ():
            try:
                self.prompts.append(load_prompt(name, self.subject.here, self.subject.game))
            except DubitoError as error:
                yield Flaw(f"prompts/{self.subject.game.folder}/{name}", str(error))

    def _compared(self, one: Any, other: Any, sure: bool) -> Iterator[Flaw]:
        self.turns += one is not None or not self.prompts
        for prompt in self.prompts if one is not None else ():
            if leak := find_leak(prompt, one, other):
                file = leak._replace(file=self.subject.shown(leak.file)).place
                if file not in self._told:
                    self._told.add(file)
                    yield Flaw(file, leak.sentence, sure)
