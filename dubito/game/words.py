"""Text about a game for people, and parsing of moves that people enter."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple

from dubito.errors import UsageError, end_sentence, one_line, pluralize
from dubito.game.base import BaseGame, Bool, Cards, Choice, Node, S, State, Text, node_view
from dubito.game.events import GameEvent, RevealEvent, TakeEvent
from dubito.game.legal import describe_legal
from dubito.game.reader import Reader
from dubito.game.streams import DealStreams

if TYPE_CHECKING:
    from pydantic import BaseModel
    from typing_extensions import TypeVar

    R = TypeVar("R", bound=BaseModel, default=Any)
else:
    from typing import TypeVar

    R = TypeVar("R")

_LEGAL: Final = "legal:"
_VERDICTS: Final = {"won": "You win!", "win": "You win!", "lost": "You lost.", "loss": "You lost."}
HAND: Final = "Your hand: "


class Face(NamedTuple):
    """How a page draws a card, a die or a tool.

    Screen readers read out the key in `FACES`.
    """

    sign: str = ""  # printed on it: K, 10; a longer word is shown beside the icon
    icon: str = ""  # an icon of report/static/cards.js, or an SVG path in a box of 24 by 24


@dataclass(frozen=True, slots=True)
class Line:
    """Public text for a move, and text for omniscient viewers only."""

    sentence: str  # empty if the table observes nothing
    truth: str = ""
    cards: Sequence[str] = ()  # names of the cards mentioned in the truth, to draw next to it


@dataclass(frozen=True, slots=True)
class Play:
    """Cards that a seat played face down on a pile."""

    seat: int
    claim: str  # what everyone knows: 2 cards as 7s
    cards: Sequence[str]  # their names
    wrong: Sequence[str] | None = None  # the cards that make the claim a lie; None if it cannot be one
    shown: bool = False  # whether everyone has seen the cards

    @property
    def lie(self) -> bool | None:
        return None if self.wrong is None else bool(self.wrong)


@dataclass(frozen=True, slots=True)
class Panel:
    """A part of a game's state as public text, and as text for omniscient viewers."""

    title: str
    public: str
    truth: str = ""
    seat: int | None = None  # the panel's seat; None for the board
    # Names of cards to draw. They replace the words of `truth` after its first colon, or all of it if it has no colon;
    # without a truth, they replace the words of `public`.
    cards: Sequence[str] = ()
    folded: tuple[str, str] | None = None  # an optional part of the truth: its title, and the text shown when opened
    backs: int = 0  # number of cards that a page draws face down
    plays: Sequence[Play] = ()  # the plays on a pile, the last one on top
    badge: str = ""  # a short note next to the seat's name: place 1

    def known(self) -> list[object]:
        """Return what everyone may know."""
        plays = [
            [play.seat, play.claim, *([*play.cards, play.lie] if play.shown else [len(play.cards)])]
            for play in self.plays
        ]
        return [self.title, self.public, self.backs, self.badge, *([] if self.truth else self.cards), *plays]


@dataclass(frozen=True, slots=True)
class Marks:
    """Labels for the last move that help find bluffs and mistakes in a replay."""

    kinds: tuple[str, ...] = ()  # nouns for buttons: bluff, doubt
    mistake: str = ""  # the mover's mistake, such as "doubted an honest play"
    # A lie that was let pass, in words. It was a mistake only if the player thought it was a lie.
    let_pass: str = ""
    catches: bool = False  # whether the move catches a lie
    note: str = ""  # shown with the number of the turn: a free turn


@dataclass(frozen=True, slots=True)
class Scene:
    """A call that pages play step by step, before they draw the state after it.

    A seat calls, cards turn over one by one, a stamp falls on them, and the pile flies to the seat that takes it.
    """

    caller: int
    call: str  # in a speech bubble: Dubito!
    cards: Sequence[str]  # the cards that turn over, or that stay face down if not everyone sees them
    wrong: Sequence[str] = ()  # the cards that make a claim a lie
    shown: bool = True  # whether everyone sees the cards
    stamp: str = ""  # a word
    bad: bool = False  # whether the stamp is about a lie or a loss
    taker: int | None = None  # None if the pile stays or is discarded
    pile: int = 0  # number of cards that the taker picks up
    known: bool = False  # whether the cards were face up before


