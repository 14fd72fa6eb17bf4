"""A small game for `dubito policy`, from OpenSpiel or the harness, that can be enumerated.

Each situation is an information state of the tree. This module provides the prompts for models, the actions for their
answers, and bots that have observed what the seat has observed.
"""

from collections.abc import Mapping, Sequence
from copy import deepcopy
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, Protocol, runtime_checkable

from dubito.errors import IllegalOutput, UsageError
from dubito.game import Game, GameEvent, Player, Seating, make_player
from dubito.game.log import Position, SeatLog
from dubito.game.streams import DealStreams, SeatStreams
from dubito.game.table import Entrant
from dubito.plugins.openspiel.course import CHANCE, TERMINAL, Course, QuestionCourse
from dubito.plugins.openspiel.courses import load_courses
from dubito.plugins.openspiel.engine_types import TreeGame
from dubito.plugins.openspiel.game import OpenSpielGame, ask_policies
from dubito.plugins.openspiel.policy.tree import InfoState
from dubito.plugins.openspiel.state import View

if TYPE_CHECKING:
    from collections.abc import Callable

    from pydantic import BaseModel


class PolicyView(Protocol):
    """The view for a bot's `chances`."""

    @property
    def sees(self) -> str:
        """The information state."""

    @property
    def names(self) -> Mapping[int, str]:
        """The names of the legal actions."""


@runtime_checkable
class StatesChances(Protocol):
    """A bot that states its strategy."""

    def chances(self, view: PolicyView, /) -> Mapping[int | str, float]:
        """Return the probability of each legal action, by number or name."""


class SeatView(NamedTuple):
    """What a seat sees in a situation, in words. If there is no hand, only the state is known."""

    hand: str
    history: Sequence[str]


def states_chances(bot: type[Player]) -> bool:
    return issubclass(bot, StatesChances)


class Situation(NamedTuple):
    """A `PolicyView`, like views of OpenSpiel's games."""

    sees: str
    names: Mapping[int, str]


class SmallGame(Protocol):
    """A game's interface for `dubito policy`."""

    game: Game
    name: str  # with its rules

    @property
    def rules(self) -> "BaseModel": ...

    @property
    def engine(self) -> TreeGame: ...

    def names(self, state: InfoState) -> Mapping[int, str]:
        """Return the legal actions in words."""

    def answers(self, state: InfoState) -> Mapping[object, int]:
        """Map a model's answers to actions."""

    def prompt_game(self, states: Sequence[InfoState], draws: int | None) -> tuple[Game, int | None]:
        """Return the game whose prompts are used, and the draws per state (None for stated probabilities)."""

    def position(self, game: Game, state: InfoState) -> Position:
        """Return the position of a state, for prompts."""

    def seat_view(self, state: InfoState) -> SeatView: ...

    def situation(self, state: InfoState) -> PolicyView:
        """Return the view for a bot's `chances`, with the `names`."""

    def player(self, entrant: Entrant, state: InfoState, draw: int, seed: int, service: object = None) -> Player:
        """Return a bot with separate streams that has observed what its seat has observed.

        A program needs a `ProgramGame` as its service.
        """

    def act(self, player: Player, state: InfoState) -> int | None:
        """Return the bot's action, or None if its turn began in another way. Raises IllegalOutput."""


def small_game(game: Game, rules: "BaseModel", cards: bool = False) -> SmallGame:
    """Return the small game, with `cards` the one whose actions are cards. Raises UsageError if it does not exist."""
    if isinstance(game, OpenSpielGame):
        return _OfOpenSpiel(game)
    if cards and "cards" in load_courses(game):
        return _OfCards(game, rules)
    if issubclass(next(iter(load_courses(game).values()), Course), QuestionCourse):
        return _OfOurs(game, rules)
    raise UsageError(f"policies of {game.name} cannot be measured; use openspiel:kuhn_poker, or a small duel of dubito")


def _make_player(
    rules: object,
    entrant: Entrant,
    seat: int,
    draw: int,
    seed: int,
    look: "Callable[[SeatStreams], object]",
    log: SeatLog | None = None,
    service: object = None,
) -> Player:
    streams = DealStreams(seed, draw).seat(seat)
    return make_player(entrant.bot, Seating(seat, draw, draw, streams, look, service, rules, log), entrant.settings)


def _with_observations(player: Player, events: Sequence[GameEvent]) -> Player:
    if player.needs_events():
        for event in events:
            player.observe(event)
    return player


