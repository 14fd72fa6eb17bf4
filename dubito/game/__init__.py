"""What the harness knows of a game: all that packages outside `dubito/games` may know of one.

A game is a `Game`. Dealt, it is a `State` that is driven by its outputs: `view()` is what the seat to move sees,
`apply(output)` makes its move and returns what the table observes. Bots are `Player`s of the game's own base class.
Beside its `game.py`, a game's package may hold modules that are found by name: `facts` (`Facts`: what prompts say),
`stand_in` (`MODELS`: what the house answers), `words` (for viewer, terminal and who sits at the table), `training`
(`COURSE`: for OpenSpiel). Those of a `Family` have an `of(game)` that gives what one of its games has.

What it counts and what of that is rated is its `Results`; the results of a run are in stats/ranking.py.
"""

import sys
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from importlib.util import find_spec
from random import Random
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, Protocol, cast

from dubito.errors import IllegalOutput, UsageError, one_line
from dubito.game.legal import View as View
from dubito.game.legal import legal_of
from dubito.game.seating import Player as Player
from dubito.game.seating import Seating as Seating
from dubito.game.seating import fallback_for as fallback_for
from dubito.game.seating import make_player as make_player
from dubito.game.speech import why_not_said
from dubito.game.streams import DealStreams, SeatStreams

if TYPE_CHECKING:
    from pydantic import BaseModel

FALLBACK_TURNS: Final = "fallback_turns"  # the last count of every seat: moves made for a bot that failed
EXTRACTED_OUTCOME: Final = ":last_object"  # ends the outcome of an answer that was taken out of a longer reply
FALLBACK_OUTCOME: Final = "fallback:"  # begins the outcome of a decision that the fallback took; the cause follows
FORFEITS: Final = "forfeits"  # a seat count of games that can be forfeited: whether this seat did


@dataclass(frozen=True, slots=True)
class Ending:
    """A finished game in whole numbers from 0, as `Results` names them; lists are by seat."""

    capped: bool  # over because of a cap, not of the rules
    game_counts: tuple[int, ...]
    marks: list[int]  # what a seat came to: a place, a win, a return
    counts: list[tuple[int, ...]]


class GameEvent:
    """What is observed of a move. Immutable, since all observers share it."""

    __slots__ = ()

    only: int | None = None  # the one seat that observes it; None: everybody who is in the game
    leaves: int | None = None  # the seat that observes nothing after this


class State(Protocol):
    """A dealt game, at rest between two moves. No clock and no I/O; chance is the stream it was dealt with."""

    @property
    def seat(self) -> int:
        """Whose move it is."""

    @property
    def over(self) -> bool:
        """Whether nobody has a move any more."""

    @property
    def turns_played(self) -> int:
        """Finished turns, in the game's own sense."""

    @property
    def start(self) -> GameEvent:
        """What is observed before the first move; asked for while none was made."""

    def view(self) -> Any:
        """What the seat to move sees; valid until the move is made.

        Where a move is one node's answer it has `node` and `why_illegal(output)`: a sentence, or None if that is legal.
        It may have `legal()`, the outputs that are legal now where they are a list; a `View` needs but one of the two.
        """

    def cards(self, seat: int, streams: SeatStreams) -> Any:
        """A read-only view of what a seat holds, its bot's `self.cards`, that draws from these streams."""

    def apply(self, output: Any, announce: bool = True) -> Sequence[GameEvent]:
        """Make the move of the seat to move and return what is observed, in order; nothing with `announce` off.

        Raises IllegalOutput, the state untouched, if the rules refuse the output.
        """

    def copy_of(self, output: Any) -> Any:
        """A copy of an output that was applied, which no bot can reach."""

    def ending(self) -> Ending:
        """What the finished game came to."""


@dataclass(frozen=True, slots=True)
class Bool:
    """An answer that is yes or no."""


@dataclass(frozen=True, slots=True)
class Choice:
    """An answer that is one of the game's fixed names."""

    options: tuple[str, ...] | None  # None: too many for a list, so that only the state says which there are


@dataclass(frozen=True, slots=True)
class Whole:
    """An answer that is a whole number; which ones are legal is the state's to say."""


@dataclass(frozen=True, slots=True)
class Cards:
    """An answer that is a list of the game's fixed cards; a card may stand in it as often as it is held."""

    cards: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Shares:
    """An answer that says how probable each of the game's fixed names is: numbers from 0 to 1 that sum to 1."""

    options: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Text:
    """An answer that is said: one line of characters that everybody can see (the rule stands in game/speech.py)."""

    most: int  # characters

    def why_not(self, said: object) -> str | None:
        """Why this cannot be said; None if it can. The game's `apply` refuses what cannot, as it does other outputs."""
        return why_not_said(said, self.most)


