"""The harness's games as pyspiel games, with a type, a state and an observer for each `Course`, and bots to play them.

Importing this module registers the games that ship with Dubito: `pyspiel.load_game("dubito(players=4)")`,
`"dubito_bs"` and `"dubito_defuse"`. `load_game("kuhn")` registers and loads any other game.
"""

from collections import deque
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from random import Random
from typing import Final

import numpy as np

try:
    import pyspiel
except ModuleNotFoundError as error:
    raise ModuleNotFoundError("OpenSpiel is not installed: pip install 'dubito[openspiel]'", name="pyspiel") from error

from dubito.errors import UsageError, one_line
from dubito.game import Game, GameEvent, Player, Seating, make_player
from dubito.game.find import find_bots, find_game, game_names
from dubito.game.streams import DealStreams
from dubito.plugins.openspiel.course import TERMINAL, Course, try_out
from dubito.plugins.openspiel.courses import load_courses, own_courses
from dubito.plugins.openspiel.engine_types import Parameters
from dubito.seats.external import build_rules

_PARAMETERS: Final = (bool, int, float, str)  # pyspiel's parameters besides the game's name


class GameKind:
    """A game's description for pyspiel before the game is loaded."""

    def __init__(self, game: Game, courses: Mapping[str, type[Course]]) -> None:
        """Describe a game with these courses. The game parameter `moves` selects one of them, by default the first."""
        first = next(iter(courses.values()))
        self.game, self._courses, self.zero_sum = game, courses, first.zero_sum
        self.short_name, self._long_name = first.short_name or game.name, first.long_name or game.summary
        least, most = game.seats
        rules = {key: value for key, value in dict(game.rules()).items() if type(value) in _PARAMETERS}
        self.parameters: Parameters = {  # with their defaults
            **({"players": least} if least < most else {}),
            **rules,
            **({"moves": next(iter(courses))} if len(courses) > 1 else {}),
        }

    def course(self, given: Parameters) -> Course:
        """Return a new game with these parameters. Raises UsageError if they are not rules of the game."""
        own = dict(given)
        players, moves = int(own.pop("players", self.game.seats[0])), str(own.pop("moves", next(iter(self._courses))))
        if moves not in self._courses:
            raise UsageError(f"moves: {moves!r} is neither {' nor '.join(map(repr, self._courses))}")
        rules = build_rules(self.game, own)
        least, most = self.game.seat_range(rules)
        if not least <= players <= most:
            self.game.deal_game(rules, players, Random(0))  # which raises the error
        return self._courses[moves](players, rules)

    @property
    def type(self) -> pyspiel.GameType:
        """Return the type for pyspiel's registry."""
        return self.type_of(self.zero_sum, self.game.seats[0])

    def type_of(self, zero_sum: bool, players: int) -> pyspiel.GameType:
        """Return the type of a game, which may be a variant."""
        of = pyspiel.GameType
        return of(
            short_name=self.short_name,
            long_name=self._long_name,
            dynamics=of.Dynamics.SEQUENTIAL,
            chance_mode=of.ChanceMode.EXPLICIT_STOCHASTIC,
            information=of.Information.IMPERFECT_INFORMATION,
            utility=of.Utility.ZERO_SUM if zero_sum else of.Utility.GENERAL_SUM,
            reward_model=of.RewardModel.TERMINAL,
            min_num_players=min(self.game.seats[0], players),
            max_num_players=self.game.seats[1],
            provides_information_state_string=True,
            provides_information_state_tensor=True,
            provides_observation_string=True,
            provides_observation_tensor=True,
            parameter_specification=dict(self.parameters),
        )