class _OfOpenSpiel:
    def __init__(self, game: OpenSpielGame) -> None:
        self.game: Game = game
        self._openspiel = game
        self.name, self.rules = game.name, game.rules()
        self.engine, self._workshop = game.engine, game.workshop

    def names(self, state: InfoState) -> Mapping[int, str]:
        return self.situation(state).names

    def answers(self, state: InfoState) -> Mapping[object, int]:
        return {name: action for action, name in self.names(state).items()}

    def prompt_game(self, states: Sequence[InfoState], draws: int | None) -> tuple[Game, int | None]:
        return (self.game if draws else ask_policies(self._openspiel, [state.history for state in states])), draws

    def position(self, game: Game, state: InfoState) -> Position:
        return self._workshop.position_at(state.history, game.nodes[0].name)

    def seat_view(self, state: InfoState) -> SeatView:
        view = self.situation(state)
        return SeatView(view.hand or "", [entry.text for entry in view.history])

    def situation(self, state: InfoState) -> View:
        return self._workshop.view_at(state.history)

    def player(self, entrant: Entrant, state: InfoState, draw: int, seed: int, service: object = None) -> Player:
        look = partial(self.situation(state).look, state.seat)
        log = self.position(self.game, state).log
        player = _make_player(self.rules, entrant, state.seat, draw, seed, look, log, service)
        return _with_observations(player, self._workshop.events_at(state.history, state.seat))

    def act(self, player: Player, state: InfoState) -> int:
        view = self.situation(state)
        output = player.play(view)
        if why := view.why_illegal(output):
            raise IllegalOutput(why)
        return self.answers(state)[output]


class CourseGame:
    """Adapts one of the harness's games to the interface that a tree expects from OpenSpiel's games."""

    def __init__(self, game: Game, rules: "BaseModel", kind: str | None = None) -> None:
        self._name, self._said, self._players = game.name, rules.model_dump(), game.seat_range(rules)[0]
        courses = load_courses(game)
        self._class = next(iter(courses.values())) if kind is None else courses[kind]
        self._rules = game.rules_of_run(self._said)
        self._zero_sum = self.new_course().zero_sum

    def __str__(self) -> str:
        return f"{self._name}({', '.join(f'{key}: {value}' for key, value in self._said.items())})"

    def get_type(self) -> "_CourseType":
        return _CourseType(self._name)

    def num_players(self) -> int:
        return self._players

    def utility_sum(self) -> float | None:
        return 0.0 if self._zero_sum else None

    def new_course(self) -> Course:
        return self._class(self._players, self._rules)

    def new_initial_state(self) -> "_CourseState":
        return _CourseState(self.new_course())


class _Named(NamedTuple):
    name: str


class _CourseType(NamedTuple):
    short_name: str
    dynamics: _Named = _Named("SEQUENTIAL")
    chance_mode: _Named = _Named("EXPLICIT_STOCHASTIC")
    information: _Named = _Named("IMPERFECT_INFORMATION")
    provides_information_state_string: bool = True


class _CourseState:
    def __init__(self, course: Course) -> None:
        self._course = course
        self.returns, self.information_state_string = course.returns, course.information

    def current_player(self) -> int:
        return self._course.player

    def is_terminal(self) -> bool:
        return self._course.player == TERMINAL

    def is_chance_node(self) -> bool:
        return self._course.player == CHANCE

    def chance_outcomes(self) -> Sequence[tuple[int, float]]:
        return self._course.outcomes

    def legal_actions(self) -> Sequence[int]:
        return self._course.actions

    def apply_action(self, action: int) -> None:
        self._course.apply(action)

    def child(self, action: int) -> "_CourseState":
        return _CourseState(self._course.child(action))


