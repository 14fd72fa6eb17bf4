"""A game in words: by the `words` of its package, or, where it has none, by its events and outputs as plain data."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from typing import Any, Final, Protocol, cast

from dubito.errors import one_line
from dubito.game import Game, GameEvent, State

Label = Callable[[int], str]  # names a seat in a sentence
ME: Final = "\0"  # the label of the seat that a sentence is for, until `to_me` speaks to it; no name contains it


@dataclass(frozen=True, slots=True)
class Line:
    """What is said of a move: what the table observes, and what only those may read who see everything."""

    said: str  # empty: the table observes nothing
    truth: str = ""


@dataclass(frozen=True, slots=True)
class Panel:
    """A part of a game's state in words: what everybody may know of it, and what those see who see everything."""

    title: str
    public: str
    truth: str = ""
    seat: int | None = None  # whose it is; None: the board's


@dataclass(frozen=True, slots=True)
class Marks:
    """What a move was to those who see everything, for who looks for such moves: bluffs, or mistakes."""

    kinds: tuple[str, ...] = ()  # nouns that a button can name: bluff, doubt
    mistake: str = ""  # of who moved, in words: let a bluff pass


class Teller(Protocol):
    """Tells one game to those who see everything; made at its deal, and told of every move after it was made."""

    def holds(self, seat: int) -> str:
        """What a seat holds now; empty where that cannot be said."""

    def moved(self, seat: int, output: Any, events: Sequence[Any]) -> list[Line]:
        """A move that was made, and what was observed of it."""

    def panels(self) -> list[Panel]:
        """The whole state, the seats and the board."""

    def ending(self) -> list[str]:
        """How the finished game ended in a sentence, then what else is to be said of its end."""


class Told(Protocol):
    """A game's module `words`: its words for people. Sentences name a seat by its label."""

    @property
    def Teller(self) -> Callable[[Any, Label], Teller]:  # noqa: N802, a class
        """By a game just dealt."""

    def rules(self, rules: Any, seats: int) -> list[str]:
        """The rules in force, a sentence or a paragraph each."""

    def in_short(self, rules: Any) -> str:
        """What of the rules may be varied, as it is here."""

    def sentence(self, event: Any, label: Label) -> str:
        """What observes whoever observes the event; empty if there is nothing to say."""

    def to_me(self, text: str) -> str:
        """The sentence with `ME` spoken to."""


def marks_of(teller: Teller) -> Marks:
    """What the last move was, where a game's teller has `marks()` for it."""
    marks: Callable[[], Marks] | None = getattr(teller, "marks", None)
    return marks() if marks else Marks()


def question_in_words(game: Game, node: str) -> str:
    """What a node asks, short: from the `QUESTIONS` of the game's words, or by the name of the bots' method."""
    questions: Mapping[str, str] = getattr(told_of(game), "QUESTIONS", {})
    return questions.get(node) or f"{game.node(node).method.replace('_', ' ').capitalize()}?"


def told_of(game: Game) -> Told:
    """The words of a game."""
    module = game.module("words", before="told")
    return cast(Told, module) if hasattr(module, "Teller") else _PlainTold(game)


def seat_label(seat: int) -> str:
    """The label that stories use: names may change, seats do not."""
    return f"seat {seat}"


def labels(players: Sequence[str], me: int | None) -> Label:
    """The player's name, with the seat where several share one or it is "You"; the person's seat is `ME`."""

    def label(seat: int) -> str:
        if seat == me:
            return ME
        name = one_line(players[seat])
        alone = players.count(players[seat]) == 1 and (me is None or name.casefold() != "you")
        return name if alone else f"{name} {seat}"

    return cache(label)  # a story names its seats hundreds of times


def names_to(players: Sequence[str], me: int | None) -> list[str]:
    """What the seats are called, the person's as they are spoken to."""
    label = labels(players, me)
    return ["You" if seat == me else label(seat) for seat in range(len(players))]


def in_words_to(game: Game, events: Sequence[GameEvent], label: Label, me: int) -> list[str]:
    """What the person at this seat observes of a move, in sentences to them."""
    told = told_of(game)
    return [
        told.to_me(sentence)
        for event in events
        if event.only in (None, me)
        if (sentence := told.sentence(event, label))
    ]


def forfeit_in_words(seat: int, label: Label, game: Game) -> str:
    """That a seat has ended the game by a mistake."""
    return f"{label(seat)} has failed: the game is over, and {game.forfeit_means}."


class _PlainTold:
    """The words of a game that has none."""

    def __init__(self, game: Game) -> None:
        self._game = game

    @property
    def Teller(self) -> Callable[[State, Label], Teller]:  # noqa: N802
        """By a game just dealt."""
        return lambda state, label: _PlainTeller(self._game, state, label)

    def rules(self, rules: Any, seats: int) -> list[str]:
        """What the game says of itself, and its rules' values."""
        return [f"{said}." for said in (self._game.summary, self.in_short(rules)) if said]

    def in_short(self, rules: Any) -> str:
        """Each rule with its value."""
        return ", ".join(f"{key}: {value}" for key, value in rules.model_dump().items())

    def sentence(self, event: Any, label: Label) -> str:
        """The event's name and fields."""
        pairs = ", ".join(f"{key} {value}" for key, value in _values(event).items())
        return f"{type(event).__name__}: {pairs}" if pairs else type(event).__name__

    def to_me(self, text: str) -> str:
        """The sentence with the person as `you`."""
        return text.replace(ME, "you")


def _values(event: Any) -> dict[str, Any]:
    """The fields of an event, where it is a dataclass."""
    return {field.name: getattr(event, field.name) for field in fields(event)} if is_dataclass(event) else {}


class _PlainTeller:
    """Tells a game by its outputs, as they are kept."""

    def __init__(self, game: Game, state: State, label: Label) -> None:
        self._game, self._state, self._label = game, state, label
        self._told = _PlainTold(game)
        self._dealt = json.dumps(game.deal_to_json(state), ensure_ascii=False)

    def holds(self, seat: int) -> str:
        """Nobody can say."""
        return ""

    def moved(self, seat: int, output: Any, events: Sequence[Any]) -> list[Line]:
        """The events' fields, beside what was given back."""
        given = json.dumps(self._game.output_to_json(output), ensure_ascii=False)
        said = [self._told.sentence(event, self._label) for event in events if event.only is None]
        return [Line(" ".join(said), f"{self._label(seat)} gives {given}")]

    def panels(self) -> list[Panel]:
        """Only how the game was dealt."""
        return [Panel("The deal", "", one_line(self._dealt, 2000))]

    def ending(self) -> list[str]:
        """What each seat came to."""
        ending, results = self._state.ending(), self._game.results
        ended = [results.ended_in_words(mark, ending.capped) for mark in ending.marks]
        seats = ", ".join(f"{self._label(seat)}: {how}" for seat, how in enumerate(ended))
        return [f"The game is over. {seats}."]
