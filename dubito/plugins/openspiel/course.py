"""One game as a path down its tree, for OpenSpiel: decisions of seats and outcomes of chance, one after another.

Below it is the game's own engine, which decides all that the rules decide. What an engine draws from a `Random` is
here decided by chance, an outcome at a time, and only then handed to the engine (`ChanceDraws`).

A game says stage by stage what is decided (`deal`, `turn`), and declares what is seen of it: features of the moment
(`observed`), and rows that its events write (`recalls`). All else is `Course`. The courses of Dubito's own games are in
`courses`; any other game's package has a module `training` with its `COURSE`. `spiel.py` registers them with pyspiel,
of which nothing is known here.
"""

from collections import Counter, deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from copy import copy, deepcopy
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from random import Random
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple, Self

from dubito.errors import DubitoError, IllegalOutput, UsageError, one_line
from dubito.game import Game, GameEvent, Player
from dubito.game.streams import DealStreams
from dubito.game.words import Words, seat_label, words_of

if TYPE_CHECKING:
    from dubito.workshop.subject import Flaw, Subject

_ROUNDING: Final = 1e-9  # how far a sum of probabilities may be from 1
CHANCE: Final = -1  # these two as pyspiel has them
TERMINAL: Final = -4
_WAYS_ON: Final = 20  # unseen moves of others are tried so often before another world is drawn
_TRIALS: Final = 10_000  # games at random, of which one is to be such a world
_DECIDERS: Final = {CHANCE: "chance", TERMINAL: "anybody after the end"}

Pieces = dict[str, Any]  # parts of a tensor by name: numbers, or rows of them


class LogEntry(NamedTuple):
    """An entry of the log: what somebody saw of the game."""

    only: int | None  # the one seat that saw it; None: all
    text: str
    what: Any  # the engine's event; or a tuple of a word and more, where only a seat knows


class Feature(NamedTuple):
    """A part of a tensor: so many numbers, read from a course for a seat."""

    name: str
    size: int
    value: Callable[[Any, int], Sequence[float]]
    around: bool = False  # the same of each seat, from the own one on
    before: Sequence[float] = ()  # while the deal is not over; empty: all 0


def asked(nodes: Sequence[str]) -> Feature:
    """Which of these the seat is asked."""
    places = {node: one_hot(place, len(nodes)) for place, node in enumerate(nodes)}
    nothing = one_hot(-1, len(nodes))
    return Feature("asked", len(nodes), lambda course, seat: places[course.node] if course.player == seat else nothing)


def held(kinds: Sequence[Any]) -> Feature:
    """The own hand: how many cards of each kind."""
    return Feature("hand", len(kinds), lambda course, seat: by_kind(course.hand(seat), kinds))


def by_kind(cards: Sequence[Any], kinds: Iterable[Any]) -> list[int]:
    """How many cards of each kind there are."""
    return [cards.count(kind) for kind in kinds]


def one_hot(value: int, size: int) -> list[float]:
    """All 0 but one; all 0 for a value that is none of these."""
    return [float(place == value) for place in range(size)]


class Recall:
    """What a seat has seen of a game, as numbers: rows, each begun by an event and filled in by later ones."""

    columns: ClassVar[Mapping[str, int]]  # of a row: how many numbers each has
    _places: ClassVar[Mapping[str, int]]
    width: ClassVar[int]

    def __init_subclass__(cls) -> None:
        sizes = [*cls.columns.values()]
        cls._places = {name: sum(sizes[:place]) for place, name in enumerate(cls.columns)}
        cls.width = sum(sizes)

    def __init__(self, seat: int) -> None:
        self.seat = seat
        self.rows: list[list[int]] = []
        self.dealt: Sequence[Any] = ()  # the first hand
        self.read = 0  # entries of the log
        self.left = False

    def add(self, what: Any) -> None:
        """One entry of the log that the seat saw."""
        raise NotImplementedError

    def begin(self, **cells: int | Sequence[int]) -> list[int]:
        """A new row, all 0 but this."""
        self.rows.append([0] * self.width)
        self.fill(self.rows[-1], **cells)
        return self.rows[-1]

    def fill(self, row: list[int], **cells: int | Sequence[int]) -> None:
        """Write into a row, by the columns' names; of a column of several numbers the first ones."""
        for name, value in cells.items():
            place = self._places[name]
            if isinstance(value, int):
                row[place] = value
            else:
                row[place : place + len(value)] = value