Answer = Bool | Choice | Whole | Cards | Shares | Text


ODDS: Final = "odds"  # of a stand-in's answer
REASON: Final = "reasoning"  # of a stand-in's answer, and what a reason is called in those of models
STATED: Final = "p_bluff"  # what a stated probability is called in answers, tables and files


class Node(NamedTuple):
    """A decision point: the unit that a model is asked."""

    name: str  # as requests, records and tables have it
    method: str  # of the game's bot base, that answers it
    answer: Answer
    states: str | None = None  # a field that a model may state beside its answer; judged by the truth, decides nothing
    stating: str = "the last play is a bluff"  # what is stated the probability of
    truths: tuple[str, str] = ("a bluff", "honest")  # what is said to a person where that is so, and where it is not


class Position(Protocol):
    """All that one seat has when one node is asked; what else is in it is the game's."""

    @property
    def seat(self) -> int:
        """Who is asked."""

    @property
    def node(self) -> str:
        """The node that is asked."""


class Notebook(Protocol):
    """What one seat has seen, played and answered so far, kept by its player or by somebody who watches."""

    def observe(self, event: Any, cards: Any) -> None:
        """The seat observed this; `cards` is what it holds now."""

    def answered(self, node: str, answer: Any) -> None:
        """The seat has answered this question, which nobody may have observed: with its output, where that is all of
        a move."""

    def position(self, node: str, view: Any, cards: Any) -> Any:
        """The question that it is asked now."""


class Facts(Protocol):
    """A game's module `facts`: what a prompt may tell of a position, which holds nothing that its seat cannot know.

    That of a game with a walk may have `turn(position)`, for prompts that ask all the questions of a turn at once: the
    position and those of all questions that its turn may yet ask, in order, each after the answers that lead there;
    and `AT_ONCE`, the facts that read otherwise for a decision model, which is put them all whatever the prompt.
    """

    @property
    def Notebook(self) -> Callable[[int, Any], Notebook]:  # noqa: N802, a class
        """By seat and rules."""

    def facts(self, position: Any) -> dict[str, Any]:
        """Plain values that JSON can hold, with the same keys at every node.

        A prompt with a `history.jinja` needs two of them: `history`, an event a line, and `own_moves`, the places in
        it of the seat's own moves.
        """

    def steady_facts(self) -> Set[str]:
        """The facts that stay the same for one seat through a whole game."""

    def example_position(self, node: str) -> Any:
        """A fixed position at which this node is asked."""

    def to_json(self, position: Any) -> str:
        """The position as a file: a JSON object."""

    def from_json(self, text: str) -> Any:
        """The inverse; ignores `hidden`, the truth. Raises UsageError that names what is malformed."""


@dataclass(frozen=True, slots=True)
class Measure:
    """What is rated: a whole number a seat, from 0 to `scale`, that follows from its bucket or is one of its counts."""

    key: str
    title: str  # of its column
    name: str  # in headings: Hard wins
    values: tuple[int, ...] = ()  # by bucket; none where it is a count
    scale: int = 1  # how many are a whole one
    count: str = ""  # of the seat's counts, the one that it is
    span: tuple[float, float] | None = None  # what 0 and `scale` stand for; None: shares of games, told in percent

    @property
    def titled(self) -> str:
        return self.title if self.span else f"{self.title} %"

    @property
    def named(self) -> str:
        return self.name if self.span else f"{self.name}, %"


@dataclass(frozen=True, slots=True)
class Habit:
    """A way to play, as a ratio of two of a seat's counts."""

    key: str
    title: str  # of its column
    name: str  # in charts: bluffs
    count: str
    of: str
    most: int = 1  # how many of the first there can be to one of the second; above 1 it is no share, but a number


