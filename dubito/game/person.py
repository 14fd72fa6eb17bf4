"""What a person at a table types, by the kind of answer that is asked; a game's `words` may know better."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

from dubito.errors import UsageError, one_line
from dubito.game import Bool, Cards, Choice, Game, Node
from dubito.game.streams import DealStreams
from dubito.game.words import Label

_YES: Final = {"yes": True, "y": True, "no": False, "n": False}


def _words(game: Game) -> Any:
    """What the game's own module says of people, None without one."""
    return game.module("words", before="person")


@dataclass(frozen=True, slots=True)
class Option:
    """A rule that a page lets people vary, with its values in words, the usual one first."""

    rule: str
    label: str
    values: Sequence[tuple[Any, str]]


def options_of(game: Game) -> list[Option]:
    """What of a game's rules a page offers: what its module says."""
    return [Option(*option) for option in getattr(_words(game), "OPTIONS", ())]


def lead_of(game: Game) -> str:
    """A game in a sentence or two."""
    return str(getattr(_words(game), "LEAD", f"{game.summary}."))


def bots_of(game: Game, there: Sequence[Any]) -> list[str]:
    """Whom a person plays against if they say nothing, of those who are `there`: never nobody."""
    names = [one.name for one in there if not one.asks]
    return [name for name in Person(game).BOTS if name in names] or names


class Person:
    """What a person in a seat sees in words, and how they answer: by the game's module `words`, as far as it says so.

    What it leaves unsaid of a game whose every move is one node's answer is typed by the kind of that answer.
    """

    def __init__(self, game: Game) -> None:
        self._game, self._module = game, _words(game)

    def _own(self, name: str) -> Any:
        return getattr(self._module, name, None)

    @property
    def BOTS(self) -> Sequence[str]:  # noqa: N802
        """Good ones to begin with, against whom a person plays if they name nobody; of a module only."""
        return cast(Sequence[str], self._own("BOTS") or ())

    @property
    def HARD(self) -> Sequence[str]:  # noqa: N802
        """Those against whom it is a hard game; of a module only."""
        return cast(Sequence[str], self._own("HARD") or ())

    @property
    def HOW(self) -> str:  # noqa: N802
        """How a move is typed."""
        if how := self._own("HOW"):
            return cast(str, how)
        kinds = " ".join(dict.fromkeys(_how(node) for node in self._game.nodes))
        return f"{kinds} `rules` tells the rules, `hand` what you see, `log` what happened; Ctrl-D leaves the table."

    @property
    def ENTER(self) -> str:  # noqa: N802
        """What an empty line means; empty: nothing."""
        return cast(str, self._own("ENTER") or "")

    def sees(self, game: Any, seat: int, label: Label) -> list[str]:
        """What the seat to move sees and is asked, a line each: nothing that it may not know."""
        if self._own("sees"):
            return cast(list[str], self._own("sees")(game, seat, label))
        view, node = game.view(), self._node(game)
        names = [name for name in dir(view) if not name.startswith("_") and name != "node"]
        facts = {name: value for name in names if not callable(value := getattr(view, name))}
        held = one_line(str(game.cards(seat, DealStreams(0, 0).seat(seat))), 1000)
        said = [f"{name}: {one_line(str(value), 1000)}" for name, value in facts.items()]
        return [*said, f"Your cards: {held}", f"{node.name}? {wanted(node)}"]

    def keys(self, game: Any) -> str:
        """What may be typed at the question of now, in short; empty where `HOW` has said it."""
        return cast(str, self._own("keys")(game)) if self._own("keys") else ""

    def read(self, line: str, game: Any, seat: int) -> Any:
        """The output that was typed, legal or not; raises UsageError for what cannot be read."""
        if self._own("read"):
            return self._own("read")(line, game, seat)
        node = self._node(game)
        return self.output(node, _answer(line, node), game, seat)

    def answered(self, answer: Any, game: Any, seat: int) -> Any:
        """The output that a page has sent as JSON, legal or not; raises UsageError for what cannot be read."""
        if self._own("answered"):
            return self._own("answered")(answer, game, seat)
        node = self._node(game)
        if not _fits(answer, node):
            raise UsageError(f"this is no answer to `{node.name}`: give {wanted(node)}")
        return self.output(node, answer, game, seat)

    def holding(self, game: Any, seat: int) -> list[int]:
        """The cards that the seat may answer with, each as often as it is held; else all that there are."""
        if self._own("holding"):
            return cast(list[int], self._own("holding")(game, seat))
        kind = self._node(game).answer
        return list(kind.cards) if isinstance(kind, Cards) else []

    def choices(self, game: Any) -> list[str]:
        """The names among which the seat to move is to choose; a page shows those that are illegal as such."""
        if self._own("choices"):
            return cast(list[str], self._own("choices")(game))
        kind = self._node(game).answer
        return list(kind.options or ()) if isinstance(kind, Choice) else []

    def output(self, node: Node, answer: Any, game: Any, seat: int) -> Any:
        """The output that this answer is; raises IllegalOutput if it is none."""
        return self._game.output_of(node.name, answer, game.cards(seat, DealStreams(0, 0).seat(seat)))

    def why_illegal(self, game: Any, output: Any) -> str | None:
        """Why the seat to move may not do this, in the engine's words."""
        if self._own("why_illegal"):
            return cast(str | None, self._own("why_illegal")(game, output))
        return cast(str | None, game.view().why_illegal(output))

    def cheer(self, game: Any, seat: int) -> str:
        """What is called out to a person on the move that has ended the game for them; empty if nothing is."""
        if self._own("cheer"):
            return cast(str, self._own("cheer")(game, seat))
        if not game.over:
            return ""
        ending = game.ending()
        return f"\n  *  For you: {self._game.results.ended_in_words(ending.marks[seat], ending.capped)}.  *\n"

    def _node(self, game: Any) -> Node:
        return self._game.node(game.view().node)


