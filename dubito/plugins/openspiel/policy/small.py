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
from dubito.game.events import AnswerEvent
from dubito.game.log import AnswerNotes, Log, Position, SeatLog
from dubito.game.streams import DealStreams, SeatStreams
from dubito.game.table import Entrant
from dubito.plugins.openspiel.course import CHANCE, TERMINAL, Course, MoveCourse
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


Move = tuple[int, ...]  # the actions of a turn
Answers = tuple[object, ...]  # to the questions of a turn, in order


class Turn(NamedTuple):
    start: str  # the state in which it starts
    made: Move  # actions so far


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

    def turn_of(self, state: InfoState) -> Turn:
        """Return the turn that a state is in. Players are asked at the start of a turn."""

    def answers(self, state: InfoState) -> Sequence[object]:
        """Return the possible answers to each question of a turn."""

    def prompt_game(self, states: Sequence[InfoState], draws: int | None) -> tuple[Game, int | None]:
        """Return the game whose prompts are used, and the draws per state (None for stated probabilities)."""

    def questions(self, game: Game, state: InfoState) -> Mapping[Answers, Position]:
        """Return the position of each question of a state's turn, by the earlier answers of the turn."""

    def moves(self, state: InfoState, shares: Mapping[Answers, Mapping[object, float]]) -> Mapping[Move, float]:
        """Return the probability of each move in a turn, from the probabilities of the answers to its questions."""

    def seat_view(self, state: InfoState) -> SeatView: ...

    def situation(self, state: InfoState) -> PolicyView:
        """Return the view for a bot's `chances`, with the `names`."""

    def player(self, entrant: Entrant, state: InfoState, draw: int, seed: int, service: object = None) -> Player:
        """Return a bot with separate streams that has observed what its seat has observed.

        A program needs a `ProgramGame` as its service.
        """

    def act(self, player: Player, state: InfoState) -> Mapping[Move, float]:
        """Ask the bot once, and return the probability of each move in the turn. Raises IllegalOutput."""


def small_game(game: Game, rules: "BaseModel") -> SmallGame:
    """Return the small game. Raises UsageError if its policies cannot be measured."""
    if isinstance(game, OpenSpielGame):
        return _OfOpenSpiel(game)
    if find_course(game) is None:
        raise UsageError(
            f"policies of {game.name} cannot be measured; use openspiel:kuhn_poker, or a small duel of dubito"
        )
    return _OfOurs(game, rules)


def find_course(game: Game) -> type[MoveCourse] | None:
    return next((course for course in load_courses(game).values() if issubclass(course, MoveCourse)), None)


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

    def turn_of(self, state: InfoState) -> Turn:
        return Turn(state.string, ())

    def answers(self, state: InfoState) -> Sequence[object]:
        return [*self.names(state).values()]

    def prompt_game(self, states: Sequence[InfoState], draws: int | None) -> tuple[Game, int | None]:
        return (self.game if draws else ask_policies(self._openspiel, [state.history for state in states])), draws

    def questions(self, game: Game, state: InfoState) -> Mapping[Answers, Position]:
        return {(): self._workshop.position_at(state.history, game.nodes[0].name)}

    def moves(self, state: InfoState, shares: Mapping[Answers, Mapping[object, float]]) -> Mapping[Move, float]:
        return {(action,): shares[()].get(name, 0.0) for action, name in self.names(state).items()}

    def seat_view(self, state: InfoState) -> SeatView:
        view = self.situation(state)
        return SeatView(view.hand or "", [entry.text for entry in view.history])

    def situation(self, state: InfoState) -> View:
        return self._workshop.view_at(state.history)

    def player(self, entrant: Entrant, state: InfoState, draw: int, seed: int, service: object = None) -> Player:
        look = partial(self.situation(state).look, state.seat)
        log = self.questions(self.game, state)[()].log
        player = _make_player(self.rules, entrant, state.seat, draw, seed, look, log, service)
        return _with_observations(player, self._workshop.events_at(state.history, state.seat))

    def act(self, player: Player, state: InfoState) -> Mapping[Move, float]:
        view = self.situation(state)
        output = player.play(view)
        if why := view.why_illegal(output):
            raise IllegalOutput(why)
        return self.moves(state, {(): {output: 1.0}})