@dataclass(frozen=True)
class Results:
    """What a game counts, and what of it is rated."""

    buckets: tuple[str, ...]  # what a game can be for a seat, in the plural: hard_wins, losses
    endings: tuple[str, ...]  # the same in words for one seat: hard win, loss
    bucket: Callable[[int, bool], int]  # of a mark, in a game that was capped or not: its place in `buckets`
    measures: tuple[Measure, ...]  # the first one ranks
    headline: tuple[str, ...]  # of the measures: what pairs, seats and bounds are told of; neighbours, of the last
    equal_share: Callable[[int], Mapping[str, float]]  # at so many seats: each measure if all are alike, where known
    game_counts: tuple[str, ...]  # the first one is the turns
    seat_counts: tuple[str, ...]
    scoreboard: tuple[str, ...] = ()  # of the buckets: those whose counts stand before the games in the ranking
    averaged: tuple[str, ...] = ()  # of the seat's counts: published as means
    habits: tuple[Habit, ...] = ()
    standing: Callable[[int, int, bool], int] | None = None  # of a mark, at so many seats, capped: 0 to 2 (seats - 1)
    unfinished: str | None = None  # the bucket of games that have no standing
    ended: Callable[[int, bool], str] | None = None  # of a mark, capped: how a seat ended; None: as `endings` has it
    turns_in_words: Callable[[Sequence[float]], str] = lambda means: f"{means[0]:.1f}"  # of the game's counts a game
    lies: str = ""  # of the habits, in a game with lies: the share of moves that are (Game.lie)
    lies_in_words: str = ""  # what is a lie by choice, and what is a forced one
    lie_nodes: tuple[str, ...] = ()  # where a yes means to lie
    lie_words: tuple[str, str] = ("lie", "accusation")  # what one lie is called, and to call a play one
    found_out: str = ""  # of the seat's counts: the lies that were
    charted: tuple[str, ...] = ()  # the habits that are drawn, shares all of them; neighbours are ordered by the first
    rate: str = "win rate"  # what the last headline measure is called where neighbours are
    meaning: str = ""  # of the first measure, in a sentence for people
    neighbours: str = ""  # what sits behind the variation with neighbours, in words
    habits_in_words: str = ""  # what a reader must know of the habits
    stated: str = ""  # of what models state the probability, in words

    def ended_in_words(self, mark: int, capped: bool) -> str:
        return self.ended(mark, capped) if self.ended else self.endings[self.bucket(mark, capped)]

    @cached_property
    def counts(self) -> tuple[str, ...]:
        """What is kept of every seat: the game's counts, and the turns that were played for a bot that failed."""
        return (*self.seat_counts, FALLBACK_TURNS)

    @cached_property
    def counted(self) -> tuple[str, ...]:
        """Of the game's own: those that are published as they are, neither as means nor as a measure."""
        others = {*self.averaged, *(measure.count for measure in self.measures)}
        return tuple(count for count in self.seat_counts if count not in others)

    @cached_property
    def seat_sums(self) -> tuple[str, ...]:
        """What a run sums over a player's seats."""
        return ("games", *self.counts, *(("position",) if self.standing else ()))

    @cached_property
    def by_bucket(self) -> tuple[tuple[int, ...], ...] | None:
        """By bucket: every measure; None where one does not follow from it."""
        if any(measure.count for measure in self.measures):
            return None
        return tuple(zip(*(measure.values for measure in self.measures), strict=True))

    def measured(self, bucket: int, counts: Sequence[int]) -> tuple[int, ...]:
        if self.by_bucket is not None:
            return self.by_bucket[bucket]
        return tuple(
            counts[self.counts.index(measure.count)] if measure.count else measure.values[bucket]
            for measure in self.measures
        )

    def measure(self, key: str) -> Measure:
        return self.measures[self.place(key)]

    def habit(self, key: str) -> Habit:
        return next(habit for habit in self.habits if habit.key == key)

    def place(self, key: str) -> int:
        """Where a measure stands among all."""
        return [measure.key for measure in self.measures].index(key)


# What a prompt says -> `answer`; beside it why, what is stated, and how probable an answer is that is not certain.
HousePolicy = Callable[[str, Random], Mapping[str, Any]]


class Member(NamedTuple):
    """A game of a family, listed."""

    name: str  # without the family's
    seats: tuple[int, int]
    about: str
    why_not: str | None = None  # why it cannot be played


class Family(NamedTuple):
    """Games that are named by what stands behind a colon, as `openspiel:kuhn_poker`; bots and prompts are for all."""

    name: str
    summary: str  # one line, for `dubito games`
    member: Callable[[str], "Game"]  # by what stands behind the colon; raises UsageError
    members: Callable[[], Iterable[Member]]  # by name, what cannot be played among them; raises UsageError


def no_rules(**said: Any) -> "BaseModel":
    """The `rules` of a game with nothing to vary: refuses every key."""
    from dubito.files import NoRules  # late: whoever lists bots or games needs no pydantic

    return NoRules(**said)