class HarnessGame(pyspiel.Game):  # type: ignore[misc]  # pyspiel has no types
    """A game of the harness with parameters. Raises UsageError if they are not rules of the game."""

    kind: GameKind

    def __init__(self, params: Parameters | None = None) -> None:
        kind = self.kind
        self._given = {**kind.parameters, **(params or {})}
        course = self.new_course()
        info = pyspiel.GameInfo(
            num_distinct_actions=len(course.done),
            max_chance_outcomes=len(course.drawn),
            num_players=course.players,
            min_utility=-1.0 if course.zero_sum else 0.0,
            max_utility=1.0,
            utility_sum=0.0 if course.zero_sum else None,
            max_game_length=course.longest,
        )
        super().__init__(kind.type_of(course.zero_sum, course.players), info, dict(params or {}))

    def new_course(self) -> Course:
        """Return a game before its deal, without pyspiel."""
        return self.kind.course(self._given)

    def new_initial_state(self) -> "HarnessState":
        return HarnessState(self)

    def make_py_observer(
        self, iig_obs_type: pyspiel.IIGObservationType | None = None, params: Parameters | None = None
    ) -> "Observer | None":
        """Return an observer of what a seat sees or has seen, or None for other kinds of observation."""
        if params:
            raise ValueError(f"these games have no observation parameters; leave out {', '.join(params)}")
        kind = iig_obs_type or pyspiel.IIGObservationType(perfect_recall=False)
        if not kind.public_info or kind.private_info != pyspiel.PrivateInfoType.SINGLE_PLAYER:
            return None
        return Observer(self.new_course(), kind.perfect_recall)


class HarnessState(pyspiel.State):  # type: ignore[misc]  # pyspiel has no types
    """A game of the harness between two decisions. `course.engine` is the engine's state."""

    def __init__(self, game: HarnessGame) -> None:
        super().__init__(game)
        self.course = game.new_course()

    def current_player(self) -> int:
        return self.course.player

    def is_terminal(self) -> bool:
        return self.course.player == TERMINAL

    def _legal_actions(self, player: int) -> list[int]:
        return list(self.course.actions) if player == self.course.player else []

    def chance_outcomes(self) -> list[tuple[int, float]]:
        return list(self.course.outcomes)

    def _apply_action(self, action: int) -> None:
        self.course.apply(int(action))

    def _action_to_string(self, player: int, action: int) -> str:
        return self.course.words(player, action)

    def returns(self) -> list[float]:
        return self.course.returns()

    def __str__(self) -> str:
        """Return the log of all events, with the seats that saw them."""
        return str(self.course)

    def resample_from_infostate(self, player: int, sampler: Callable[[], float]) -> "HarnessState":
        """Sample a state that this player cannot distinguish from this one."""
        state = self.get_game().new_initial_state()
        for action in self.course.sample_history(player, Random(sampler())):
            state.apply_action(action)
        return state  # type: ignore[no-any-return]


class Observer:
    """Writes what a seat knows to `tensor`, whose parts are in `dict`."""

    def __init__(self, course: Course, recall: bool) -> None:
        self._recall = recall
        shapes = course.shapes() if recall else {name: (len(n),) for name, n in course.observation(0).items()}
        sizes = [int(np.prod(shape)) for shape in shapes.values()]
        self.tensor: np.ndarray = np.zeros(sum(sizes), np.float32)
        parts = np.split(self.tensor, np.cumsum(sizes)[:-1])
        self.dict = {name: part.reshape(shape) for (name, shape), part in zip(shapes.items(), parts, strict=True)}

    def set_from(self, state: HarnessState, player: int) -> None:
        """Write what this player knows about the state."""
        self.tensor.fill(0)
        course = state.course
        for name, values in (course.recall(player) if self._recall else course.observation(player)).items():
            if values:
                self.dict[name][: len(values)] = values

    def string_from(self, state: HarnessState, player: int) -> str:
        """Return what this player knows about the state as text."""
        return state.course.information(player) if self._recall else state.course.observation_words(player)


_REGISTERED: Final[dict[str, GameKind]] = {}  # by the harness's name


def register(name: str) -> str:
    """Register a game of the harness with pyspiel and return its pyspiel name.

    A name that only exists in pyspiel is returned unchanged. Raises UsageError if there is no such game, or if it has
    no usable `training` module.
    """
    if name in pyspiel.registered_names() and name not in game_names(Path.cwd()):
        return name
    return ensure_registered(find_game(name, Path.cwd()))


