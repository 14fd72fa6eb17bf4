"""A game in words, and how a person answers it: as the `words` of its package have it, or by its plain data.

`words_of(game)` has every part of `Words`: those that the module says, the others as they stand here.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from typing import Any, Final, NamedTuple, Protocol

from dubito.errors import UsageError, one_line, with_stop
from dubito.game import Bool, Cards, Choice, Game, GameEvent, Node, State, Text
from dubito.game.legal import listed_in_words
from dubito.game.streams import DealStreams

Label = Callable[[int], str]  # names a seat in a sentence
_LEGAL: Final = "legal:"
ME: Final = "\0"  # the label of the seat that a sentence is for, until `to_me` speaks to it; no name contains it
A_PERSON, THE_PERSON = "a person", "the person"  # what others read of that seat, by itself and in its story
_BEGINS: Final = re.compile(rf"(^|[.!?] |\n){ME}")  # a sentence with the person
HAND: Final = "Your hand: "  # begins the line of `sees` that a page leaves out where it draws the hand


class Face(NamedTuple):
    """How a page draws a card, a die or a tool; its name in `FACES` is what a listener hears."""

    sign: str = ""  # printed on it: K, 10; a longer word stands beside its icon
    icon: str = ""  # one of report/static/cards.js, or the path of an own one, as SVG has it in a box of 24 by 24


@dataclass(frozen=True, slots=True)
class Line:
    """What is said of a move: what the table observes, and what only those may read who see everything."""

    said: str  # empty: the table observes nothing
    truth: str = ""
    cards: Sequence[str] = ()  # that the truth speaks of, by name, to be drawn beside it


@dataclass(frozen=True, slots=True)
class Panel:
    """A part of a game's state in words: what everybody may know of it, and what those see who see everything."""

    title: str
    public: str
    truth: str = ""
    seat: int | None = None  # whose it is; None: the board's
    # By name, what a page draws in the place of the words behind the first colon of `truth`, or of all of it where it
    # has none; of `public` where there is no truth.
    cards: Sequence[str] = ()
    folded: tuple[str, str] | None = None  # of the truth, what few can read: a title, and what opens under it


@dataclass(frozen=True, slots=True)
class Marks:
    """What a move was to those who see everything, for who looks for such moves: bluffs, or what was got wrong."""

    kinds: tuple[str, ...] = ()  # nouns that a button can name: bluff, doubt
    mistake: str = ""  # of who moved, in words: doubted an honest play
    let_pass: str = ""  # a lie, in words; whether that was a mistake is up to what was thought of it


@dataclass(frozen=True, slots=True)
class Option:
    """A rule that a page lets people vary, with its values in words, the usual one first."""

    rule: str
    label: str
    values: Sequence[tuple[Any, str]]


class Teller(Protocol):
    """Tells one game to those who see everything; made at its deal, and told of every move after it was made.

    It may have `marks()`, what the last move was (`Marks`).
    """

    def holds(self, seat: int) -> str:
        """What a seat holds now; empty where that cannot be said."""

    def moved(self, seat: int, output: Any, events: Sequence[Any]) -> list[Line]:
        """A move that was made, and what was observed of it."""

    def panels(self) -> list[Panel]:
        """The whole state, the seats and the board."""

    def ending(self) -> list[str]:
        """How the finished game ended in a sentence, then what else is to be said of its end."""