def wanted(node: Node) -> str:
    """What answers a node, in words."""
    answer = node.answer
    if isinstance(answer, Bool):
        return "yes or no"
    if isinstance(answer, Choice):
        return f"one of {', '.join(answer.options)}" if answer.options else "one of the legal answers"
    if isinstance(answer, Cards):
        return "cards, as numbers with spaces between"
    return "a whole number"


def _how(node: Node) -> str:
    return f"Where you are asked `{node.name}`, type {wanted(node)}."


def _answer(line: str, node: Node) -> Any:
    """What was typed, as an answer of the node's kind; raises UsageError."""
    word, kind = line.casefold().strip(), node.answer
    if isinstance(kind, Bool) and word in _YES:
        return _YES[word]
    if isinstance(kind, Choice):
        folded = {name.casefold(): name for name in kind.options or [line.strip()]}
        if word in folded:
            return folded[word]
    if isinstance(kind, Cards):
        numbers = [_whole(part) for part in word.replace(",", " ").split()]
        if numbers and None not in numbers and {*numbers} <= {*kind.cards}:
            return numbers
    elif not isinstance(kind, Bool | Choice) and (number := _whole(word)) is not None:
        return number
    raise UsageError(f"'{one_line(line, 20)}' is no answer here: type {wanted(node)}")


def _fits(answer: Any, node: Node) -> bool:
    """Whether a JSON value is of the node's kind."""
    match node.answer:
        case Bool():
            return isinstance(answer, bool)
        case Choice(options):
            return isinstance(answer, str) and (options is None or answer in options)
        case Cards(cards):
            return isinstance(answer, list) and all(type(card) is int and card in cards for card in answer)
        case _:
            return type(answer) is int


def _whole(word: str) -> int | None:
    digits = word.removeprefix("-")
    return int(word) if digits.isascii() and digits.isdecimal() and len(digits) < 10 else None