def unanswered(base: type[Player], nodes: Sequence[Node]) -> Callable[[type[Player]], list[str]]:
    """`Game.missing` where a bot of this base has to answer every node; one with a `play` of its own has none."""

    def missing(cls: type[Player]) -> list[str]:
        left = [node for node in nodes if getattr(cls, node.method, None) is getattr(base, node.method)]
        return [f"{node.name} ({node.method})" for node in left] if cls.play is base.play else []

    return missing


def house_contenders(openai: str, anthropic: str) -> list[dict[str, Any]]:
    """For `Game.demo`: two models of the house, each asked by the protocol of one provider; `random` is chance."""
    asked = ("OpenAIBot", openai, "OpenAI's protocol"), ("AnthropicBot", anthropic, "Anthropic's")
    return [
        {"bot": bot, "name": f"{name.replace('random', 'chance')} by {whose}", "model": f"house-{name}"}
        | {"base_url": "house"}
        for bot, name, whose in asked
    ]


LineupKind = Literal["uniform", "distinct", "ordered_pairs"]
PlayerKind = Literal["model", "stand-in", "hand-written", "person"]  # what decides for a player
Lie = Literal["chosen", "forced"]  # by a seat that could have been honest, or that could not


class Deed(NamedTuple):
    """What a move is where there are lies: a play that can be one, a word on somebody's play, or both at once."""

    pile: int  # cards that lie there before it
    cards: int = 0  # that it plays; 0: it is no play
    of: int | None = None  # the seat whose play it calls a lie or lets pass; None: nobody's
    is_lie: bool = False  # what that play is
    called: bool = False  # a lie