@dataclass(frozen=True, slots=True)
class Claim:
    """What a person can claim about the cards that they play."""

    value: object  # in the answer
    one: str  # of one card: queen
    many: str  # of several: queens
    honest: Sequence[int]  # the cards of which it is true


@dataclass(frozen=True, slots=True)
class Question:
    """A question to the person at the table, for a page.

    `kind` is `bool`, `choice`, `whole`, `text`, `cards`, or `play`: cards with a claim about them.
    """

    node: str
    kind: str
    wanted: str  # the question in words
    options: Sequence[object]  # the legal answers, as buttons; for cards, those held; for text, the maximum length
    labels: Sequence[str] = ()  # labels of the options' buttons
    bounds: tuple[int, int] | None = None  # the lowest and highest number, if there are too many numbers for buttons
    claims: Sequence[Claim] = ()  # possible claims about cards
    most: int | None = None  # maximum number of cards, if there is one
    others: Sequence[tuple[str, object]] = ()  # other answers, with the labels of their buttons
    tips: Mapping[str, str] = field(default_factory=dict)  # for a first game: by name; `lie` is about choosing one
    prompt: str = ""  # what to answer to, beside the buttons: what a player claims, as a question


@dataclass(frozen=True, slots=True)
class Option:
    """A rule that players can change on the page. The first value is the default."""

    rule: str
    label: str
    values: Sequence[tuple[object, str]]


class Teller(Generic[S]):
    """Narrates a game for viewers who see everything, to be subclassed.

    A teller is created when the game is dealt, and notified after every move.
    """

    marks = Marks()  # of the last move
    scene: Scene | None = None  # of the last move, if pages play it step by step

    def __init__(self, words: "Words", state: S, reader: Reader) -> None:
        self.words, self.state, self.reader = words, state, reader

    def describe_hand(self, seat: int) -> str:
        """Describe a seat's cards. Return an empty string if they cannot be described."""
        return ", ".join(self.words.hand(self.state, seat))

    def hand_panel(self, seat: int, badge: str = "") -> Panel:
        """Return a panel with the number of a seat's cards, and the cards themselves as the truth."""
        held = self.words.hand(self.state, seat)
        count = pluralize(len(held)) if held else "no cards"
        return Panel(self.reader.name(seat), count, self.describe_hand(seat), seat, held, backs=len(held), badge=badge)

    def describe_move(self, seat: int, output: object, events: Sequence[GameEvent]) -> list[Line]:
        """Return the text for a move, given all its events."""
        self.marks, self.scene = Marks(), self.words.scene(events)
        for event in events:
            self.see(event)
        return self.words.lines(events, self.reader)

    def see(self, event: GameEvent) -> None:
        """Note an event of a move: set the move's `marks`, keep what `panels` needs, or set another `scene`."""

    def panels(self) -> list[Panel]:
        """Return the whole state: the seats and the board."""
        raise NotImplementedError

    def ending(self) -> list[str]:
        """Return a sentence on how the game ended, and any other closing remarks."""
        ending, results = self.state.ending(), self.words.game.results
        ended = [results.describe_ending(mark, ending.capped) for mark in ending.marks]
        seats = ", ".join(
            f"{(self.reader.name if seat else self.reader.starts)(seat)}: {how}" for seat, how in enumerate(ended)
        )
        return [f"The game is over. {seats}."]