def load_game(name: str) -> pyspiel.Game:
    """Load a game of the harness as a pyspiel game, as in `load_game("kuhn")`, with pyspiel's parameters."""
    game, bracket, parameters = name.partition("(")
    return pyspiel.load_game(f"{register(game)}{bracket}{parameters}")


def ensure_registered(game: Game) -> str:
    """Register a game with pyspiel and return its pyspiel name.

    Raises UsageError if the game has no usable courses.
    """
    file, before = one_line(f"{game.package.replace('.', '/')}/training.py"), _REGISTERED.get(game.name)
    if before and before.game is game:
        return before.short_name
    try:
        courses = load_courses(game)
        for course in courses.values() if not own_courses(game) else ():
            try_out(game, course, game.seats[0])
    except UsageError as error:
        raise UsageError(f"{file}: {error}") from None
    if not courses:
        raise UsageError(f"{game.name} does not define `courses`, so OpenSpiel cannot load it")
    kind = GameKind(game, courses)
    if kind.short_name in pyspiel.registered_names() and (before is None or before.short_name != kind.short_name):
        raise UsageError(f"{file}: OpenSpiel already has a game {kind.short_name}; set another `short_name`")
    pyspiel.register_game(kind.type, type(f"{game.name.title()}Game", (HarnessGame,), {"kind": kind}))
    _REGISTERED[game.name] = kind
    return kind.short_name


class SeatedBot(pyspiel.Bot):  # type: ignore[misc]  # pyspiel has no types
    """A hand-written bot in a seat of one of our games. Each game uses a new instance of the bot.

    It observes what its seat sees of the states passed to `step` or `inform_action`.
    """

    def __init__(
        self,
        game: HarnessGame,
        seat: int,
        bot: str | type[Player],
        *,
        seed: int = 0,
        settings: Mapping[str, object] | None = None,
    ) -> None:
        """Seat a bot, given by its class or its name in `dubito bots`.

        `seed` determines its randomness. Raises UsageError for an unknown name or a model player.
        """
        super().__init__()
        name = game.kind.game.name
        self._class = find_bots(Path.cwd(), name).find(bot).cls if isinstance(bot, str) else bot
        if self._class.is_model:
            raise UsageError(
                f"{self._class.__name__} asks a model, which is only possible in runs of the harness; seat another bot"
            )
        self._seat, self._seed, self._settings = seat, seed, settings or {}
        self._games = 0  # number of games started
        self._forget()

    def _forget(self) -> None:
        self._player: Player | None = None
        self._streams = DealStreams(self._seed, self._games).seat(self._seat)
        self._at = 0  # number of events passed to the bot
        self._last: GameEvent | None = None
        self._left = False
        self._steps: deque[int] = deque()

    def restart(self) -> None:
        self._forget()

    def restart_at(self, state: HarnessState) -> None:
        self._forget()

    def inform_action(self, state: HarnessState, player: int, action: int) -> None:
        """Observe the state before another player's action."""
        self._observe(state.course)

    def step(self, state: HarnessState) -> int:
        player = self._observe(state.course)
        assert player is not None
        if not self._steps:
            self._steps.extend(state.course.steps(player))
        return self._steps.popleft()

    def _observe(self, course: Course) -> Player | None:
        """Pass new events to the bot, or all events if the state belongs to another game."""
        log = course.log.events
        if self._at > len(log) or (self._at and log[self._at - 1] is not self._last):
            self._forget()
        if course.engine is None:
            return None
        look = partial(course.engine.cards, self._seat)
        if self._player is None:
            seating = Seating(self._seat, self._games, self._games, self._streams, look, None, course.rules)
            self._player = make_player(self._class, seating, self._settings)
            self._games += 1
        self._player.cards = look(self._streams)  # a cloned state has separate hands
        observes = self._class.needs_events()
        for event in log[self._at :]:
            if observes and not self._left and event.only in (None, self._seat) and not event.silent:
                self._player.observe(event)
            self._left = self._left or event.leaves == self._seat
            self._last = event
        self._at = len(log)
        return self._player


for _name in ("dubito", "bs", "defuse"):
    register(_name)
