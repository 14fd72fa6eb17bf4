"""A match as a state machine that maps lines from bots to lines for bots, without processes, clocks or files.

    match = Match(game.new_initial_state(), dialect, streams, strikes=3)
    while turn := match.turn():
        ...                       send `turn.lines`
        while match.waiting:      the seats whose answer is pending
            match.receive(seat, line), match.time_out(seat) or match.handle_crash(seat)

A line counts for the phase in which it ends. The first line of a seat that has to act is its answer. Any other line is
a strike. An answer must be one of the listed actions, written as listed. Otherwise it is illegal, and a random action
is played instead. The third strike of a kind, an overrun or a crash shuts a bot down: its seat then plays at random and
gets no more lines, but its score counts.
"""

from dataclasses import dataclass
from functools import cached_property
from random import Random
from typing import Annotated, Any, Final, NamedTuple, Protocol

from pydantic import Field

from dubito.plugins.tournament.rules import FATAL_STRIKES, StrikeKind

TableSeat = Annotated[int, Field(ge=0, le=1)]

_MAX_QUOTED_BYTES: Final = 80
# OpenSpiel's player numbers of chance and of a finished game.
_CHANCE: Final = -1
_TERMINAL: Final = -4


class Encoder(Protocol):
    """Writes nodes in a dialect."""

    def node(self, state: Any, seat: int, legal: list[int] | None) -> bytes:
        """Return the line for a seat. `legal` contains the seat's actions if it has to act."""


class MatchStreams:
    """A match's random streams, separated so that a bot's mistakes do not affect the deal or the other bot."""

    def __init__(self, chance: int, replacements: tuple[int, int]) -> None:
        self._chance, self._replacements = chance, replacements
        self._replacement_streams: dict[int, Random] = {}

    @cached_property
    def chance(self) -> Random:
        return Random(self._chance)

    def replacement(self, seat: int) -> Random:
        if seat not in self._replacement_streams:
            self._replacement_streams[seat] = Random(self._replacements[seat])
        return self._replacement_streams[seat]


@dataclass(frozen=True, slots=True)
class Strike:
    """A rule that a seat broke."""

    node: int  # index of the node
    seat: TableSeat
    kind: StrikeKind
    line: str  # as sent by the bot, shortened


class MatchTurn(NamedTuple):
    """A node: the line for each seat, if any, and whether it is a chance node."""

    lines: tuple[bytes | None, bytes | None]
    chance: bool


class Match:
    """The state of a match. `turn()` advances it."""

    def __init__(self, state: Any, dialect: Encoder, draws: MatchStreams, strikes: int = 3) -> None:
        self.state = state
        self.history: list[int | list[int]] = []  # one action per node; a list if both seats move at once
        self.strikes: list[Strike] = []
        self.replaced: list[tuple[int, int]] = []  # node and seat of each action that was drawn for a bot
        self.down = [False, False]
        self.waiting: list[int] = []
        self._legal: dict[int, dict[bytes, int]] = {}  # by seat, only for seats that have to act
        self._actions: dict[int, int] = {}
        self._dialect, self._draws, self._max_strikes = dialect, draws, strikes

    def advance(self) -> bool:
        """Play the pending actions. Return whether the next node is not a chance node."""
        if self._actions:
            self._play()
            self._actions = {}
        return not self.state.is_chance_node()

    def turn(self) -> MatchTurn | None:
        """Play the pending actions and return the next node, or None if the match is over."""
        state = self.state
        if self._actions:
            self._play()
        mover = state.current_player()
        if mover == _TERMINAL:
            return None
        self._legal, self._actions, self.waiting = {}, {}, []
        if mover == _CHANCE:
            self._actions = {_CHANCE: draw_outcome(state.chance_outcomes(), self._draws.chance)}
        else:
            for seat in (mover,) if mover >= 0 else (0, 1):
                self._ask(seat, state.legal_actions(seat))
        return MatchTurn((self._line(0), self._line(1)), mover == _CHANCE)

    def receive(self, seat: int, line: bytes) -> None:
        """Handle a bot's line, without its newline."""
        if seat not in self.waiting:
            self._strike(seat, "ponder", line)
            return
        self.waiting.remove(seat)
        action = self._legal[seat].get(line.removesuffix(b"\r"))
        if action is None:
            self._strike(seat, "illegal", line)
            self._replace(seat)
        else:
            self._actions[seat] = action

    def has_to_act(self, seat: int) -> bool:
        return seat in self._legal

    def time_out(self, seat: int) -> None:
        self._fail(seat, "overrun")

    def handle_crash(self, seat: int) -> None:
        self._fail(seat, "crash")

    def _fail(self, seat: int, kind: StrikeKind) -> None:
        self.waiting.remove(seat)
        self._strike(seat, kind, b"")
        self._replace(seat)

    def _ask(self, seat: int, actions: list[int]) -> None:
        # At simultaneous nodes, one seat may have no choice.
        if len(actions) == 0:
            return
        self._legal[seat] = {b"%d" % action: action for action in actions}
        if self.down[seat]:
            self._replace(seat)
        else:
            self.waiting.append(seat)

    def _line(self, seat: int) -> bytes | None:
        if self.down[seat]:
            return None
        legal = self._legal.get(seat)
        return self._dialect.node(self.state, seat, list(legal.values()) if legal else None)

    def _strike(self, seat: int, kind: StrikeKind, line: bytes) -> None:
        """Record a strike, unless the bot has already been shut down."""
        if self.down[seat]:
            return
        self.strikes.append(
            Strike(len(self.history), seat, kind, line[:_MAX_QUOTED_BYTES].decode("utf-8", "backslashreplace"))
        )
        self.down[seat] = kind in FATAL_STRIKES or self._has_too_many_strikes(seat, kind)

    def _has_too_many_strikes(self, seat: int, kind: StrikeKind) -> bool:
        return sum(strike.seat == seat and strike.kind == kind for strike in self.strikes) >= self._max_strikes

    def _replace(self, seat: int) -> None:
        if seat not in self._legal:
            return
        self.replaced.append((len(self.history), seat))
        self._actions[seat] = self._draws.replacement(seat).choice(list(self._legal[seat].values()))

    def _play(self) -> None:
        if len(self._actions) > 1 or self.state.is_simultaneous_node():
            actions = [self._actions.get(seat, 0) for seat in (0, 1)]
            self.state.apply_actions(actions)
            self.history.append(actions)
        else:
            (action,) = self._actions.values()
            self.state.apply_action(action)
            self.history.append(action)


def draw_outcome(outcomes: list[tuple[int, float]], stream: Random) -> int:
    """Draw an outcome by probability."""
    remaining = stream.random()
    for action, probability in outcomes:
        remaining -= probability
        if remaining < 0:
            return action
    return outcomes[-1][0]