class ChanceDraws:
    """Stands in for the `Random` of an engine: gives out what chance has decided, and nothing else.

    Raises IndexError if the engine draws more than that.
    """

    def __init__(self, order: Sequence[Any] = (), shares: Iterable[float] = ()) -> None:
        self._order = order  # of the cards that are shuffled next
        self.shares = list(shares)  # the draws to come

    def random(self) -> float:
        """The next draw."""
        return self.shares.pop(0)

    def shuffle(self, cards: list[Any]) -> None:
        """Put all cards into the order that chance has decided."""
        assert self._order, "the engine has shuffled more often than chance has decided"
        cards[:], self._order = self._order, ()


def share(place: int, of: int) -> float:
    """The draw by which an engine comes to this one of so many, by `int(random() * of)`."""
    return (place + 0.5) / of


class Fork(NamedTuple):
    """A decision: of the seat to move if there are actions, else of chance."""

    node: str
    actions: Sequence[int] = ()  # ascending
    outcomes: Callable[[], Sequence[tuple[int, float]]] = tuple  # with their probabilities


def draw(node: str, pool: Iterable[int]) -> Fork:
    """Chance draws one of these, each as likely as it is often in there."""
    ways = Counter(pool)
    total = ways.total()
    return Fork(node, (), lambda: [(value, n / total) for value, n in sorted(ways.items()) if n])


Stage = Generator[Fork, int, None]