class CourseGame:
    """Adapts one of the harness's games to the interface that a tree expects from OpenSpiel's games."""

    def __init__(self, game: Game, rules: "BaseModel") -> None:
        self._name, self._said, self._players = game.name, rules.model_dump(), game.seat_range(rules)[0]
        course = find_course(game)
        assert course is not None
        self._class = course
        self._rules = game.rules_of_run(self._said)
        self._zero_sum = self.new_course().zero_sum

    def __str__(self) -> str:
        rules = ", ".join(f"{key}: {value}" for key, value in self._said.items())
        return f"{self._name}({rules}), with {self._class.moves} as actions"

    def get_type(self) -> "_CourseType":
        return _CourseType(self._name)

    def num_players(self) -> int:
        return self._players

    def utility_sum(self) -> float | None:
        return 0.0 if self._zero_sum else None

    def new_course(self) -> MoveCourse:
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
    """A game of the harness whose actions are parts of moves, such as the cards of a play.

    A bot is replayed through its seat's turns of a history: it observes what the seat has observed and is asked for
    each earlier turn. Its moves there are dropped, since the history contains what was played. Answers to the game's
    questions are followed through the engine's own play of them, whose draws have exact probabilities.
    """

    def __init__(self, game: Game, rules: "BaseModel") -> None:
        self.game, self.rules = game, rules
        self.engine = CourseGame(game, rules)
        self.name = f"{self.engine}"
        self._turns_of = dict[str, list[MoveCourse]]()
        self._followed = dict[tuple[str, Answers], Mapping[Move, float]]()

    def _turns(self, state: InfoState) -> list[MoveCourse]:
        """Return the game at the start of each turn of the seat, the last of which leads to this state."""
        if state.string not in self._turns_of:
            course, turns = self.engine.new_course(), list[MoveCourse]()
            for action in (*state.history, None):
                if course.player == state.seat and not course.script:
                    turns.append(deepcopy(course))
                if action is not None:
                    course.apply(action)
            self._turns_of[state.string] = turns
        return self._turns_of[state.string]

    def turn_of(self, state: InfoState) -> Turn:
        course = self._turns(state)[-1]
        return Turn(course.information(state.seat), state.history[len(course.history) :])

    def names(self, state: InfoState) -> Mapping[int, str]:
        course = self._turns(state)[-1]
        return {action: course.words(state.seat, action) for action in state.actions}

    def answers(self, state: InfoState) -> Sequence[object]:
        return False, True

    def prompt_game(self, states: Sequence[InfoState], draws: int | None) -> tuple[Game, int | None]:
        return self.game, draws or 1

    def questions(self, game: Game, state: InfoState) -> Mapping[Answers, Position]:
        positions, course = dict[Answers, Position](), self._turns(state)[-1]

        def record(node: str, answers: Answers) -> Mapping[object, float]:
            log = (
                positions[answers[:-1]].log.with_answer(positions[answers[:-1]].node, answers[-1])
                if answers
                else (SeatLog(state.seat, _list_events(course, state.seat)))
            )
            positions[answers] = Position(self.rules, node, log)
            return dict.fromkeys(self.answers(state), 1.0)

        course.follow(record)
        return positions

    def moves(self, state: InfoState, shares: Mapping[Answers, Mapping[object, float]]) -> Mapping[Move, float]:
        return self._turns(state)[-1].follow(lambda node, answers: shares[answers])

    def seat_view(self, state: InfoState) -> SeatView:
        course = self._turns(state)[-1]
        return SeatView(" ".join(map(str, course.hand(state.seat))), course.lines(state.seat))

    def situation(self, state: InfoState) -> PolicyView:
        return Situation(state.string, self.names(state))

    def player(self, entrant: Entrant, state: InfoState, draw: int, seed: int, service: object = None) -> Player:
        # A program has no earlier turns, since it would answer all their questions.
        turns = self._turns(state)[-1:] if entrant.bot.is_program else self._turns(state)
        log, seat = Log(), state.seat
        look = partial(turns[0].engine.cards, seat)
        player = _make_player(turns[0].rules, entrant, seat, draw, seed, look, log.of(seat), service)
        for course in turns:
            new = _list_events(course, seat)[len(log.events) :]
            log.add(new)
            player.cards = course.engine.cards(seat, player._seating.streams)
            _with_observations(player, [event for event in new if not event.silent])
            if course is not turns[-1]:
                player.play(course.engine.view())
        player.report_answers(AnswerNotes(log, seat))
        return player

    def act(self, player: Player, state: InfoState) -> Mapping[Move, float]:
        course, log = self._turns(state)[-1], player._seating.log
        assert log is not None
        output, asked = player.play(course.engine.view()), len(log)
        if why := course.why_illegal(output):
            raise IllegalOutput(why)
        if not (player.is_program or course.plays_by_answers(type(player))):
            return {tuple(course.actions_of(output)): 1.0}
        return self._follow(
            state, tuple(event.answer for event in log.latest()[asked:] if isinstance(event, AnswerEvent))
        )

    def _follow(self, state: InfoState, answers: Answers) -> Mapping[Move, float]:
        key = state.string, answers
        if key not in self._followed:
            self._followed[key] = self._turns(state)[-1].follow(lambda node, given: {answers[len(given)]: 1.0})
        return self._followed[key]


def _list_events(course: Course, seat: int) -> list[GameEvent]:
    """Return what a seat has seen. What it did is in the other events."""
    return [event for event in course.log.of(seat) if not isinstance(event, AnswerEvent)]
