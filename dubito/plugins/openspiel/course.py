"""A game as a path down its game tree, for OpenSpiel: a sequence of seats' decisions and chance outcomes.

The game's own engine applies the rules. Instead of drawing from a `Random`, the engine gets outcomes that chance nodes
have decided one at a time (`ChanceDraws`). A game defines its decisions stage by stage (`deal`, `turn`) and features of
the current moment (`observed`). What a seat has seen is its log, in words and as rows of numbers (`EventRows`). The
courses of Dubito's own games are in `courses`; other games list theirs in `Game.courses`. `spiel.py` registers them
with pyspiel.
"""

import re
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Generator, Hashable, Iterable, Iterator, Mapping, Sequence
from copy import copy, deepcopy
from functools import cache
from itertools import chain
from random import Random
from typing import Any, ClassVar, Final, NamedTuple, Self

from dubito.errors import DubitoError, IllegalOutput, UsageError, one_line
from dubito.game import Game, GameEvent, Player, State
from dubito.game.events import EVERYTHING, NOBODY, AnswerEvent
from dubito.game.log import Log
from dubito.game.streams import DealStreams
from dubito.plugins.openspiel.features import Feature

_ROUNDING: Final = 1e-9  # tolerance for a sum of probabilities
CHANCE: Final = -1  # same values as in pyspiel
TERMINAL: Final = -4
_MAX_CONTINUATIONS: Final = 20  # attempts at unseen moves before another world is drawn
_MAX_TRIALS: Final = 10_000  # random games to try
_DECIDERS: Final = {CHANCE: "chance", TERMINAL: "any seat after the end"}


