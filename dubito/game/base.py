"""What a game consists of: its states, events, questions and results, and how bots play it.

A `Game` describes a game and deals it. A dealt game is a `State`. Its `view()` returns what the seat to move sees, and
`apply(output)` makes that seat's move and returns what the players observe. Bots subclass the game's own base class, a
subclass of `Player`.

`Results` lists what a game counts and which counts are rated; stats/ranking.py computes the results of a run.
"""

from abc import abstractmethod
from collections.abc import Callable, Generator, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from random import Random
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, NamedTuple, Protocol, cast

from dubito.errors import IllegalOutput, UsageError, one_line
from dubito.game.events import ANNOUNCED, GameEvent, event_to_json
from dubito.game.legal import View as View
from dubito.game.legal import read_legal
from dubito.game.seating import Player as Player
from dubito.game.seating import Seating as Seating
from dubito.game.seating import fallback_for as fallback_for
from dubito.game.seating import make_player as make_player
from dubito.game.speech import message_error
from dubito.game.streams import DealStreams, SeatStreams

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    from dubito.game.log import Position

    R = TypeVar("R", default=Any)  # rules
    S = TypeVar("S", bound="State", default=Any)
    E = TypeVar("E", bound="GameEvent", default=Any)
    Out = TypeVar("Out", default=Any)  # outputs
    AnyState = TypeVar("AnyState", bound="State", covariant=True, default="State")
else:
    from typing import TypeVar

    R, S, E, Out, AnyState = map(TypeVar, ("R", "S", "E", "Out", "AnyState"))

# the last count of every seat: moves that the fallback made for a failed bot
FALLBACK_TURNS: Final = "fallback_turns"
# Suffixes of the outcomes of answers that were extracted from a longer reply or from the model's reasoning.
EXTRACTED_OUTCOMES: Final = {"last_object": ":last_object", "reasoning": ":reasoning"}
FALLBACK_OUTCOME: Final = "fallback:"  # prefix of the outcome of a decision made by the fallback, followed by the cause
FORFEITS: Final = "forfeits"  # a seat count of games with forfeits: 1 if this seat forfeited


@dataclass(frozen=True, slots=True)
class Ending:
    """The result of a finished game in non-negative integers. Lists have one item per seat."""

    capped: bool  # ended by a cap, not by the rules
    game_counts: tuple[int, ...]
    marks: list[int]  # the result of each seat: a place, a win or a return
    counts: list[tuple[int, ...]]


class State(Protocol):
    """A dealt game between two moves. It uses no clock and no I/O, and its only randomness is one stream."""

    @property
    def seat(self) -> int:
        """The seat to move."""

    @property
    def over(self) -> bool:
        """Whether the game is over."""

    @property
    def turns_played(self) -> int:
        """Number of finished turns, as the game defines a turn."""

    @property
    def start(self) -> Sequence[GameEvent]:
        """The events of the deal. Only valid before the first move."""

    def view(self) -> object:
        """Return what the seat to move sees. The view is valid until the move is made.

        If a move is the answer to a node, the view has `node` and `why_illegal(output)`, which returns a sentence, or
        None if the output is legal. It can also have `legal()`, which lists the legal outputs unless there are too
        many. A subclass of `View` only needs to define one of the two.
        """

    def cards(self, seat: int, streams: SeatStreams) -> object:
        """Return a read-only view of the seat's cards. Bots get it as `self.cards`."""

    def apply(self, output: object, announce: int = ANNOUNCED) -> Sequence[GameEvent]:
        """Make a move for the seat to move and return its events in order.

        `announce` is 0 if no events are needed, ANNOUNCED if silent events are not, or EVERYTHING. A game that is not
        in a hurry can always return all events. Raises IllegalOutput and leaves the state unchanged if the rules refuse
        the output.
        """

    def ending(self) -> Ending:
        """Return the result of the finished game."""


@dataclass(frozen=True, slots=True)
class Bool:
    """A yes-or-no answer."""


