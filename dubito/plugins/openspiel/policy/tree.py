"""An enumerated small game, with every history and the information states of each seat.

A strategy is a table with the probability of each legal action in every information state.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import isclose
from random import Random
from typing import Final

from dubito.errors import UsageError, one_line
from dubito.plugins.openspiel.engine_types import TreeGame, TreeState

MAX_STATES: Final = 2_000  # maximum number of information states, since a player is asked in each
MAX_HISTORIES: Final = 300_000  # maximum number of histories; enumerating them takes seconds
_MAX_PYTHON_HISTORIES: Final = 50_000  # the same for a game written in Python
_MAX_DEPTH: Final = 100  # actions and outcomes in a history
_SAMPLE_GAMES: Final = 3_000  # random games for the estimate, about a second
_FIRST_GAMES: Final = 300  # the first random games, which determine whether more are needed
_CONCLUSIVE_FACTOR: Final = 4  # an estimate that exceeds the limit by this factor is conclusive


@dataclass(frozen=True, slots=True)
class InfoState:
    """Everything that a seat knows when it must act."""

    seat: int
    string: str  # OpenSpiel's string, unique
    actions: tuple[int, ...]  # legal, ascending
    history: tuple[int, ...]  # steps of the first history with this state, including chance


@dataclass(frozen=True, slots=True)
class TreeNode:
    """A history. Its children come after it in the tree."""

    state: InfoState | None = None  # None for chance or the end
    children: list[int] = field(default_factory=list)  # by legal action, or by outcome
    chances: tuple[float, ...] = ()  # probabilities of the outcomes
    returns: tuple[float, ...] = ()  # by seat, at the end of the game


@dataclass(slots=True)
class _Place:
    state: InfoState
    before: tuple[str, int] | None  # the seat's previous state and action
    nodes: list[int]


class Tree:
    """An enumerated game. Raises UsageError if the game cannot be enumerated.

    `nodes[0]` is the start, and children come after their parents. `states` are ordered by seat, and each seat's states
    in depth-first order, starting with the lowest action.
    """

    def __init__(self, game: TreeGame, limit: int = MAX_STATES, histories: int | None = None) -> None:
        _check_game(game)
        if histories is None:
            histories = MAX_HISTORIES if is_compiled(game) else _MAX_PYTHON_HISTORIES
        self.name: str = game.get_type().short_name
        self.players: int = game.num_players()
        self.constant_sum: float | None = game.utility_sum()
        self.nodes: list[TreeNode] = []
        self._limit, self._histories = limit, histories
        self._seen: dict[str, _Place] = {}
        if not is_compiled(game):
            self._check_size(game)
        self._enumerate(game.new_initial_state(), [], [None] * self.players)
        places = sorted(self._seen.values(), key=lambda place: place.state.seat)
        self.states: list[InfoState] = [place.state for place in places]
        self.nodes_of: dict[str, list[int]] = {place.state.string: place.nodes for place in places}
        del self._seen

    def _check_size(self, game: TreeGame) -> None:
        """Refuse games that are too large, by playing random games instead of failing after half a minute.

        The number of information states reached is a lower bound. The number of histories is estimated as the mean
        product of the numbers of children along the path (Knuth, 1975).
        """
        draw, met, histories = Random(0), set[str](), 0.0
        for games in range(1, _SAMPLE_GAMES + 1):
            histories += self._try(game.new_initial_state(), draw, met)
            if len(met) > self._limit:
                raise _too_large(self.name, f"{self._limit:,} information states")
            if games == _FIRST_GAMES and histories <= games * self._histories:
                return
        if histories > _SAMPLE_GAMES * _CONCLUSIVE_FACTOR * self._histories:
            raise _too_large(self.name, f"{self._histories:,} histories")

    def _try(self, state: TreeState, draw: Random, met: set[str]) -> float:
        """Play a random game, collect its information states, and return its estimate of the histories."""
        histories, alike, moves = 1.0, 1, 0
        while not state.is_terminal():
            if (moves := moves + 1) > _MAX_DEPTH:
                raise _too_large(self.name, f"{_MAX_DEPTH} moves in a game")
            if state.is_chance_node():
                actions = [action for action, _ in state.chance_outcomes()]
            else:
                met.add(state.information_state_string(state.current_player()))
                actions = [*state.legal_actions()]
            alike *= len(actions)
            histories += alike
            state.apply_action(draw.choice(actions))
        return histories

    def _enumerate(self, state: TreeState, history: list[int], before: list[tuple[str, int] | None]) -> int:
        """Enumerate a history and all that follow. Return its index."""
        if len(self.nodes) >= self._histories:
            raise _too_large(self.name, f"{self._histories:,} histories")
        if len(history) > _MAX_DEPTH:
            raise _too_large(self.name, f"{_MAX_DEPTH} moves in a game")
        number = len(self.nodes)
        if state.is_terminal():
            self.nodes.append(TreeNode(returns=tuple(state.returns())))
            return number
        if state.is_chance_node():
            outcomes = state.chance_outcomes()
            node = TreeNode(chances=tuple(chance for _, chance in outcomes))
            actions, info = [action for action, _ in outcomes], None
        else:
            info = self._record_info_state(state, history, before, number)
            node, actions = TreeNode(info), list(info.actions)
        self.nodes.append(node)
        for action in actions:
            after = [*before]
            if info:
                after[info.seat] = info.string, action
            node.children.append(self._enumerate(state.child(action), [*history, action], after))
        return number

    def _record_info_state(
        self, state: TreeState, history: list[int], before: list[tuple[str, int] | None], number: int
    ) -> InfoState:
        """Return the information state of a history. Raises UsageError if the game does not have perfect recall."""
        seat = state.current_player()
        string = state.information_state_string(seat)
        place = self._seen.get(string)
        if place is None:
            if len(self._seen) >= self._limit:
                raise _too_large(self.name, f"{self._limit:,} information states")
            info = InfoState(seat, string, tuple(state.legal_actions()), tuple(history))
            place = self._seen[string] = _Place(info, before[seat], [])
        known = place.state
        if known.seat != seat or known.actions != tuple(state.legal_actions()):
            raise UsageError(
                f"{self.name} uses the information state {one_line(repr(string), 60)} for two seats or for different "
                "legal actions, so a table cannot describe a strategy; choose another game"
            )
        if place.before != before[seat]:
            raise UsageError(
                f"{self.name} has imperfect recall at {one_line(repr(string), 60)}, so values cannot be exact; choose "
                "another game"
            )
        place.nodes.append(number)
        return known


def is_compiled(game: TreeGame) -> bool:
    return type(game).__module__.startswith("pyspiel")


def _check_game(game: TreeGame) -> None:
    kind = game.get_type()
    name = kind.short_name
    if kind.dynamics.name != "SEQUENTIAL":
        how = "has simultaneous moves" if kind.dynamics.name == "SIMULTANEOUS" else "is a mean-field game"
        raise UsageError(f"{name} {how}, but policies need one seat to move at a time; choose another game")
    if kind.chance_mode.name == "SAMPLED_STOCHASTIC":
        raise UsageError(
            f"{name} does not report the probabilities of its chance outcomes, so exact values cannot be computed: "
            "choose another game"
        )
    if kind.information.name == "PERFECT_INFORMATION":
        raise UsageError(
            f"{name} has perfect information, so it needs no mixed strategy; choose a game with hidden information, "
            "such as kuhn_poker"
        )
    if not kind.provides_information_state_string:
        raise UsageError(
            f"{name} has no information state strings in OpenSpiel, so there are no states to ask about; choose "
            "another game, such as leduc_poker"
        )


def _too_large(name: str, size: str) -> UsageError:
    return UsageError(
        f"{name} has more than {size}, so it is too large to ask a player about every information state; choose a "
        "smaller game or smaller parameters"
    )


Row = Mapping[int, float]  # by action id
PolicyTable = Mapping[str, Row]  # by information state string, for all seats
_MAX_ROUNDING: Final = 1e-6  # tolerated rounding error of a sum


def uniform(tree: Tree) -> dict[str, dict[int, float]]:
    return {state.string: {action: 1 / len(state.actions) for action in state.actions} for state in tree.states}


def explain_incomplete(tree: Tree, table: PolicyTable) -> str | None:
    """Return why the table is not a complete strategy for the game, or None if it is.

    Rows for other states are ignored.
    """
    for state in tree.states:
        row, where = table.get(state.string), f"at {one_line(repr(state.string), 60)}"
        if row is None:
            return f"no probabilities {where}"
        if row.keys() != {*state.actions}:
            return f"{where} probabilities of the actions {sorted(row)}, but {list(state.actions)} are legal"
        if not all(chance >= 0 for chance in row.values()):
            return f"{where} a value that is not a probability"
        if not isclose(sum(row.values()), 1, abs_tol=_MAX_ROUNDING):
            return f"{where} probabilities that sum to {sum(row.values()):.6g}"
    return None


def seat_tables(tree: Tree, seat: int, table: PolicyTable, others: PolicyTable) -> Sequence[PolicyTable]:
    return [table if player == seat else others for player in range(tree.players)]