class _OfOurs:
    """A game of the harness whose course defines the questions. Each question is a node, and its answer an action."""

    def __init__(self, game: Game, rules: "BaseModel") -> None:
        self.game, self.rules = game, rules
        self.engine = CourseGame(game, rules)
        self.name = f"{self.engine}"
        self._courses = dict[str, QuestionCourse]()

    def _course(self, state: InfoState) -> QuestionCourse:
        if state.string not in self._courses:
            course = self.engine.new_course()
            assert isinstance(course, QuestionCourse)
            for action in state.history:
                course.apply(action)
            self._courses[state.string] = course
        return self._courses[state.string]

    def names(self, state: InfoState) -> Mapping[int, str]:
        course = self._course(state)
        return {action: course.words(state.seat, action) for action in state.actions}

    def answers(self, state: InfoState) -> Mapping[object, int]:
        return {bool(action): action for action in state.actions}

    def prompt_game(self, states: Sequence[InfoState], draws: int | None) -> tuple[Game, int | None]:
        return self.game, draws or 1

    def position(self, game: Game, state: InfoState) -> Position:
        return self._course(state).question()

    def seat_view(self, state: InfoState) -> SeatView:
        course = self._course(state)
        hand = " ".join(map(str, course.hand(state.seat)))
        return SeatView(hand, course.lines(state.seat))

    def situation(self, state: InfoState) -> PolicyView:
        return Situation(state.string, self.names(state))

    def player(self, entrant: Entrant, state: InfoState, draw: int, seed: int, service: object = None) -> Player:
        if not (entrant.bot.is_program or self.game.answers_nodes(entrant.bot)):
            raise UsageError(
                f"{entrant.name} does not answer each question separately, so a table cannot describe it; choose "
                "another bot"
            )
        course = self._course(state)
        look = partial(course.engine.cards, state.seat)
        player = _make_player(course.rules, entrant, state.seat, draw, seed, look, course.log.of(state.seat), service)
        return _with_observations(player, [event for event in course.log.of(state.seat) if not event.silent])

    def act(self, player: Player, state: InfoState) -> int:
        course = self._course(state)
        answer = getattr(player, self.game.node(course.node).method)(course.engine.view())
        if answer is not True and answer is not False:
            raise IllegalOutput(f"an answer must be True or False, not {type(answer).__name__}")
        return int(answer)


def _cannot_mix(players: str) -> UsageError:
    return UsageError(
        f"{players} answer questions, but one of these bots plays cards of its choice",
        hint=f"measure the {players} and that bot separately",
    )


class _OfCards:
    """A game of the harness whose actions are cards. It can measure bots that play cards of their choice.

    A bot is replayed through its seat's turns of a history: it observes what the seat has observed and is asked for
    each earlier turn. Its answers there are dropped, since the history contains what was played.
    """

    def __init__(self, game: Game, rules: "BaseModel") -> None:
        self.game, self.rules = game, rules
        self.engine = CourseGame(game, rules, "cards")
        self.name = f"{self.engine}, with cards as actions"
        self._turns_of = dict[str, list[Course]]()

    def _turns(self, state: InfoState) -> list[Course]:
        """Return the game at the start of each turn of the seat, the last of which leads to this state."""
        if state.string not in self._turns_of:
            course, turns = self.engine.new_course(), list[Course]()
            for action in (*state.history, None):
                if course.player == state.seat and not course.script:
                    turns.append(deepcopy(course))
                if action is not None:
                    course.apply(action)
            self._turns_of[state.string] = turns
        return self._turns_of[state.string]

    def names(self, state: InfoState) -> Mapping[int, str]:
        course = self._turns(state)[-1]
        return {action: course.words(state.seat, action) for action in state.actions}

    def answers(self, state: InfoState) -> Mapping[object, int]:
        return {name: action for action, name in self.names(state).items()}

    def prompt_game(self, states: Sequence[InfoState], draws: int | None) -> tuple[Game, int | None]:
        raise _cannot_mix("models")

    def position(self, game: Game, state: InfoState) -> Position:
        raise NotImplementedError  # only models are asked at a position

    def seat_view(self, state: InfoState) -> SeatView:
        course = self._turns(state)[-1]
        return SeatView(" ".join(map(str, course.hand(state.seat))), course.lines(state.seat))

    def situation(self, state: InfoState) -> PolicyView:
        return Situation(state.string, self.names(state))

    def player(self, entrant: Entrant, state: InfoState, draw: int, seed: int, service: object = None) -> Player:
        if entrant.bot.is_program:
            raise _cannot_mix("programs")
        turns = self._turns(state)
        first, last, log = turns[0], turns[-1], turns[-1].log.of(state.seat)
        look = partial(first.engine.cards, state.seat)
        player, seen = _make_player(first.rules, entrant, state.seat, draw, seed, look, log), 0
        for course in turns:
            events = [event for event in course.log.of(state.seat) if not event.silent]
            player.cards = course.engine.cards(state.seat, player._seating.streams)
            _with_observations(player, events[seen:])
            seen = len(events)
            if course is not last:
                player.play(course.engine.view())
        return player

    def act(self, player: Player, state: InfoState) -> int | None:
        course = self._turns(state)[-1]
        output, given = player.play(course.engine.view()), list(state.history[len(course.history) :])
        if why := course.why_illegal(output):
            raise IllegalOutput(why)
        actions = course.actions_of(output)
        return actions[len(given)] if actions[: len(given)] == given else None
