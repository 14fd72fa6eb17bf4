"""The base class of bots for draw and defuse. A bot plays turns and decides where to put the bomb."""

from collections.abc import Generator
from types import GeneratorType
from typing import Any

from dubito.errors import IllegalOutput
from dubito.game import Player
from dubito.games.defuse.engine import DRAW, ENDS_TURN, KEEPS_TURN, HandView, View

Seen = tuple[str, ...]
Turn = Generator[str, Seen, str | None] | str | None


class DefuseBot(Player):
    """The base class of bots for draw and defuse. Each game uses a new instance (D6).

    `self.id` is the seat, `self.cards` the seat's current hand and `self.rng` the only source of randomness to use.
    """

    cards: HandView

    _waiting: Generator[str, Seen, str | None] | None = None  # the turn in progress, which has yielded an action
    _asked_next: int = -1  # the game's move count when the turn's next action is due

    def turn(self, view: View) -> Turn:
        """Play a turn: `top = yield "see"` shows up to three cards, top card first; `yield "shuffle"` shuffles.

        Return the action that ends the turn: "draw" (or None), "skip" or "bottom". A method without a `yield` simply
        returns the action.
        """
        raise IllegalOutput(f"{type(self).__name__} does not implement turn yet")

    def defuse(self, view: View) -> int:
        """Return where to put the bomb that you drew. 0 is the top of the pile and `view.pile` is the bottom."""
        raise IllegalOutput(f"{type(self).__name__} does not implement defuse yet")

    def play(self, view: View) -> Any:
        """Begin the turn, continue the turn after a see or shuffle card, or place the bomb."""
        turn, self._waiting = self._waiting, None
        if view.node == "place":
            return self.defuse(view)
        if turn is not None and view.moves == self._asked_next:  # otherwise a substitute acted in the meantime
            seen: Seen | None = view.seen
        else:
            begun, seen = self.turn(view), None
            if not isinstance(begun, GeneratorType):
                return _last_act(begun)
            turn = begun
        try:
            act = next(turn) if seen is None else turn.send(seen)
        except StopIteration as stop:
            return _last_act(stop.value)
        if type(act) is not str or act not in KEEPS_TURN:
            raise IllegalOutput(f"a turn may only yield {' or '.join(KEEPS_TURN)}, but it yielded {_describe_act(act)}")
        self._waiting, self._asked_next = turn, view.moves + 1
        return act


def _last_act(act: object) -> Any:
    """Return the action that ends a turn. Raises IllegalOutput if the action does not end a turn."""
    if act is None:
        return DRAW
    if type(act) is not str or act not in ENDS_TURN:
        raise IllegalOutput(
            f"a turn must return {', '.join(map(repr, ENDS_TURN))} or None, but it returned {_describe_act(act)}"
        )
    return act


def _describe_act(act: object) -> str:
    """Describe a bot's action. Only plain strings are quoted, so that no code of the bot runs."""
    return repr(act) if type(act) is str and len(act) <= 20 else f"a value of type {type(act).__name__}"
