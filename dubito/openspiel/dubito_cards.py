"""Dubito as a path whose decisions are the cards themselves: whatever the rules allow, a seat can do."""

from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

from dubito.errors import IllegalOutput
from dubito.game import Player
from dubito.games.dubito.cards import MOST, NUMBERS, TurnOutput
from dubito.games.dubito.engine import why_illegal
from dubito.openspiel.course import CHANCE, Pieces, one_hot
from dubito.openspiel.dubito_course import VALUES, DubitoCourse

DONE: Final = VALUES  # actions below are cards
DOUBT: Final = DONE + 1
DECLARE: Final = DOUBT  # with the number added
_NODES: Final = ("declare", "play", "more")


class CardsCourse(DubitoCourse):
    """A game of Dubito: 0 to 13 is one more card, ascending; 14 ends the play, 15 doubts, 16 to 28 declare a number.

    An opening declares first. In a turn, nothing is left to chance.
    """

    n_actions = DECLARE + NUMBERS[-1] + 1

    def _output(self) -> TurnOutput | None:
        game, script = self.engine, self._script
        picks = [action for action in script if action < DONE]
        if DOUBT in script:
            return TurnOutput(True)
        if DONE in script or len(picks) == MOST:
            return TurnOutput(False, None if game.number else script[0] - DECLARE, picks)
        if not game.number and not script:
            self.node = "declare"
            self._ask(game.seat, [DECLARE + number for number in NUMBERS])
            return None
        self.node = "more" if picks else "play"
        held, least = Counter(game.hands[game.seat].cards), max(picks, default=0)
        held.subtract(picks)
        actions = [card for card in range(least, VALUES) if held[card] > 0]
        if picks:
            actions.append(DONE)
        elif game.can_doubt:
            actions.append(DOUBT)
        self._ask(game.seat, actions)
        return None

    def steps(self, player: Player) -> list[int]:
        """The doubt; or the number where it opens, and its cards."""
        game = self.engine
        output = player.play(game.turn_data())
        if why := why_illegal(output, game.hands[game.seat].counts, game.number, game.can_doubt):
            raise IllegalOutput(why)
        if output.doubt:
            return [DOUBT]
        number = [] if game.number else [DECLARE + output.number]
        return [*number, *sorted(output.cards), *([DONE] if len(output.cards) < MOST else [])]

    def words(self, player: int, action: int) -> str:
        """As `card 7`, `done`, `doubt`, `declare 7`, or `deal 7`."""
        if player == CHANCE or action < DONE:
            return f"{'deal' if player == CHANCE else 'card'} {action}"
        return {DONE: "done", DOUBT: "doubt"}.get(action, f"declare {action - DECLARE}")

    def about(self, action: int) -> tuple[Any, ...]:
        """The action."""
        return ("did", action)

    def recall(self, seat: int) -> Pieces:
        """As at the nodes; what is asked is the number that was declared on this turn, and the cards so far + 1."""
        script = self._script if self.player == seat else []
        number = [action - DECLARE for action in script if action > DOUBT] or [0]
        return super().recall(seat) | {"asked": [*number, *(action + 1 for action in script if action < DONE)]}

    def _asked(self, seat: int) -> Pieces:
        """The question, the number that was declared on this turn, and the cards so far."""
        mine = self.player == seat and self.engine is not None
        script = self._script if mine else []
        picks = Counter(script)
        return {
            "asked": one_hot(_NODES.index(self.node) if mine else -1, len(_NODES)),
            "declared": [float(picks[DECLARE + number]) for number in NUMBERS],
            "picks": [picks[card] for card in range(VALUES)],
        }

    def doubt(self) -> None:
        """Play a turn that doubts."""
        self.apply(DOUBT)

    def put_down(self, number: int, cards: Sequence[int]) -> None:
        """Play a turn that puts down these cards."""
        steps = [*sorted(cards), *([DONE] if len(cards) < MOST else [])]
        for action in steps if self.engine.number else [DECLARE + number, *steps]:
            self.apply(action)