class Words(Generic[S, R]):
    """A game's text for people, to be subclassed. The defaults use its events, nodes and views.

    A `Reader` names the seats in each sentence, and addresses one of them if that seat's player reads it.
    """

    BOTS: Sequence[str] = ()  # good default opponents for a person
    EASY: Sequence[str] = ()  # opponents for an easy game
    HARD: Sequence[str] = ()  # opponents for a hard game
    ENTER: str = ""  # the meaning of an empty line, if any
    # fields of `Option`, one tuple per rule on the page
    OPTIONS: Sequence[tuple[str, str, Sequence[tuple[object, str]]]] = ()
    QUESTIONS: Mapping[str, str] = {}  # short form of each node's question, by node
    FACES: Mapping[str, Face] = {}  # by card name; other cards are drawn as their name
    SLOGAN: str = ""  # headline of the lobby; the title if empty
    DRAWN_LINES: Sequence[str] = (HAND,)  # starts of lines of `describe_view` that a page omits because it draws them
    # Name, sign and icon of the cards that illustrate the game; some of its faces if empty.
    PICTURE: Sequence[tuple[str, str, str]] = ()

    CALLS: tuple[str, str] = (
        "Show!",
        "Mine!",
    )  # what a seat says when cards are turned over for it, or when it takes some

    TELLER: type[Teller[Any]] | None = None  # narrates games instead of a teller that shows plain data

    def __init__(self, game: BaseGame) -> None:
        self.game = game

    @property
    def TITLE(self) -> str:  # noqa: N802, a constant of most games
        name = display_name(self.game)
        return f"{name[:1].upper()}{name[1:]}"

    @property
    def LEAD(self) -> str:  # noqa: N802
        """The game in a sentence or two."""
        return end_sentence(self.game.summary)

    @property
    def HOW(self) -> str:  # noqa: N802
        """How to type a move."""
        nodes = self.game.nodes
        kinds = dict.fromkeys(f"When asked `{node.name}`, type {describe_answers(node)}." for node in nodes)
        speaks = any(isinstance(node.answer, Text) for node in nodes)
        return " ".join([*kinds, *(["You may put your message in quotes."] if speaks else [])])

    def options(self) -> list[Option]:
        """Return the rules of the game that players can change on a page."""
        return [Option(*option) for option in self.OPTIONS]

    def default_bots(self, names: Sequence[str]) -> list[str]:
        """Return a person's default opponents among these bots. The list is never empty."""
        return [name for name in self.BOTS if name in names] or [*names]

    def strengths(self, names: Sequence[str]) -> list[tuple[str, list[str]]]:
        """Return quick games from easy to hard, each with its opponents among these bots.

        Return an empty list if there are fewer than two.
        """
        of_each = [("easy", self.EASY), ("medium", self.BOTS), ("hard", self.HARD)]
        levels = [(name, [bot for bot in bots if bot in names]) for name, bots in of_each]
        levels = [(name, bots) for name, bots in levels if bots]
        return levels if len(levels) > 1 else []

    def short_question(self, node: str) -> str:
        """Return a short form of a node's question, by default the name of the bots' method."""
        return self.QUESTIONS.get(node) or f"{self.game.node(node).method.replace('_', ' ').capitalize()}?"

    def teller(self, state: S, reader: Reader) -> Teller[S]:
        """Return a narrator of a newly dealt game."""
        return (self.TELLER or _PlainTeller)(self, state, reader)

    def rules(self, rules: R, seats: int) -> list[str]:
        """Return the rules in force, one sentence or paragraph per item."""
        return [end_sentence(sentence) for sentence in (self.game.summary, self.summarize_rules(rules)) if sentence]

    def summarize_rules(self, rules: R) -> str:
        """Return the variable rules and their values."""
        return ", ".join(f"{key}: {value}" for key, value in rules.model_dump().items())

    def sentence(self, event: GameEvent, reader: Reader) -> str:
        """Describe an event in a sentence. Return an empty string if there is nothing to report."""
        names: list[str] = [field.name for field in fields(event)] if is_dataclass(event) else []
        pairs = ", ".join(f"{name} {getattr(event, name)}" for name in names)
        return f"{type(event).__name__}: {pairs}" if pairs else type(event).__name__

    def shown_cards(self, event: GameEvent) -> Sequence[str]:
        """Return the names of the cards that a private event shows, to draw them."""
        return ()

    def scene(self, events: Sequence[GameEvent]) -> Scene | None:
        """Return how pages play a move: the cards of its `RevealEvent`, and the flight of its `TakeEvent`."""
        public = [event for event in events if event.only is None]
        revealed = next((event for event in public if isinstance(event, RevealEvent)), None)
        taken = next((event for event in public if isinstance(event, TakeEvent)), None)
        if (first := revealed or taken) is None:
            return None
        wrong = revealed and revealed.wrong
        lie, _ = self.game.results.lie_words
        return Scene(
            first.seat,
            self.CALLS[revealed is None],
            first.cards,
            wrong or (),
            stamp="" if wrong is None else lie if wrong else "honest",
            bad=bool(wrong),
            taker=taken.seat if taken else None,
            pile=len(taken.cards) if taken and taken.into_hand else 0,
            known=revealed is None,
        )

    def lines(self, events: Sequence[GameEvent], reader: Reader) -> list[Line]:
        """Describe events. What only one seat sees, or no seat, becomes the truth of the line before."""
        lines: list[Line] = []
        for event in events:
            text = self.sentence(event, reader)
            if text and event.only is None:
                lines.append(Line(text))
            elif text:
                sentence = lines.pop().sentence if lines and not lines[-1].truth else ""
                lines.append(Line(sentence, text, self.shown_cards(event)))
        return lines

    def describe_view(self, state: S, seat: int, reader: Reader) -> list[str]:
        """Return lines with what the seat to move sees and is asked.

        They contain nothing that is hidden from the seat.
        """
        view = node_view(state)
        lines = [f"{name}: {_as_text(value)}" for name, value in _attributes(view).items() if name != "node"]
        held = _as_text(state.cards(seat, DealStreams(0, 0).seat(seat)))
        return [*lines, f"{HAND}{held}", f"{view.node}? {self._describe_answers(state)}"]

    def hand(self, state: S, seat: int) -> Sequence[str]:
        """Return the names of the cards to draw for the seat, or an empty list to only use words.

        By default, these are the bot's `self.cards` if all of them have a face.
        """
        held = state.cards(seat, DealStreams(0, 0).seat(seat))
        names = [held] if isinstance(held, str) else [*held] if isinstance(held, Iterable) else []
        return names if all(isinstance(name, str) and name in self.FACES for name in names) else []

    def key_hint(self, state: S) -> str:
        """Return a short hint on what to type now, or an empty string if `HOW` is sufficient."""
        return ""

    def parse_line(self, line: str, state: S, seat: int) -> object:
        """Parse a typed line into an output that may be illegal. Raises UsageError."""
        node = self._node(state)
        answer = _parse_typed(line, node)
        if answer is None:
            raise UsageError(f"'{one_line(line, 20)}' is not an answer here: type {self._describe_answers(state)}")
        return self._output(node, answer, state, seat)

    def parse_answer(self, answer: object, state: S, seat: int) -> object:
        """Convert an answer sent by a page to an output that may be illegal. Raises UsageError."""
        node = self._node(state)
        if not is_of_kind(answer, node):
            raise UsageError(f"this is not an answer to `{node.name}`: give {self._describe_answers(state)}")
        if isinstance(node.answer, Text) and (why := node.answer.why_not(answer)):
            raise UsageError(why)
        return self._output(node, answer, state, seat)

    def playable_cards(self, state: S, seat: int) -> list[int]:
        """Return the cards that the seat can answer with, each as often as it is held.

        By default, all cards of the game.
        """
        kind = self._node(state).answer
        return list(kind.cards) if isinstance(kind, Cards) else []

    def label_answer(self, state: S, answer: object) -> str:
        """Return the label of the button for this answer."""
        return ("Yes" if answer else "No") if isinstance(answer, bool) else str(answer)

    def speech(self, output: object, events: Sequence[GameEvent]) -> str:
        """Return the text of a speech bubble next to the mover, or an empty string for no bubble.

        The text must be public; `events` is what everyone observed.
        """
        return ""

    def question(self, state: S, seat: int, reader: Reader) -> Question | None:
        """Return what a page asks the seat to move, or None to ask the view's node."""
        return None

    def claims(self, state: S, seat: int) -> Sequence[Claim]:
        """Return what the seat can claim about the cards that it plays now."""
        return ()

    def choices(self, state: S) -> list[str]:
        """Return the names the seat to move can choose from. Pages only show the legal ones."""
        if not isinstance(self._node(state).answer, Choice):
            return []
        return [*map(str, self.game.legal_answers(state) or ())]

    def why_illegal(self, state: S, output: object) -> str | None:
        """Return the engine's reason why the seat to move may not do this."""
        return node_view(state).why_illegal(output)

    def cheer(self, state: S, seat: int) -> str:
        """Return a line for a person whose game was ended by the last move, otherwise an empty string."""
        if not self.is_decided(state, seat):
            return ""
        return f"\n  *  {' '.join(filter(None, (self.verdict(state, seat), self.explain_verdict(state, seat))))}  *\n"

    def is_decided(self, state: S, seat: int) -> bool:
        """Return whether the game can end in only one way for the seat."""
        return state.over

    def verdict(self, state: S, seat: int) -> str:
        """Return the result of a finished game as a sentence addressed to the person at the seat."""
        ending = state.ending()
        how = self.game.results.describe_ending(ending.marks[seat], ending.capped)
        is_verb = how.startswith(("won ", "lost "))
        return _VERDICTS.get(how, f"You {how}." if is_verb else f"Your result: {how}.")

    def explain_verdict(self, state: S, seat: int) -> str:
        """Return a sentence that explains the verdict, or an empty string to show the end of the log."""
        return ""

    def _node(self, state: S) -> Node:
        return self.game.node(node_view(state).node)

    def _describe_answers(self, state: S) -> str:
        """Describe valid answers to the current question."""
        return describe_answers(self._node(state), self.game.legal_answers(state))

    def _output(self, node: Node, answer: object, state: S, seat: int) -> object:
        """Convert an answer to an output. Raises IllegalOutput if that is not possible."""
        return self.game.output_of(node.name, answer, state.cards(seat, DealStreams(0, 0).seat(seat)))