@cache
def _split_name(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", " ", name.removesuffix("Event")).lower()


def _read_fields(event: Any) -> dict[str, object]:
    """Return the fields of an event that its seats see."""
    return {name: getattr(event, name) for name in event.__match_args__ if name != "only"}


def describe_event(event: GameEvent) -> str:
    """Describe an event by its fields."""
    if isinstance(event, AnswerEvent):
        return f"{event.node} {_describe_value(event.answer)}"
    name = _split_name(type(event).__name__)
    described = ", ".join(f"{field} {_describe_value(value)}" for field, value in _read_fields(event).items())
    return f"{name}: {described}" if described else name


def _describe_value(value: object) -> str:
    if isinstance(value, list | tuple):
        return " ".join(map(_describe_value, value))
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else f"{value}"


class EventRows:
    """A seat's events as rows of numbers: a fold over its log.

    The first column is the kind of event: 1 is an answer of the seat, then follow the kinds in `Game.events`. The
    next columns are the event's fields, and a list is preceded by its length. An event that needs more columns
    continues in further rows, of kind 0.
    """

    def __init__(self, course: "Course") -> None:
        self.rows: list[list[float]] = []
        self._kinds = {kind: number for number, kind in enumerate((AnswerEvent, *course.game.events), 1)}
        self._width = course.width
        values = [*course.kinds, *course.drawn, *course.done, *(node.name for node in course.game.nodes), *course.terms]
        hashable = dict.fromkeys(value for value in values if isinstance(value, Hashable))
        self._codes = {value: code for code, value in enumerate(hashable, 1)}

    def see(self, event: GameEvent) -> None:
        numbers = [number for value in _read_fields(event).values() for number in self._encode(value)]
        kind, columns = float(self._kinds[type(event)]), self._width - 1
        for start in range(0, max(len(numbers), 1), columns):
            row = numbers[start : start + columns]
            self.rows.append([0.0 if start else kind, *row, *[0.0] * (columns - len(row))])

    def _encode(self, value: object) -> list[float]:
        """Encode a number as one more than it, another value by its place in the course, and None as 0."""
        if isinstance(value, list | tuple):
            return [float(len(value)), *(number for each in value for number in self._encode(each))]
        if value is None or isinstance(value, int):
            return [0.0 if value is None else 1.0 + value]
        if value not in self._codes:
            raise UsageError(f"{value!r} of an event is missing from `kinds`, `drawn`, `done` and `terms`")
        return [float(self._codes[value])]


class ChanceDraws:
    """Replaces an engine's `Random` and returns the outcomes that chance has decided.

    Raises IndexError if the engine draws more.
    """

    def __init__(self, order: Sequence[object] = (), draws: Iterable[float] = ()) -> None:
        self._order = order  # the order of the cards of the next shuffle
        self.draws = list(draws)  # remaining draws

    def random(self) -> float:
        return self.draws.pop(0)

    def shuffle(self, cards: list[object]) -> None:
        """Order all cards as decided by chance."""
        assert self._order, "the engine has shuffled more often than chance decided"
        cards[:], self._order = self._order, ()


def draw_for_index(place: int, of: int) -> float:
    """Return the draw for which `int(random() * of)` gives this index."""
    return (place + 0.5) / of


class Fork(NamedTuple):
    """A decision by the seat to move (if there are actions) or by chance."""

    node: str
    actions: Sequence[int] = ()  # ascending
    outcomes: Callable[[], Sequence[tuple[int, float]]] = tuple  # chance outcomes with their probabilities


def draw(node: str, pool: Iterable[int]) -> Fork:
    """Return a chance decision that draws one of these items with equal probability."""
    ways = Counter(pool)
    total = ways.total()
    return Fork(node, (), lambda: [(value, n / total) for value, n in sorted(ways.items()) if n])


Stage = Generator[Fork, int, None]


class Course:
    """A game of our own engines between two decisions."""

    game: ClassVar[Game]
    short_name: ClassVar[str] = ""  # name in pyspiel; if empty, the harness's name
    long_name: ClassVar[str] = ""  # if empty, the game's summary
    zero_sum: bool = False  # whether returns are relative to the other seats; variants may differ
    kinds: ClassVar[Sequence[object]]  # kinds of cards in hands
    drawn: ClassVar[Sequence[object]]  # outcomes of chance
    done: ClassVar[Sequence[object]]  # actions of seats: outputs or their words
    terms: ClassVar[Sequence[object]] = ()  # other values in fields of events
    observed: ClassVar[Sequence[Feature]]
    width: ClassVar[int] = 6  # columns of `EventRows`

    longest: int  # steps of the longest game, including chance
    most_rows: int  # of a seat's `EventRows`

    node: str  # the current node or chance decision
    player: int  # who decides: a seat, CHANCE or TERMINAL
    actions: Sequence[int]  # legal for the seat
    outcomes: Sequence[tuple[int, float]]  # outcomes of a chance node

    def __init__(self, players: int, rules: object) -> None:
        self.players, self.rules = players, rules
        self.log = Log()
        self.draws = ChanceDraws()  # of the engine
        self.history: list[tuple[int, int]] = []  # deciders and decisions
        self.engine: Any = None  # None during the deal
        self.script: list[int] = []  # decisions of this stage
        self._stage: Stage | None = None
        self._begin()

    def deal(self) -> Stage:
        """Yield the decisions of the deal, which ends with `finish_deal`."""
        raise NotImplementedError

    def turn(self) -> Stage:
        """Yield the decisions of a turn or a part of it, changing nothing until all are made.

        A copy of the game can therefore restart the turn with the decisions so far. By default, a turn is one of the
        legal outputs in `done`, without chance.
        """
        view = self.engine.view()
        action = yield Fork(view.node, [n for n, output in enumerate(self.done) if view.why_illegal(output) is None])
        self.move(self.done[action])

    def move(self, output: object, draws: Iterable[float] = ()) -> None:
        """Make a move for which chance has decided these draws of the engine."""
        self.draws.draws = [*draws]
        self.log_events(self.engine.apply(output, EVERYTHING))
        assert not self.draws.draws, "the engine has drawn less than chance decided"

    def apply(self, action: int) -> None:
        """Apply an action or an outcome. If it is illegal, raises IllegalOutput and changes nothing."""
        legal = self.actions or [outcome for outcome, _ in self.outcomes]
        if action not in legal:
            raise IllegalOutput(
                f"{action} is not legal for {_DECIDERS.get(self.player, f'seat {self.player}')} here: "
                f"{', '.join(f'{each} ({self.words(self.player, each)})' for each in legal) or 'nothing'} is"
            )
        self.history.append((self.player, action))
        if self.player != CHANCE:
            self.log.add([AnswerEvent(self.node, self.done[action], only=self.player)])
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

    def child(self, action: int) -> Self:
        """Return the game after this decision, without changing this one."""
        after = deepcopy(self)
        after.apply(action)
        return after

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
        """Ask a bot of the harness once, and return the equivalent decisions.

        Raises IllegalOutput for an illegal output, and UsageError for an output that no decisions produce.
        """
        player._seating.log = self.log.of(self.player)
        output = player.play(self.engine.view())
        if why := self.why_illegal(output):
            raise IllegalOutput(why)
        return self.actions_of(output)

    def why_illegal(self, output: Any) -> str | None:
        """Return why the rules refuse this output, or None if they allow it."""
        why: str | None = self.engine.view().why_illegal(output)
        return why

    def actions_of(self, output: Any) -> list[int]:
        """Return the decisions that produce this output. Raises UsageError if it is not in `done`."""
        if output not in self.done:
            raise UsageError(
                f"no action of {self.game.name} produces {one_line(repr(output), 60)}; override `actions_of`"
            )
        return [[*self.done].index(output)]

    def words(self, player: int, action: int) -> str:
        """Describe an action, or an outcome of CHANCE."""
        return f"{self.node} {self.drawn[action]}" if player == CHANCE else f"{self.done[action]}"

    def finish_deal(self, engine: State) -> None:
        """End the deal by showing each seat what it sees."""
        self.engine = engine
        self.log_events(engine.start)

    def hand(self, seat: int) -> Sequence[object]:
        """Return the kinds of cards that a seat holds, according to `self.cards` of its bot."""
        cards = self.engine.cards(seat, DealStreams(0, 0).seat(seat))
        return [cards] if cards in [*self.kinds] else [*cards]

    def choices(self, seat: int) -> Sequence[int]:
        """Return the decisions of a seat in its turn so far."""
        return self.script if self.player == seat else ()

    def log_events(self, events: Iterable[GameEvent]) -> None:
        """Log events of the engine, without the seats' answers, which `apply` has logged as actions."""
        self.log.add(event for event in events if not isinstance(event, AnswerEvent))

    def lines(self, seat: int) -> list[str]:
        """Return descriptions of the events that a seat saw."""
        return [describe_event(event) for event in self.log.of(seat)]

    def information(self, seat: int) -> str:
        """Return the information state as text, which is everything that a seat knows, including its own actions."""
        return "; ".join(self.lines(seat))

    def __str__(self) -> str:
        """Return the full state, including every action and outcome."""
        described = [(event.only, describe_event(event)) for event in self.log.events]
        lines = [text if only is None else f"[{only}: {text}]" for only, text in described]
        begun = [f"{self.node} after {' '.join(map(str, self.script))}"] if self.script else []
        return "; ".join([*lines, *begun])

    def recall(self, seat: int) -> dict[str, list[list[float]]]:
        """Return the information state as numbers. Missing rows are 0."""
        return {"log": [[*row] for row in self.log.of(seat).fold(self._begin_rows, self.rules).rows]}

    def _begin_rows(self, rules: object, seat: int) -> EventRows:
        return EventRows(self)

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Return the shapes of the parts of `recall`."""
        return {"log": (self.most_rows, self.width)}

    def observation(self, seat: int) -> dict[str, Sequence[float]]:
        """Return what a seat currently sees as numbers for neural networks: one-hot values, counts and shares."""
        pieces: dict[str, Sequence[float]] = {}
        around = [(seat + place) % self.players for place in range(self.players)]
        for name, size, value, of_each in self.observed:
            values = [value(self, one) if self.engine else [0.0] * size for one in (around if of_each else [seat])]
            pieces[name] = [*chain(*values)]
        return pieces

    def observation_words(self, seat: int) -> str:
        """Return the observation as text."""
        pieces = self.observation(seat).items()
        return "; ".join(f"{name} {' '.join(f'{n:g}' for n in values)}" for name, values in pieces)

    def returns(self) -> list[float]:
        """Return the ranking measure by seat, or 0 before the end.

        If `zero_sum`, a seat's return is its measure minus the other seats' mean.
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

    def sample_history(self, seat: int, chance: Random) -> list[int]:
        """Sample the history of a game that this seat cannot distinguish from this one, with the same seat to move.

        The sample only depends on what the seat has seen and on whose move it is.
        """
        known = self.information(seat)
        while True:
            world = self.world(seat, chance)
            for _ in range(_MAX_CONTINUATIONS):
                ahead = deepcopy(world)
                while ahead.player not in (self.player, TERMINAL) and ahead.information(seat) == known:
                    ahead.apply(chance.choice(ahead.actions or [outcome for outcome, _ in ahead.outcomes]))
                if ahead.player == self.player and ahead.information(seat) == known:
                    return [action for _, action in ahead.history]

    def world(self, seat: int, chance: Random) -> Self:
        """Sample a game that looks the same to the seat. Other seats may have moved since its last observation.

        The default is rejection sampling: the seat repeats its decisions, and everything else is random. Raises
        UsageError after more attempts than a small game would need.
        """
        known, own = self.information(seat), [action for player, action in self.history if player == seat]
        for _ in range(_MAX_TRIALS):
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
            f"none of {_MAX_TRIALS:,} random games of {self.game.name} looks the same to seat {seat}; override `world` "
            f"in {type(self).__name__}"
        )

    def __getstate__(self) -> dict[str, object]:
        return {**vars(self), "_stage": None, "log": Log(self.log.events)}  # the rest is rebuilt from these

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        """Copy the game, sharing the events and the rules, which never change."""
        twin = copy(self)
        own = {name: value for name, value in vars(twin).items() if name not in ("log", "history")}
        vars(twin).update(deepcopy(own, {id(self.rules): self.rules}), history=self.history[:])
        return twin