class Course:
    """A game of one of our engines between two decisions, of a seat or of chance."""

    game: ClassVar[Game]
    short_name: ClassVar[str] = ""  # as pyspiel calls it; empty: as the harness does
    long_name: ClassVar[str] = ""  # empty: the game's summary
    zero_sum: bool = False  # whether each seat is paid what it has more than the others; a variant may say otherwise
    kinds: ClassVar[Sequence[Any]]  # of cards that hands hold
    drawn: ClassVar[Sequence[Any]]  # outcomes of chance
    done: ClassVar[Sequence[Any]]  # actions of seats: outputs, or words for them
    observed: ClassVar[Sequence[Feature]]
    recalls: ClassVar[type[Recall]]
    recalled: ClassVar[Sequence[Feature]] = ()  # what a seat knows beside its first hand and the rows
    rows: ClassVar[str]  # what the part of the tensor with the rows is called

    longest: int  # steps of the longest game, of seats and of chance
    most_rows: int

    node: str  # what is asked, or decided by chance
    player: int  # whose decision it is: a seat, CHANCE or TERMINAL
    actions: Sequence[int]  # that the seat may take
    outcomes: Sequence[tuple[int, float]]  # of chance

    def __init__(self, players: int, rules: Any) -> None:
        self.players, self.rules = players, rules
        self.log: list[LogEntry] = []
        self.history: list[tuple[int, int]] = []  # who decided, and what
        self.engine: Any = None  # None: the deal is not over
        self.script: list[int] = []  # what was decided on this stage
        self._stage: Stage | None = None
        self._recalls: dict[int, Recall] = {}
        self._begin()

    def deal(self) -> Stage:
        """The deal, as `turn` is a turn; it ends in `dealt`."""
        raise NotImplementedError

    def turn(self) -> Stage:
        """A turn or a part of one, at least one decision; nothing is changed before all are made.

        So a copy of the game begins it anew, with what was decided so far. As it stands here, a turn is one of the
        outputs in `done`, as far as the view calls them legal, and nothing of it is chance.
        """
        view = self.engine.view()
        action = yield Fork(view.node, [n for n, output in enumerate(self.done) if view.why_illegal(output) is None])
        self.tell(self.engine.apply(self.done[action]))

    def apply(self, action: int) -> None:
        """Take an action or an outcome; raises IllegalOutput, and changes nothing, where it is not legal now."""
        legal = self.actions or [outcome for outcome, _ in self.outcomes]
        if action not in legal:
            raise IllegalOutput(
                f"{action} is not legal for {_DECIDERS.get(self.player, f'seat {self.player}')} here: "
                f"{', '.join(f'{each} ({self.words(self.player, each)})' for each in legal) or 'nothing'} is"
            )
        self.history.append((self.player, action))
        if self.player != CHANCE:
            self.note(self.words(self.player, action), ("did", self.node, action), self.player)
        stage = self._stage
        if stage is None:  # this is a copy
            stage = self._stage = self.turn() if self.engine else self.deal()
            next(stage)
            for decided in self.script:
                stage.send(decided)
        self.script.append(action)
        try:
            self._ask(stage.send(action))
        except StopIteration:
            self._begin()

    def _begin(self) -> None:
        self.script.clear()
        if self.engine and self.engine.over:
            self.node, self.player, self.actions, self.outcomes = "", TERMINAL, (), ()
        else:
            self._stage = self.turn() if self.engine else self.deal()
            self._ask(next(self._stage))

    def _ask(self, fork: Fork) -> None:
        self.node, self.actions, outcomes = fork
        self.player, self.outcomes = (self.engine.seat, ()) if self.actions else (CHANCE, outcomes())

    def steps(self, player: Player) -> list[int]:
        """The decisions, from this one on, that come to what a bot of the harness does now; it is asked once.

        Raises IllegalOutput for what the rules refuse, UsageError if the bot does what no decisions come to.
        """
        output = player.play(self.engine.view())
        if why := self.why_illegal(output):
            raise IllegalOutput(why)
        return self.actions_of(output)

    def why_illegal(self, output: Any) -> str | None:
        """Why the rules refuse this now, in a sentence; None if they do not."""
        why: str | None = self.engine.view().why_illegal(output)
        return why

    def actions_of(self, output: Any) -> list[int]:
        """The decisions that come to this output; raises UsageError where it is none of `done`."""
        if output not in self.done:
            raise UsageError(f"no action of {self.game.name} comes to {one_line(repr(output), 60)}: write `actions_of`")
        return [[*self.done].index(output)]

    def words(self, player: int, action: int) -> str:
        """An action or, of CHANCE, an outcome in words."""
        return f"{self.node} {self.drawn[action]}" if player == CHANCE else f"{self.done[action]}"

    def dealt(self, engine: Any) -> None:
        """The deal is over: tell each seat its hand."""
        self.engine = engine
        self.tell([engine.start])
        for seat in range(self.players):
            cards = tuple(self.hand(seat))
            self.note(f"hand {spaced(cards)}", ("hand", cards), seat)

    def hand(self, seat: int) -> Sequence[Any]:
        """What a seat holds, as kinds of cards: its bot's `self.cards`, one card or several."""
        cards = self.engine.cards(seat, DealStreams(0, 0).seat(seat))
        return [cards] if cards in [*self.kinds] else [*cards]

    def note(self, text: str, what: Any, only: int | None = None) -> None:
        """Keep what everybody has seen, or one seat alone."""
        self.log.append(LogEntry(only, text, what))

    def tell(self, events: Sequence[GameEvent]) -> None:
        """Keep what was observed."""
        for event in events:
            self.note(self.in_words(event), event, event.only)

    def in_words(self, event: Any) -> str:
        """An event of the engine, short: the sentence that people are told, or its fields."""
        said, plain = _words(self.game)
        return (said.sentence(event, seat_label) or plain.sentence(event, seat_label)).removesuffix(".")

    def seen(self, seat: int) -> Iterator[LogEntry]:
        """All that a seat has seen: nothing after it has left the game."""
        for entry in self.log:
            if entry.only is None or entry.only == seat:
                yield entry
                if getattr(entry.what, "leaves", None) == seat:
                    return

    def remembered(self, seat: int) -> Any:
        """The `Recall` of a seat, up to now; the entries that are new are read."""
        recall = self._recalls.get(seat)
        if recall is None:
            recall = self._recalls[seat] = self.recalls(seat)
        for entry in self.log[recall.read :]:
            if not recall.left and (entry.only is None or entry.only == seat):
                if type(entry.what) is tuple and entry.what[0] == "hand":
                    recall.dealt = entry.what[1]
                recall.add(entry.what)
                recall.left = getattr(entry.what, "leaves", None) == seat
        recall.read = len(self.log)
        return recall

    def information(self, seat: int) -> str:
        """All that a seat knows, what it did itself included: the information state as text."""
        return "; ".join([entry.text for entry in self.seen(seat)])

    def __str__(self) -> str:
        """The whole truth, from which every action and outcome can be read."""
        told = [entry.text if entry.only is None else f"[{entry.only}: {entry.text}]" for entry in self.log]
        return "; ".join([*told, *self.undone()])

    def undone(self) -> Sequence[str]:
        """What chance has decided, but the engine has not been given yet."""
        begun = self.history[len(self.history) - len(self.script) :]
        drawn = [self.drawn[outcome] for player, outcome in begun if player == CHANCE]
        return [f"drawn {spaced(drawn)}"] if drawn else []

    def recall(self, seat: int) -> Pieces:
        """The information state as numbers: as much as `information` says; rows that are not there yet are 0."""
        recall = self.remembered(seat)
        parts = {part.name: [*part.value(self, seat)] for part in self.recalled}
        return {"hand": by_kind(recall.dealt, self.kinds), **parts, self.rows: recall.rows[:]}

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Of the pieces of `recall`."""
        parts = {part.name: (part.size,) for part in self.recalled}
        return {"hand": (len(self.kinds),), **parts, self.rows: (self.most_rows, self.recalls.width)}

    def observation(self, seat: int) -> Pieces:
        """What a seat sees at this moment, as numbers for networks: one-hot, counts and shares."""
        pieces: Pieces = {}
        around = [(seat + place) % self.players for place in range(self.players)]
        for name, size, value, of_each, before in self.observed:
            if self.engine is None:
                pieces[name] = before or [0.0] * (size * self.players if of_each else size)
            elif of_each:
                pieces[name] = [number for other in around for number in value(self, other)]
            else:
                pieces[name] = value(self, seat)
        return pieces

    def observation_words(self, seat: int) -> str:
        """The same as text."""
        return "; ".join(
            f"{name} {' '.join(f'{n:g}' for n in values)}" for name, values in self.observation(seat).items()
        )

    def returns(self) -> list[float]:
        """The measure that ranks in the harness, by seat; 0 while the game goes on.

        Where `zero_sum`, what a seat has of it beyond the mean of the others: twos are paid what one has more.
        """
        if self.player != TERMINAL:
            return [0.0] * self.players
        ending, results = self.engine.ending(), self.game.results
        scores = [
            results.measure_values(results.bucket(mark, ending.capped), counts)[0] / results.measures[0].scale
            for mark, counts in zip(ending.marks, ending.counts, strict=True)
        ]
        if not self.zero_sum:
            return scores
        return [score - (sum(scores) - score) / (self.players - 1) for score in scores]

    def another(self, seat: int, chance: Random) -> list[int]:
        """The history of a game that this seat cannot tell from this one, drawn at random; the same one is to move.

        Read from what the seat has seen, never from what is hidden, and from whose move it is.
        """
        known = self.information(seat)
        while True:
            world = self.world(seat, chance)
            for _ in range(_WAYS_ON):
                ahead = deepcopy(world)
                while ahead.player not in (self.player, TERMINAL) and ahead.information(seat) == known:
                    ahead.apply(chance.choice(ahead.actions or [outcome for outcome, _ in ahead.outcomes]))
                if ahead.player == self.player and ahead.information(seat) == known:
                    return [action for _, action in ahead.history]

    def world(self, seat: int, chance: Random) -> Self:
        """Such a game, as far as the seat has seen it: the others may have gone on since.

        As it stands here it is found by trial: the seat decides as it did, all others and chance at random. Raises
        UsageError after so many games that a small game would have had it.
        """
        known, own = self.information(seat), [action for player, action in self.history if player == seat]
        for _ in range(_TRIALS):
            world, left = type(self)(self.players, self.rules), deque(own)
            while (seen := world.information(seat)) != known and known.startswith(seen) and world.player != TERMINAL:
                if world.player == seat and not left:
                    break
                legal = [outcome for outcome, _ in world.outcomes]
                if world.player == CHANCE:
                    world.apply(chance.choices(legal, [odds for _, odds in world.outcomes])[0])
                else:
                    world.apply(left.popleft() if world.player == seat else chance.choice(world.actions))
            if seen == known:
                return world
        raise UsageError(
            f"{_TRIALS:,} games of {self.game.name} at random had none that seat {seat} cannot tell from its own: "
            f"write `world` of {type(self).__name__}"
        )

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_stage": None, "_recalls": {}}  # a stage goes on from `script`, recalls from the log

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """A copy that shares what never changes: the entries of the log, and `shared`."""
        twin = copy(self)
        own = {name: value for name, value in vars(twin).items() if name not in ("log", "history")}
        vars(twin).update(deepcopy(own, {id(one): one for one in self.shared()}))
        twin.log, twin.history = self.log[:], self.history[:]
        return twin

    def shared(self) -> Iterator[Any]:
        """Values that copies need not copy."""
        yield self.rules


def has_own_courses(game: Game) -> bool:
    """Return whether the game's courses ship with this plugin."""
    return game.package == f"dubito.games.{game.name}" and find_spec(f"{__package__}.courses.{game.name}") is not None