class Words:
    """A game's words for people: what its module `words` does not say is said here, by events, nodes and views.

    Functions of the module stand in the place of these methods, without `self`; sentences name a seat by its label.
    """

    BOTS: Sequence[str] = ()  # good ones to begin with, against whom a person plays if they name nobody
    EASY: Sequence[str] = ()  # those against whom it is an easy game
    HARD: Sequence[str] = ()  # and a hard one
    ENTER: str = ""  # what an empty line means; empty: nothing
    OPTIONS: Sequence[tuple[str, str, Sequence[tuple[Any, str]]]] = ()  # rules that a page offers: as `Option` has them
    QUESTIONS: Mapping[str, str] = {}  # what a node asks, short
    FACES: Mapping[str, Face] = {}  # how cards are drawn, by name; one that is not here is drawn as its name
    TO_ME: Mapping[str, str] = {ME: "you"}  # phrases of a sentence, in turn: what is said to the person
    drawn: Callable[..., dict[str, Any]] | None = None  # the game for a viewer of its own, without panels
    fits: Callable[..., bool] | None = None  # whether a model can have been asked this at its turn, of a game `drawn`

    def __init__(self, game: Game) -> None:
        self._game = game
        self.Teller: Callable[[Any, Label], Teller] = lambda state, label: _PlainTeller(self, game, state, label)
        self.LEAD = with_stop(game.summary)  # the game in a sentence or two
        kinds = dict.fromkeys(f"Where you are asked `{node.name}`, type {wanted(node)}." for node in game.nodes)
        self.HOW = (  # how a move is typed
            f"{' '.join(kinds)} `rules` tells the rules, `hand` what you see, `log` what happened; Ctrl-D leaves the "
            "table."
        )
        if any(isinstance(node.answer, Text) for node in game.nodes):
            self.HOW += " What you say may stand in quotes."

    def rules(self, rules: Any, seats: int) -> list[str]:
        """The rules in force, a sentence or a paragraph each."""
        return [with_stop(said) for said in (self._game.summary, self.in_short(rules)) if said]

    def in_short(self, rules: Any) -> str:
        """What of the rules may be varied, as it is here."""
        return ", ".join(f"{key}: {value}" for key, value in rules.model_dump().items())

    def sentence(self, event: Any, label: Label) -> str:
        """What observes whoever observes the event; empty if there is nothing to say."""
        values = {field.name: getattr(event, field.name) for field in fields(event)} if is_dataclass(event) else {}
        pairs = ", ".join(f"{key} {value}" for key, value in values.items())
        return f"{type(event).__name__}: {pairs}" if pairs else type(event).__name__

    def to_me(self, text: str) -> str:
        """The sentence with `ME` spoken to."""
        return to_person(text, self.TO_ME)

    def sees(self, state: Any, seat: int, label: Label) -> list[str]:
        """What the seat to move sees and is asked, a line each: nothing that it may not know."""
        view = state.view()
        lines = [f"{name}: {_as_text(value)}" for name, value in _attributes(view).items() if name != "node"]
        held = _as_text(state.cards(seat, DealStreams(0, 0).seat(seat)))
        return [*lines, f"Your cards: {held}", f"{view.node}? {self._wanted(state)}"]

    def hand(self, state: Any, seat: int) -> Sequence[str]:
        """What the seat holds and may look at, by name, to be drawn; nothing where it is told in words alone."""
        return ()

    def keys(self, state: Any) -> str:
        """What may be typed at the question of now, in short; empty where `HOW` has said it."""
        return ""

    def read(self, line: str, state: Any, seat: int) -> Any:
        """The output that was typed, legal or not; raises UsageError for what cannot be read."""
        node = self._node(state)
        answer = _typed(line, node)
        if answer is None:
            raise UsageError(f"'{one_line(line, 20)}' is no answer here: type {self._wanted(state)}")
        return self._output(node, answer, state, seat)

    def answered(self, answer: Any, state: Any, seat: int) -> Any:
        """The output that a page has sent as JSON, legal or not; raises UsageError for what cannot be read."""
        node = self._node(state)
        if not is_of_kind(answer, node):
            raise UsageError(f"this is no answer to `{node.name}`: give {self._wanted(state)}")
        if isinstance(node.answer, Text):
            answer = _sayable(answer, node.answer)
        return self._output(node, answer, state, seat)

    def holding(self, state: Any, seat: int) -> list[int]:
        """The cards that the seat may answer with, each as often as it is held; else all that there are."""
        kind = self._node(state).answer
        return list(kind.cards) if isinstance(kind, Cards) else []

    def choices(self, state: Any) -> list[str]:
        """The names among which the seat to move is to choose; a page shows the legal ones."""
        return list(self._game.legal_answers(state) or ()) if isinstance(self._node(state).answer, Choice) else []

    def why_illegal(self, state: Any, output: Any) -> str | None:
        """Why the seat to move may not do this, in the engine's words."""
        why: str | None = state.view().why_illegal(output)
        return why

    def cheer(self, state: Any, seat: int) -> str:
        """What is called out to a person on the move that has ended the game for them; empty if nothing is."""
        if not state.over:
            return ""
        ending = state.ending()
        return f"\n  *  For you: {self._game.results.ended_in_words(ending.marks[seat], ending.capped)}.  *\n"

    def _node(self, state: Any) -> Node:
        return self._game.node(state.view().node)

    def _wanted(self, state: Any) -> str:
        """What answers the question of now, in words: what is legal, where that is a list."""
        return wanted(self._node(state), self._game.legal_answers(state))

    def _output(self, node: Node, answer: Any, state: Any, seat: int) -> Any:
        """The output that this answer is; raises IllegalOutput if it is none."""
        return self._game.output_of(node.name, answer, state.cards(seat, DealStreams(0, 0).seat(seat)))


# The parts that a module `told` had then; a module `person` had the others.
_TOLD: Final = frozenset(("Teller", "rules", "in_short", "sentence", "to_me", "QUESTIONS", "drawn", "fits"))