class MoveCourse(Course):
    """A course whose actions make up moves, without chance. A player's policy can be measured in it."""

    moves: ClassVar[str]  # what the actions are
    small: ClassVar[Mapping[str, object]] = {}  # rules of a variant in which every player's policy can be measured

    def plays_by_answers(self, bot: type[Player]) -> bool:
        """Return whether the game plays for a bot of this class by its answers to the questions."""
        raise NotImplementedError

    def ask(self, given: Sequence[int]) -> Any:
        """Return the next question or draw of this turn after these answers and draws (a `Fork`), or else the move."""
        raise NotImplementedError

    def follow(
        self, shares: Callable[[str, tuple[object, ...]], Mapping[object, float]]
    ) -> dict[tuple[int, ...], float]:
        """Return the probability of each move of this turn, as actions, for a seat that answers the questions.

        `shares` returns the probability of each answer to a question, from its node and the answers before it.
        """
        moves = defaultdict[tuple[int, ...], float](float)

        def spread(given: tuple[int, ...], answers: tuple[object, ...], share: float) -> None:
            fork = self.ask(given)
            if not isinstance(fork, Fork):
                moves[tuple(self.actions_of(fork))] += share
            elif fork.actions:
                for answer, part in shares(fork.node, answers).items():
                    if part:
                        spread((*given, int(bool(answer))), (*answers, answer), share * part)
            else:
                for outcome, part in fork.outcomes():
                    spread((*given, outcome), answers, share * part)

        spread((), (), 1.0)
        return dict(moves)


def try_out(game: Game, course: type[Course], players: int) -> None:
    """Play a random game and compute what the seats see. Raises UsageError if this fails."""
    try:
        for wrong in _play_flaws(course(players, game.rules_of_run(game.rules().model_dump()))):
            raise UsageError(f"in a random game {wrong}")
    except DubitoError:
        raise
    except Exception as error:  # foreign code
        raise UsageError(f"a random game raises {format_exception(error)}; correct it") from None


def format_exception(error: BaseException) -> str:
    return one_line(f"{type(error).__name__}: {error}".removesuffix(": "))


def _play_flaws(course: Course) -> Iterator[str]:
    """Play an undealt game with random moves and yield its flaws."""
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
    for event in course.log.events:
        if event.only not in (None, NOBODY, *range(course.players)):
            yield f"{type(event).__name__} is only for seat {event.only!r}, but there are {course.players} seats"
    if len(course.history) > course.longest:
        yield f"there are {len(course.history)} steps, but `longest` is {course.longest}"
    rows = max(len(course.recall(seat)["log"]) for seat in range(course.players))
    if rows > course.most_rows:
        yield f"a seat has {rows} rows, but `most_rows` is {course.most_rows}"