def courses_of(game: Game) -> Mapping[str, type[Course]]:
    """What a game's module `training` has as `COURSE`, by what each way to decide is called; nothing without a module.

    Raises UsageError with what is wrong with the module, whose file it does not name.
    """
    try:
        own = has_own_courses(game)
        module = import_module(f"{__package__}.courses.{game.name}") if own else game.module("training")
        course: Any = getattr(module, "COURSE", None)
    except (Exception, SystemExit) as error:  # foreign code: its import may raise anything
        raise UsageError(f"importing it raises {_raised(error)}: correct it") from None
    if module is None:
        return {}
    courses: Mapping[str, Any] = course if isinstance(course, Mapping) and course else {"": course}
    if not all(isinstance(one, type) and issubclass(one, Course) for one in courses.values()):
        raise UsageError(f"it has no `COURSE` that is a class of Course: so OpenSpiel cannot be told of {game.name}")
    return courses


def try_out(game: Game, course: type[Course], players: int) -> None:
    """One game at random, and what the seats see of it; raises UsageError with what is wrong, its file not named."""
    try:
        for wrong in _flaws_when_played(course(players, game.rules_of_run(game.rules().model_dump()))):
            raise UsageError(f"a game at random: {wrong}")
    except DubitoError:
        raise
    except Exception as error:  # foreign code
        raise UsageError(f"a game at random raises {_raised(error)}: correct it") from None