def _attributes(value: object) -> dict[str, object]:
    """Return an object's public attributes, without its methods."""
    names = [name for name in dir(value) if not name.startswith("_")]
    return {name: each for name in names if not callable(each := getattr(value, name))}


def _as_text(value: object) -> str:
    """Return a value as one line. An object without its own `__str__` is shown by its items or its attributes."""
    kind = type(value)
    if kind.__str__ is object.__str__ and kind.__repr__ is object.__repr__:
        of_it = (
            value if isinstance(value, Iterable) else (f"{name} {each}" for name, each in _attributes(value).items())
        )
        value = ", ".join(map(str, of_it))
    return one_line(str(value), 1000)


def display_name(game: BaseGame) -> str:
    """Return a game's name as spelled at the start of its summary, if it is there."""
    name = game.name.rpartition(":")[2].partition("(")[0].replace("_", " ")
    return game.summary[: len(name)] if game.summary.lower().startswith(name.lower()) else name


def list_faces(words: Words, names: Sequence[str]) -> list[list[str]]:
    """Return what a page draws: the name, sign and icon of each card."""
    return [[name, *words.FACES.get(name, Face(name))] for name in names]


def parse_facts(prompt_text: str) -> dict[str, str]:
    """Parse the last block of facts in a prompt, for fake models. Without such a block, return an empty mapping."""
    _, begun, block = prompt_text.rpartition("=== facts ===\n")
    block, ended, _ = block.partition("\n=== end of facts ===")
    lines = block.split("\n") if begun and ended else []
    return {name: value for name, _, value in (line.partition(": ") for line in lines)}