@dataclass(frozen=True, slots=True)
class Choice:
    """An answer that is one of a fixed set of names."""

    options: tuple[str, ...] | None  # None if there are too many to list, so that only the state can decide


@dataclass(frozen=True, slots=True)
class Whole:
    """An integer answer. The state decides which integers are legal."""


@dataclass(frozen=True, slots=True)
class Cards:
    """An answer that is a list of cards. Each can occur at most as often as the seat holds it."""

    cards: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Shares:
    """A probability from 0 to 1 for each of a fixed set of names. They sum to 1."""

    options: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Text:
    """An answer that is a message: one line of visible characters (game/speech.py)."""

    most: int  # characters

    def why_not(self, message: object) -> str | None:
        """Return why the message is invalid, or None. The game's `apply` must also refuse invalid messages."""
        return message_error(message, self.most)


Answer = Bool | Choice | Whole | Cards | Shares | Text


ODDS: Final = "odds"  # key of a fake model's answer: probabilities
REASON: Final = "reasoning"  # key of the reason in answers of fake and real models
STATED: Final = "p_bluff"  # key of a stated probability in answers, tables and files
WINS: Final = "p_win"  # key of the probability to win that a prompt with `beliefs: every_turn` asks for


class Node(NamedTuple):
    """A decision point at which a player is asked one question."""

    name: str  # appears in requests, records and tables
    method: str  # the method of the game's bot base that answers it
    answer: Answer
    # A field in which a model can state a probability besides its answer. It does not affect the game and is compared
    # with the truth.
    states: str | None = None
    stating: str = "the last play is a bluff"  # the event whose probability is stated
    truths: tuple[str, str] = ("a bluff", "honest")  # wording of the truth for a person, if true and if false


class Facts(Generic[R]):
    """What prompts may tell a model about a game, to be subclassed.

    Facts are computed from a position, which contains only what the seat can know.
    """

    # The facts that are worded differently for a decision model, which always gets all questions of a turn.
    AT_ONCE: Mapping[str, object] = MappingProxyType({})
    # The facts that an agent gets with every question; it can ask for the rest. None for all.
    BRIEF: Set[str] | None = None

    @abstractmethod
    def facts(self, position: "Position[R]") -> dict[str, Any]:
        """Return JSON-compatible values, with the same keys at every node.

        A prompt with a `history.jinja` needs `history`, a list with one line per event, and `own_moves`, the indexes of
        the seat's own moves in that list.
        """

    @abstractmethod
    def steady_facts(self) -> Set[str]:
        """Return the names of facts that never change for a seat during a game."""

    @abstractmethod
    def example_position(self, node: str) -> "Position[R]":
        """Return a fixed position at which this node is asked."""

    def turn(self, position: "Position[R]") -> Sequence["Position[R]"]:
        """Return the positions of this question and of all that may follow in the same turn.

        Each comes after the answers that lead to it. Prompts that ask all questions of a turn at once need this.
        """
        return [position]

    @property
    def has_turns(self) -> bool:
        return type(self).turn is not Facts.turn


@dataclass(frozen=True, slots=True)
class Measure:
    """A rated quantity: one integer per seat, from 0 to `scale`.

    A measure depends on the seat's bucket (`values`) or is one of the seat's counts (`count`).
    """

    key: str
    title: str  # column title
    name: str  # in headings: Hard wins
    values: tuple[int, ...] = ()  # by bucket; empty if `count` is set
    scale: int = 1  # the value that counts as one whole
    count: str = ""  # the seat count that this measure is
    # the quantities at 0 and at `scale`; None for a share of games, shown as a percentage
    span: tuple[float, float] | None = None

    @property
    def column_title(self) -> str:
        return self.title if self.span else f"{self.title} %"

    @property
    def heading(self) -> str:
        return self.name if self.span else f"{self.name}, %"