def check_courses(subject: "Subject") -> "Iterator[Flaw]":
    """Play a game at random for each course and number of seats, where the game has courses."""
    from dubito.workshop.subject import Flaw  # late: whoever plays a course needs no workshop

    game = subject.game
    try:
        for course in courses_of(game).values():
            for seats in sorted({*game.seats}):
                try_out(game, course, seats)
    except UsageError as error:
        yield Flaw(subject.file("training.py"), str(error))


def _raised(error: BaseException) -> str:
    return one_line(f"{type(error).__name__}: {error}".removesuffix(": "))


def _flaws_when_played(course: Course) -> Iterator[str]:
    """What is wrong with a game that was not dealt yet, and is played at random."""
    chance, sizes = Random(0), {name: len(values) for name, values in course.observation(0).items()}
    while course.player != TERMINAL:
        if course.player == CHANCE and abs(sum(odds for _, odds in course.outcomes) - 1) > _ROUNDING:
            yield f"the outcomes of {course.node} have probabilities that do not sum to 1"
        course.apply(chance.choice(course.actions or [outcome for outcome, _ in course.outcomes]))
        for seat in range(course.players):
            for name, values in course.observation(seat).items():
                if len(values) != sizes[name]:
                    yield f"the feature {name!r} has {len(values)} numbers, not {sizes[name]}"
            course.recall(seat)
    for entry in course.log:
        if entry.only not in (None, CHANCE, *range(course.players)):
            yield f"{one_line(entry.text)!r} is for seat {entry.only!r} alone, and there are {course.players} seats"
    if len(course.history) > course.longest:
        yield f"it takes {len(course.history)} steps, and `longest` is {course.longest}"
    rows = max(len(course.recall(seat)[course.rows]) for seat in range(course.players))
    if rows > course.most_rows:
        yield f"it has {rows} rows, and `most_rows` is {course.most_rows}"


@cache
def _words(game: Game) -> tuple[Words, Words]:
    """As its module has them, and as it has none."""
    return words_of(game), Words(game)


def spaced(values: Iterable[Any]) -> str:
    """As `3 3 7`."""
    return " ".join(map(str, values))