def _attributes(value: Any) -> dict[str, Any]:
    """What an object shows of itself, without its methods."""
    names = [name for name in dir(value) if not name.startswith("_")]
    return {name: each for name in names if not callable(each := getattr(value, name))}


def _as_text(value: Any) -> str:
    """A value on one line; an object that has no text of its own by what it shows."""
    kind: Any = type(value)
    if kind.__str__ is object.__str__ and kind.__repr__ is object.__repr__:
        value = ", ".join(f"{name} {each}" for name, each in _attributes(value).items())
    return one_line(str(value), 1000)


def words_of(game: Game) -> Words:
    """A game's words: those of its module, and the others as `Words` has them."""
    words, own = Words(game), game.module("words")
    parts = {name for name in dir(words) if not name.startswith("_")}
    modules = [(own, parts)] if own else [(game.module("told"), _TOLD), (game.module("person"), parts - _TOLD)]
    for module, names in modules:
        for name in names:
            if hasattr(module, name):
                setattr(words, name, getattr(module, name))
    return words


def options_of(game: Game) -> list[Option]:
    """What of a game's rules a page offers."""
    return [Option(*option) for option in words_of(game).OPTIONS]


def bots_of(game: Game, there: Sequence[Any]) -> list[str]:
    """Whom a person plays against if they say nothing, of those who are `there`: never nobody."""
    names = [one.name for one in there if not one.asks]
    return [name for name in words_of(game).BOTS if name in names] or names


def strengths(game: Game, there: Sequence[Any]) -> list[tuple[str, list[str]]]:
    """Games to begin with at once, from easy to hard, each with the bots that are `there`; none where all are alike."""
    words, names = words_of(game), [one.name for one in there]
    of_each = [("easy", words.EASY), ("fair", words.BOTS), ("hard", words.HARD)]
    found = [(name, [bot for bot in bots if bot in names]) for name, bots in of_each]
    found = [(name, bots) for name, bots in found if bots]
    return found if len(found) > 1 else []


def called(game: Game) -> str:
    """A game's name, written as its summary begins, where that begins with it."""
    name = game.name.rpartition(":")[2].partition("(")[0].replace("_", " ")
    return game.summary[: len(name)] if game.summary.lower().startswith(name.lower()) else name


def question_in_words(game: Game, node: str) -> str:
    """What a node asks, short; by the name of the bots' method where its words do not say it."""
    return words_of(game).QUESTIONS.get(node) or f"{game.node(node).method.replace('_', ' ').capitalize()}?"


def marks_of(teller: Teller) -> Marks:
    """What the last move was, where a game's teller has `marks()` for it."""
    marks: Callable[[], Marks] | None = getattr(teller, "marks", None)
    return marks() if marks else Marks()


def faces_of(words: Words, names: Sequence[str]) -> list[list[str]]:
    """What a page draws: name, sign and icon of each."""
    return [[name, *words.FACES.get(name, Face(name))] for name in names]


def to_person(text: str, to_me: Mapping[str, str]) -> str:
    """The sentence spoken to the person whose label is `ME`, by these phrases, one after the other."""
    for phrase, said in to_me.items():
        text = text.replace(phrase, said)
    return text


def to_others(text: str, called: str = THE_PERSON) -> str:
    """The sentence with the seat whose label is `ME` told to whoever did not sit there."""
    return _BEGINS.sub(rf"\1{called.capitalize()}", text).replace(ME, called)


def facts_in(prompt_text: str) -> dict[str, str]:
    """What a prompt's last block of facts says, name to value; empty if it has none. So a stand-in reads a prompt."""
    _, begun, block = prompt_text.rpartition("=== facts ===\n")
    block, ended, _ = block.partition("\n=== end of facts ===")
    lines = block.split("\n") if begun and ended else []
    return {name: value for name, _, value in (line.partition(": ") for line in lines)}


def legal_in(prompt_text: str) -> list[str]:
    """What a prompt's last line of the kind `legal: draw | skip` lists; empty without one. So a stand-in reads it."""
    lines = [line.strip() for line in prompt_text.split("\n")]
    line = next((line for line in reversed(lines) if line.startswith(_LEGAL)), _LEGAL)
    return [part.strip() for part in line.removeprefix(_LEGAL).split("|") if part.strip()]


def counted(n: int, noun: str = "card") -> str:
    """1 card, 2 cards; of another noun alike."""
    return f"{n} {noun}{'s' * (n != 1)}"


def seat_label(seat: int) -> str:
    """The label that stories use: names may change, seats do not."""
    return f"seat {seat}"