@dataclass(frozen=True, slots=True)
class Habit:
    """A characteristic of how a seat plays: the ratio of two of its counts."""

    key: str
    title: str  # column title
    name: str  # in charts: bluffs
    count: str
    of: str
    most: int = 1  # the highest possible ratio; if above 1, the habit is a number, not a share


@dataclass(frozen=True)
class Results:
    """What a game counts, and which counts are rated. By default, a mark is 1 for the winner and 0 for the losers."""

    game_counts: tuple[str, ...] = ("turns",)  # the first one is the number of turns
    seat_counts: tuple[str, ...] = ()
    buckets: tuple[str, ...] = ("wins", "losses")  # a seat's possible results, in the plural
    endings: tuple[str, ...] = ("won", "lost")  # the same results for one seat, such as "won one chip"
    # index in `buckets`, from a mark and whether the game was capped
    bucket: Callable[[int, bool], int] = lambda mark, capped: 1 - mark
    measures: tuple[Measure, ...] = (Measure("wins", "won", "Wins", (1, 0)),)  # the first one ranks
    # The measures shown for pairs, seats and bounds. The last one is also used for neighbours.
    headline: tuple[str, ...] = ()  # if empty, the first measure
    # From the number of seats: the chance level of each known measure. None if seats share the first one equally.
    equal_share: Callable[[int], Mapping[str, float]] | None = None
    scoreboard: tuple[str, ...] = ()  # the buckets whose counts are shown before the number of games in the ranking
    averaged: tuple[str, ...] = ()  # seat counts that are reported as means
    habits: tuple[Habit, ...] = ()
    # From a mark, the number of seats and whether the game was capped: the standing, 0 to 2 (seats - 1).
    standing: Callable[[int, int, bool], int] | None = None
    unfinished: str | None = None  # the bucket of games without a standing
    # From a mark and whether the game was capped: how the game ended for a seat. None to use `endings`.
    ended: Callable[[int, bool], str] | None = None
    describe_turns: Callable[[Sequence[float]], str] = lambda means: f"{means[0]:.1f}"  # given the mean game counts
    lies: str = ""  # in a game with lies, the habit that is the share of lies among moves (see `Game.lie`)
    describe_lies: str = ""  # explains voluntary and forced lies
    lie_nodes: tuple[str, ...] = ()  # nodes where yes means to lie
    lie_words: tuple[str, str] = ("lie", "accusation")  # the words for one lie, and for calling a play a lie
    found_out: str = ""  # the seat count of caught lies
    # The habits that are charted; all are shares. Neighbours are ordered by the first.
    charted: tuple[str, ...] = ()
    rate: str = "win rate"  # name of the last headline measure in the results by neighbour
    meaning: str = ""  # one sentence that explains the first measure
    neighbours: str = ""  # explains why results vary with the neighbours
    habits_in_words: str = ""  # what a reader needs to know about the habits
    stated: str = ""  # names the event whose probability models state

    def __post_init__(self) -> None:
        if not self.headline:
            object.__setattr__(self, "headline", tuple(measure.key for measure in self.measures[:1]))

    def chance_level(self, seats: int) -> Mapping[str, float]:
        """Return what each seat would score if all were equal, for each measure whose value is known."""
        return self.equal_share(seats) if self.equal_share else {self.measures[0].key: 1 / seats}

    def describe_ending(self, mark: int, capped: bool) -> str:
        return self.ended(mark, capped) if self.ended else self.endings[self.bucket(mark, capped)]

    @cached_property
    def counts(self) -> tuple[str, ...]:
        """All counts of a seat: the game's counts, and the turns played by the fallback."""
        return (*self.seat_counts, FALLBACK_TURNS)

    @cached_property
    def failure_counts(self) -> tuple[int, int]:
        """The indexes in `counts` of a seat's fallback turns and of its forfeits, if the game has forfeits."""
        turns = self.counts.index(FALLBACK_TURNS)
        return turns, self.counts.index(FORFEITS) if FORFEITS in self.counts else turns

    @cached_property
    def published_counts(self) -> tuple[str, ...]:
        """The game's seat counts that are reported unchanged, not as means or measures."""
        others = {*self.averaged, *(measure.count for measure in self.measures)}
        return tuple(count for count in self.seat_counts if count not in others)

    @cached_property
    def seat_sums(self) -> tuple[str, ...]:
        """The quantities that a run sums over a player's games."""
        return ("games", *self.counts, *(("position",) if self.standing else ()))

    @cached_property
    def values_by_bucket(self) -> tuple[tuple[int, ...], ...] | None:
        """All measures of each bucket. Measures that are counts are None."""
        if any(measure.count for measure in self.measures):
            return None
        return tuple(zip(*(measure.values for measure in self.measures), strict=True))

    def measure_values(self, bucket: int, counts: Sequence[int]) -> tuple[int, ...]:
        if self.values_by_bucket is not None:
            return self.values_by_bucket[bucket]
        return tuple(
            counts[self.counts.index(measure.count)] if measure.count else measure.values[bucket]
            for measure in self.measures
        )

    def measure(self, key: str) -> Measure:
        return self.measures[self.place(key)]

    def habit(self, key: str) -> Habit:
        return next(habit for habit in self.habits if habit.key == key)

    def place(self, key: str) -> int:
        """Return a measure's index."""
        return [measure.key for measure in self.measures].index(key)