@dataclass(frozen=True, eq=False)  # a game is itself, and nothing like it
class Game:
    """A game as the harness has it."""

    name: str
    summary: str  # one line, for `dubito games`
    # The config's `rules` by keyword: a class of pydantic's, or what makes one of it; strict, frozen, no other keys,
    # every one with a default.
    rules: "Callable[..., BaseModel]"
    seats: tuple[int, int]  # at least and at most, by its usual rules
    lineup: LineupKind  # how bots are drawn for a deal: with replacement, without, or each against each
    base: type[Player]
    base_path: str  # what a bot writer imports: bots.base.BotBase
    fallback: str  # the bot that plays for one that failed, deliberately the weakest
    nodes: tuple[Node, ...]
    results: Results
    deal: Callable[[Any, int, Random], State]  # by these rules, to so many seats, from this stream
    deal_to_json: Callable[[Any], dict[str, Any]]  # asked before the first move; enough to see that two are the same
    output_to_json: Callable[[Any], Any] = lambda output: output  # as plain values that JSON can hold
    output_from_json: Callable[[Any], Any] = lambda output: output  # the inverse
    # Of a model's answer at a node, by what its seat holds; raises IllegalOutput where there is no such output.
    output_of: Callable[[str, Any, Any], Any] = lambda node, answer, cards: answer
    # The inverse: the answer that makes this output, or one like it.
    answer_of: Callable[[str, Any], Any] = lambda node, output: output
    # The outputs that are legal at a view, None where they are no list; of a game whose views have another `legal`.
    legal: Callable[[Any], Sequence[Any] | None] = legal_of
    # The questions of one turn, where it may take several: of a bot and what it sees, the nodes one by one; takes the
    # answer to each, and returns the output. None: every move is one node's answer, the one that the view names.
    walk: Callable[[Any, Any], Generator[str, Any, Any]] | None = None
    package: str = ""  # where its modules are
    family: str = ""  # whose member it is, if of one
    # Raise it when play changes: the same seed and outputs end otherwise. Runs and books of another number are others.
    rules_version: int = 1
    version: str = ""  # of the library that has its rules, if one has
    cannot_play: Callable[[type[Player]], str | None] = lambda cls: None  # why a bot of its kind does not play it
    # By a run, of a bot with these settings, by these rules.
    said_of: Callable[[type[Player], Mapping[str, Any], Mapping[str, Any]], str | None] = lambda cls, rules, settings: (
        None
    )
    truth: Callable[[Any], bool | None] = lambda state: None  # of what a model may state before this move
    # Of a move before it is made: what lie it is, None if it is none; in games without lies there is nothing to ask.
    lie: Callable[[Any, Any], Lie | None] | None = None
    # Of the same: what deed it is, None if none. With it a report tells who saw through whom.
    deed: Callable[[Any, Any], Deed | None] | None = None
    missing: Callable[[type[Player]], list[str]] = lambda cls: []  # the nodes that a bot leaves unanswered, in words
    deal_rules: tuple[str, ...] = ()  # of the rules: those that decide how cards are dealt
    demo: dict[str, Any] = field(default_factory=dict)  # the config of `dubito demo`: two contenders on the house
    # Whether bots of this class answer the nodes one by one; where a move is one node's answer, all do.
    answers_nodes: Callable[[type[Player]], bool] = lambda cls: True
    # The same as `rules` for a run, which had them checked when it began: as `deal` takes them, where that loads less.
    kept_rules: Callable[..., Any] | None = None
    seats_of: Callable[[Any], tuple[int, int]] | None = None  # by these rules, where a variant is for others
    # Facts that a prompt has to tell by these rules: what it says in words of its own is of the usual ones.
    must_tell: Callable[[Any], Sequence[str]] = lambda rules: ()
    forfeits: bool = False  # whether its states have `forfeit()`: who fails ends the game
    forfeit_means: str = "nobody wins"  # then, in words

    @property
    def folder(self) -> str:
        """Where its package lies, and its bots and prompts."""
        return self.family or self.name

    @property
    def has_neighbours(self) -> bool:
        """Whether it is told who sits beside whom: not with two seats, nor of a measure that no bucket tells."""
        return self.seats[1] > 2 and self.results.by_bucket is not None

    @property
    def is_duel(self) -> bool:
        """Whether two play it, so that who plays whom in which seat is all of a table."""
        return self.seats[1] == 2

    def seats_by(self, rules: Any) -> tuple[int, int]:
        """At least and at most by these rules."""
        return self.seats_of(rules) if self.seats_of else self.seats

    def dealt(self, rules: Any, seats: int, chance: Random) -> Any:
        """A game just dealt to so many; raises UsageError, in its own words if it has any, where it cannot be."""
        least, most = self.seats_by(rules)
        if least <= seats <= most:
            return self.deal(rules, seats, chance)
        with suppress(ArithmeticError, LookupError, TypeError, ValueError):  # what code may raise that counts on it
            self.deal(rules, seats, chance)
        many = f"{least}" if least == most else f"{least} to {most}"
        raise UsageError(f"{self.name} is played by {many}, not {seats}")

    def rules_of_run(self, kept: Mapping[str, Any]) -> Any:
        """The rules that a run keeps, all of the game's, as `deal` takes them."""
        return (self.kept_rules or self.rules)(**kept)

    def node(self, name: str) -> Node:
        """The node of that name; raises UsageError where the game has none, which a file may say."""
        found = next((node for node in self.nodes if node.name == name), None)
        if found is None:
            raise UsageError(f"{self.name} has no node {one_line(name, 60)!r}")
        return found

    def legal_answers(self, state: Any) -> list[Any] | None:
        """What may be answered at the question of now: what the view lists, else those of a few that it lets pass.

        None where that is no list: of cards, of what may be said, of numbers that no view lists.
        """
        view = state.view()
        node, legal = self.node(view.node), self.legal(view)
        if legal is not None:
            return [self.answer_of(node.name, output) for output in legal]
        few = (True, False) if isinstance(node.answer, Bool) else getattr(node.answer, "options", None)
        if few is None or isinstance(node.answer, Shares):
            return None
        return [answer for answer in few if self._passes(view, answer, state)]

    def _passes(self, view: Any, answer: Any, state: Any) -> bool:
        """Whether the view lets the output pass that this answer of its seat is."""
        cards = state.cards(state.seat, DealStreams(0, 0).seat(state.seat))
        with suppress(IllegalOutput):
            return view.why_illegal(self.output_of(view.node, answer, cards)) is None
        return False

    @property
    def facts(self) -> Facts:
        """What prompts are told of it; raises UsageError if there is nothing."""
        module = self.module("facts")
        if module is None:
            raise UsageError(f"no prompt can tell of {self.name}, so no model plays it: its package has no facts.py")
        return cast(Facts, module)

    def module(self, name: str) -> Any:
        """Return an optional module of the game, None without one; of a family's, what it is `of` this game."""
        path = f"{self.package}.{name}"
        with own_bytes(self.package):
            module: Any = import_module(path) if find_spec(path) else None
        return module.of(self) if hasattr(module, "of") else module


@contextmanager
def own_bytes(package: str) -> Iterator[None]:
    """Within, what is imported of a user's game leaves no bytecode, which could be of other bytes the next time."""
    written = sys.dont_write_bytecode
    sys.dont_write_bytecode = written or not package.startswith("dubito.")
    try:
        yield
    finally:
        sys.dont_write_bytecode = written
