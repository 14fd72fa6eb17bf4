"""What a bot of draw and defuse is: a turn, and where the bomb goes."""

from collections.abc import Generator
from types import GeneratorType
from typing import Any

from dubito.errors import IllegalOutput
from dubito.game import Player
from dubito.games.defuse.engine import DRAW, ENDING, WITHIN, HandView, View

Seen = tuple[str, ...]
Turn = Generator[str, Seen, str | None] | str | None


class DefuseBot(Player):
    """The base of every bot of draw and defuse; a new instance plays each game (D6).

    `self.id` is the seat, `self.cards` the own hand as it is now, `self.rng` the only randomness to use.
    """

    cards: HandView

    _turn: Generator[str, Seen, str | None] | None = None  # that has yielded and waits
    _goes_on: int = -1  # after so many moves of the game

    def turn(self, view: View) -> Turn:
        """Your turn: `top = yield "see"` shows up to three cards, the top first, and `yield "shuffle"` shuffles.

        Return what ends the turn: "draw" (or nothing), "skip" or "bottom". Without a yield it is a plain method.
        """
        raise IllegalOutput(f"turn of {type(self).__name__} is not written yet")

    def defuse(self, view: View) -> int:
        """You have drawn the bomb and played a defuse card: 0 puts it on top of the pile, `view.pile` at the bottom."""
        raise IllegalOutput(f"defuse of {type(self).__name__} is not written yet")

    def play(self, view: View) -> Any:
        """Begin the turn, go on with it after a see or shuffle card, or place the bomb."""
        waiting, self._turn = self._turn, None
        if view.node == "place":
            return self.defuse(view)
        if waiting is None or view.moves != self._goes_on:  # else somebody has acted in its place since
            begun = self.turn(view)
            if not isinstance(begun, GeneratorType):
                return _ended(begun)
            waiting, seen = begun, None
        else:
            seen = view.seen
        try:
            act = next(waiting) if seen is None else waiting.send(seen)
        except StopIteration as stop:
            return _ended(stop.value)
        if type(act) is not str or act not in WITHIN:
            raise IllegalOutput(
                f"a turn yields {' or '.join(WITHIN)} and returns what ends it: it has yielded {_told(act)}"
            )
        self._turn, self._goes_on = waiting, view.moves + 1
        return act


def _ended(act: object) -> Any:
    """The act that a turn has returned; raises IllegalOutput if it does not end one."""
    if act is None:
        return DRAW
    if type(act) is not str or act not in ENDING:
        raise IllegalOutput(f"a turn returns {', '.join(map(repr, ENDING))} or None: it has returned {_told(act)}")
    return act


def _told(act: object) -> str:
    """What was yielded or returned; only text of the usual kind is shown, since no code of it may run."""
    return repr(act) if type(act) is str and len(act) <= 20 else f"a value of type {type(act).__name__}"


def missing_nodes(cls: type[Player]) -> list[str]:
    """The nodes that this class leaves unanswered, as `place (defuse)`; none if its `play` is its own."""
    if cls.play is not DefuseBot.play:
        return []
    nodes = {"turn": "turn", "place": "defuse"}
    return [f"{node} ({name})" for node, name in nodes.items() if getattr(cls, name) is getattr(DefuseBot, name)]