# Maps a prompt to an `answer`, with optional keys: the reason, the stated probability and the odds of a random answer.
HousePolicy = Callable[[str, Random], Mapping[str, Any]]


def house_contenders(openai: str, anthropic: str) -> list[dict[str, str]]:
    """Return two fake models for `Game.demo`, one per provider protocol.

    The model `random` is listed as "chance".
    """
    players = ("OpenAIBot", openai, "OpenAI's protocol"), ("AnthropicBot", anthropic, "Anthropic's")
    return [
        {"bot": bot, "name": f"{name.replace('random', 'chance')} by {whose}", "model": f"house-{name}"}
        | {"base_url": "house"}
        for bot, name, whose in players
    ]


LineupKind = Literal["uniform", "distinct", "ordered_pairs"]
PlayerKind = Literal["model", "fake model", "hand-written", "program", "agent", "person"]  # the kind of decision maker
Lie = Literal["chosen", "forced"]  # whether the seat could have been honest, or was forced to lie


class LieMark(NamedTuple):
    """How a move relates to lying.

    The move can be a play that may be a lie, a reaction to another seat's play, or both.
    """

    pile: int  # number of cards on the pile before the move
    cards: int = 0  # number of cards played; 0 if the move is not a play
    of: int | None = None  # the seat whose play is called a lie or let pass, if any
    is_lie: bool = False  # whether the play is a lie
    called: bool = False  # whether the move calls a play a lie
    hand: int = 0  # number of cards in the hand before the move


def node_view(state: State) -> View:
    """Return the view of a move that is the answer to a node. Not for games with a walk."""
    return cast(View, state.view())