def parse_legal(prompt_text: str) -> list[str]:
    """Parse the last line like `legal: draw skip` in a prompt, for fake models.

    Return an empty list if there is none.
    """
    lines = [line.strip() for line in prompt_text.split("\n")]
    line = next((line for line in reversed(lines) if line.startswith(_LEGAL)), _LEGAL)
    return [part.strip() for part in line.removeprefix(_LEGAL).split("|") if part.strip()]


def person_sentences(words: Words, events: Sequence[GameEvent], reader: Reader) -> list[str]:
    """Return what the reader observes of a move at the table."""
    return [
        sentence
        for event in events
        if event.only is None or (event.only == reader.me and not event.silent)
        if (sentence := words.sentence(event, reader))
    ]


def describe_start(words: Words, state: State, reader: Reader) -> str:
    """Describe what everyone observes of the deal."""
    shown = (words.sentence(event, reader) for event in state.start if event.only is None)
    return " ".join(filter(None, shown))


def describe_forfeit(seat: int, reader: Reader, game: BaseGame) -> str:
    """Report that a seat's mistake has ended the game."""
    return f"{reader.starts(seat, 'has')} failed: the game is over, and {game.forfeit_means}."


class _PlainTeller(Teller):
    def __init__(self, words: Words, state: State, reader: Reader) -> None:
        super().__init__(words, state, reader)
        self._dealt = _plain_text(words.game.deal_to_json(state))

    def describe_move(self, seat: int, output: object, events: Sequence[GameEvent]) -> list[Line]:
        self.scene = self.words.scene(events)
        answer = _plain_text(self.words.game.output_to_json(output))
        sentences = [self.words.sentence(event, self.reader) for event in events if event.only is None]
        return [Line(" ".join(sentences), f"{self.reader.starts(seat, 'gives')} {answer}")]

    def panels(self) -> list[Panel]:
        return [Panel("The deal", "", one_line(self._dealt, 2000))]