def labels(players: Sequence[str], me: int | None) -> Label:
    """The player's name, with the seat where several share one or it is the person's; the person's seat is `ME`."""

    def label(seat: int) -> str:
        if seat == me:
            return ME
        name = one_line(players[seat])
        mistaken = me is not None and name.casefold() in ("you", A_PERSON, THE_PERSON)
        return f"{name} {seat}" if mistaken or players.count(players[seat]) > 1 else name

    return cache(label)  # a story names its seats hundreds of times


def names_to(players: Sequence[str], me: int | None, called: str = "You") -> list[str]:
    """What the seats are called; the person's, if nothing else is said, as they are spoken to."""
    label = labels(players, me)
    return [called if seat == me else label(seat) for seat in range(len(players))]


def in_words_to(words: Words, events: Sequence[GameEvent], label: Label, me: int) -> list[str]:
    """What the person at this seat observes of a move, in sentences to them."""
    return [
        words.to_me(sentence)
        for event in events
        if event.only in (None, me)
        if (sentence := words.sentence(event, label))
    ]


def forfeit_in_words(seat: int, label: Label, game: Game) -> str:
    """That a seat has ended the game by a mistake."""
    return f"{label(seat)} has failed: the game is over, and {game.forfeit_means}."


class _PlainTeller:
    def __init__(self, words: Words, game: Game, state: State, label: Label) -> None:
        self._words, self._game, self._state, self._label = words, game, state, label
        self._dealt = _plainly(game.deal_to_json(state))

    def holds(self, seat: int) -> str:
        return ""

    def moved(self, seat: int, output: Any, events: Sequence[Any]) -> list[Line]:
        given = _plainly(self._game.output_to_json(output))
        said = [self._words.sentence(event, self._label) for event in events if event.only is None]
        return [Line(" ".join(said), f"{self._label(seat)} gives {given}")]

    def panels(self) -> list[Panel]:
        return [Panel("The deal", "", one_line(self._dealt, 2000))]

    def ending(self) -> list[str]:
        ending, results = self._state.ending(), self._game.results
        ended = [results.ended_in_words(mark, ending.capped) for mark in ending.marks]
        seats = ", ".join(f"{self._label(seat)}: {how}" for seat, how in enumerate(ended))
        return [f"The game is over. {seats}."]


def _plainly(value: Any) -> str:
    """Plain data as somebody reads it who writes no programs."""
    match value:
        case bool():
            return "yes" if value else "no"
        case None:
            return "none"
        case dict():
            return "; ".join(f"{str(key).replace('_', ' ')}: {_plainly(each)}" for key, each in value.items())
        case list() | tuple():
            inner = [
                f"({_plainly(each)})" if isinstance(each, dict | list | tuple) else _plainly(each) for each in value
            ]
            return ", ".join(inner) or "none"
    return str(value)


_YES: Final = {"yes": True, "y": True, "no": False, "n": False}


def wanted(node: Node, legal: Sequence[Any] | None = None) -> str:
    """What answers a node, in words: these answers, where they are a list."""
    if legal:
        return listed_in_words(legal)
    match node.answer:
        case Bool():
            return "yes or no"
        case Choice(options):
            return f"one of {', '.join(options)}" if options else "one of the legal answers"
        case Cards():
            return "cards, as numbers with spaces between"
        case Text(most):
            return f"what you say, on one line of at most {most} characters"
    return "a whole number"


def _typed(line: str, node: Node) -> Any:
    """What was typed, as an answer of the node's kind, None for what is none; raises UsageError for an utterance."""
    word, kind = line.casefold().strip(), node.answer
    if isinstance(kind, Text):
        return _sayable(_bare(line.strip()), kind)
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
    return None


def _bare(line: str) -> str:
    """What was typed in quotes, without them: so a word that the terminal would take for its own can be said."""
    return line[1:-1] if len(line) > 2 and line[0] == line[-1] == '"' else line


def _sayable(answer: str, kind: Text) -> str:
    """The utterance; raises UsageError where it cannot be said."""
    if why := kind.why_not(answer):
        raise UsageError(why)
    return answer


def is_of_kind(answer: Any, node: Node) -> bool:
    """Whether an answer is what a node asks for, legal or not."""
    match node.answer:
        case Bool():
            return isinstance(answer, bool)
        case Choice(options):
            return isinstance(answer, str) and (options is None or answer in options)
        case Cards(cards):
            return isinstance(answer, list) and all(type(card) is int and card in cards for card in answer)
        case Text():
            return isinstance(answer, str)
        case _:
            return type(answer) is int


def _whole(word: str) -> int | None:
    digits = word.removeprefix("-")
    return int(word) if digits.isascii() and digits.isdecimal() and len(digits) < 10 else None