class BaseGame(Generic[R, S, E, Out]):
    """What the harness needs to know about a game to play it with bots. Games subclass `dubito.game.Game`."""

    name: str
    summary: str  # one line, for `dubito games`
    seats: tuple[int, int]  # minimum and maximum under the default rules
    lineup: LineupKind = "uniform"  # how bots are drawn for a deal: with or without replacement, or every ordered pair
    base: type[Player] = Player
    fallback: str  # the bot that moves for a failed bot; deliberately the weakest
    chance_bot: str = ""  # the hand-written bot that decides at random, if any; models are compared with it
    turn_limit: str = ""  # the rule that limits the number of turns, if there is one
    nodes: tuple[Node, ...]
    results: Results
    family: str = ""  # name of the family it belongs to, if any
    # Increase this when the same seed and outputs would produce a different game. Runs and books with another number
    # are incompatible.
    rules_version: int = 1
    version: str = ""  # version of the library that implements the rules, if any
    deal_rules: tuple[str, ...] = ()  # the rules that affect the deal
    # the config of `dubito demo`: two contenders that use fake models
    events: tuple[type[E], ...] = ()  # all classes of events, to read positions from files
    demo: Mapping[str, object] = MappingProxyType({})
    forfeits: bool = False  # whether its states have `forfeit()`, so that a failing seat ends the game
    forfeit_means: str = "nobody wins"  # describes the consequence of a forfeit

    def __class_getitem__(cls, kinds: object) -> type:
        return cls  # the type variables of Python 3.11 have no defaults

    @property
    def base_path(self) -> str:
        """The import path of the base class, for bot authors."""
        return f"{self.base.__module__}.{self.base.__qualname__}"

    @property
    def package(self) -> str:
        """The import path of the package that contains the game."""
        return type(self).__module__.rpartition(".")[0]

    @property
    def folder(self) -> str:
        """Name of the folder that holds its package, bots and prompts."""
        return self.family or self.name

    @property
    def has_neighbours(self) -> bool:
        """Whether results are reported by neighbour.

        This requires at least three seats, and measures that depend on the bucket.
        """
        return self.seats[1] > 2 and self.results.values_by_bucket is not None

    @property
    def is_duel(self) -> bool:
        """Whether the game has two seats, so that a pair and a seat describe a whole table."""
        return self.seats[1] == 2

    def rules(self, **settings: object) -> R:
        """Build the config's `rules`, by default for a game without variants.

        They are a strict and frozen pydantic model, which forbids unknown keys and has a default for every key.
        """
        from dubito.files import NoRules  # imported late so that commands that list bots or games do not load pydantic

        return cast(R, NoRules(**settings))

    def rules_of_run(self, stored: Mapping[str, object]) -> object:
        """Build rules for `deal` from what a run has stored.

        They were validated before, so a game can override this with a class that imports less.
        """
        return self.rules(**stored)

    def seat_range(self, rules: R) -> tuple[int, int]:
        """Return the minimum and maximum number of seats under these rules."""
        return self.seats

    @abstractmethod
    def deal(self, rules: R, seats: int, chance: Random) -> S:
        """Deal a game. `chance` is the only source of randomness."""

    def deal_to_json(self, state: S) -> dict[str, object]:
        """Return what was dealt, before the first move. Equal deals return equal JSON.

        By default, these are the events of the deal.
        """
        return {"deal": [*map(event_to_json, state.start)]}

    def output_to_json(self, output: Out) -> object:
        """Return a move as JSON-compatible values."""
        return output

    def output_from_json(self, value: object) -> Out:
        """Return the move that `output_to_json` converted. Raises UsageError if there is none."""
        return cast(Out, value)

    def output_of(self, node: str, answer: object, cards: Any) -> Out:
        """Convert a model's answer at a node to a move, given the seat's cards.

        Raises IllegalOutput if this is impossible.
        """
        return cast(Out, answer)

    def answer_of(self, node: str, output: Out) -> object:
        """Return an answer at a node that leads to this move or an equivalent one."""
        return output

    def answer_in_turn(self, node: str, output: Out, view: Any, cards: Any) -> object:
        """Return the answer at a node that leads to this move, or None if the move does not answer it."""
        return self.answer_of(node, output)

    def legal(self, view: Any) -> Sequence[Out] | None:
        """Return the legal moves at a view, or None if there are too many to list."""
        return cast(Sequence[Out] | None, read_legal(view))

    def walk(self, bot: Any, view: Any) -> Generator[str, Any, Out]:
        """Ask a bot the questions of a turn: yield nodes, receive the answers, and return the move.

        Only games in which a turn can have several questions define this. In all others, every move is the answer to
        the view's node.
        """
        raise NotImplementedError

    @property
    def has_walk(self) -> bool:
        return type(self).walk is not BaseGame.walk

    def truth(self, state: S) -> bool | None:
        """Return the truth about what a model can state before this move."""
        return None

    def lie(self, state: S, output: Out) -> Lie | None:
        """Classify a move before it is made. Return None if it is not a lie."""
        return None

    @property
    def has_lies(self) -> bool:
        return type(self).lie is not BaseGame.lie

    def lie_mark(self, state: S, output: Out) -> LieMark | None:
        """Mark a move before it is made, so that reports can show who catches whose lies."""
        return None

    def reference_bot(self, rules: R) -> str:
        """Return the hand-written bot whose beliefs about lies others are compared with, or an empty string."""
        return ""

    def read_belief(self, bot: Any) -> float:
        """Return how probable it is that the last play is a lie, according to the reference bot."""
        raise NotImplementedError

    @property
    def has_lie_marks(self) -> bool:
        return type(self).lie_mark is not BaseGame.lie_mark

    def cannot_play(self, bot: type[Player]) -> str | None:
        """Return why a bot class does not play this game, or None if it does."""
        return None

    def missing(self, bot: type[Player]) -> list[str]:
        """Describe the nodes that a bot class does not answer. By default, one that defines `play` answers all."""
        if bot.play is not self.base.play:
            return []
        methods = {name: (getattr(bot, name, None), getattr(self.base, name, None)) for _, name, *_ in self.nodes}
        return [f"{node.name} ({node.method})" for node in self.nodes if len({*methods[node.method]}) == 1]

    def answers_nodes(self, bot: type[Player]) -> bool:
        """Return whether bots of this class answer node by node.

        Always true if a move is the answer to a single node.
        """
        return True

    def note_on(self, bot: type[Player], rules: Mapping[str, object], settings: Mapping[str, object]) -> str | None:
        """Return a note on a bot class for a run's warnings, given the rules and the bot's settings, or None."""
        return None

    def must_tell(self, rules: R) -> Sequence[str]:
        """Return facts that a prompt must use under these rules, since its own text only covers the default rules."""
        return ()

    def deal_game(self, rules: R, seats: int, chance: Random) -> S:
        """Deal a game. Raises UsageError if the game does not support that many seats."""
        least, most = self.seat_range(rules)
        if least <= seats <= most:
            return self.deal(rules, seats, chance)
        # The deal may explain the problem with a UsageError. Ignore errors of code that relies on a valid count.
        with suppress(ArithmeticError, LookupError, TypeError, ValueError):
            self.deal(rules, seats, chance)
        many = f"{least}" if least == most else f"{least} to {most}"
        raise UsageError(f"{self.name} needs {many} players, not {seats}")

    def node(self, name: str) -> Node:
        """Return the node of that name. Raises UsageError if it is unknown."""
        match = next((node for node in self.nodes if node.name == name), None)
        if match is None:
            raise UsageError(f"{self.name} has no node {one_line(name, 60)!r}")
        return match

    def legal_answers(self, state: S) -> list[object] | None:
        """Return the legal answers to the current question, or None if they cannot be listed.

        They are the view's list, or the answers to a yes-or-no or multiple-choice question that the view accepts. Only
        the view can list cards, messages and numbers.
        """
        return self.legal_answers_of(node_view(state), state.cards(state.seat, DealStreams(0, 0).seat(state.seat)))

    def legal_answers_of(self, view: View, cards: object) -> list[object] | None:
        """Return the legal answers at a view, given the seat's cards, or None if there is no list."""
        node, legal = self.node(view.node), self.legal(view)
        if legal is not None:
            return [self.answer_of(node.name, output) for output in legal]
        match node.answer:
            case Bool():
                few: Sequence[bool | str] = (True, False)
            case Choice(options) if options is not None:
                few = options
            case _:
                return None
        return [answer for answer in few if self._is_accepted(view, answer, cards)]

    def _is_accepted(self, view: View, answer: object, cards: object) -> bool:
        """Return whether the answer leads to an output that the view accepts."""
        with suppress(IllegalOutput):
            return view.why_illegal(self.output_of(view.node, answer, cards)) is None
        return False