def _plain_text(value: object) -> str:
    """Format plain data for readers who are not programmers."""
    match value:
        case bool():
            return "yes" if value else "no"
        case None:
            return "none"
        case dict():
            return "; ".join(f"{str(key).replace('_', ' ')}: {_plain_text(each)}" for key, each in value.items())
        case list() | tuple():
            inner = [
                f"({_plain_text(each)})" if isinstance(each, dict | list | tuple) else _plain_text(each)
                for each in value
            ]
            return ", ".join(inner) or "none"
    return str(value)


_YES: Final = {"yes": True, "y": True, "no": False, "n": False}


def describe_answers(node: Node, legal: Sequence[object] | None = None) -> str:
    """Describe valid answers to a node, listing the legal ones if given."""
    if legal:
        return describe_legal(legal)
    match node.answer:
        case Bool():
            return "yes or no"
        case Choice(options):
            return f"one of {', '.join(options)}" if options else "one of the legal answers"
        case Cards():
            return "cards, as numbers separated by spaces"
        case Text(most):
            return f"a message, on one line of at most {most} characters"
    return "a whole number"


def _parse_typed(line: str, node: Node) -> object:
    """Parse a typed line as an answer of the node's type, or return None.

    Raises UsageError for an invalid message.
    """
    word, kind = line.casefold().strip(), node.answer
    if isinstance(kind, Text):
        message = line.strip()
        # Quotes around a line allow words that are also terminal commands.
        if len(message) > 2 and message[0] == message[-1] == '"':
            message = message[1:-1]
        if why := kind.why_not(message):
            raise UsageError(why)
        return message
    if isinstance(kind, Bool) and word in _YES:
        return _YES[word]
    if isinstance(kind, Choice):
        folded = {name.casefold(): name for name in kind.options or [line.strip()]}
        if word in folded:
            return folded[word]
    if isinstance(kind, Cards):
        numbers = [_parse_int(part) for part in word.replace(",", " ").split()]
        if numbers and None not in numbers and {*numbers} <= {*kind.cards}:
            return numbers
    elif not isinstance(kind, Bool | Choice) and (number := _parse_int(word)) is not None:
        return number
    return None


def is_of_kind(answer: object, node: Node) -> bool:
    """Return whether an answer has the type that the node asks for, even if illegal."""
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


def _parse_int(word: str) -> int | None:
    digits = word.removeprefix("-")
    return int(word) if digits.isascii() and digits.isdecimal() and len(digits) < 10 else None
