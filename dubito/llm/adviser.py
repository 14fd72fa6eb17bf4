"""A bot that advises a model: it watches the game from the model's seat, and each question states its answer.

The model decides, so advice is only text. It comes after the prompt's user text, which repeats byte for byte.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from dubito.errors import RunStopped, UsageError, one_line
from dubito.game import Game, Player, Seating
from dubito.game.log import Position
from dubito.game.seating import make_player
from dubito.model_settings import ModelSettings

ADVICE_ATTEMPT: Final = 100  # where a program's advice is recorded, after all attempts of the model it advises
_MAX_REASON: Final = 300  # characters


@dataclass(frozen=True, slots=True)
class AdviserBot:
    """The bot that advises a player."""

    cls: type[Player]
    name: str
    reason: str  # used for each move of a bot that gives no reasons


class Adviser:
    """An adviser in one seat of one game."""

    def __init__(self, bot: AdviserBot, game: Game, seating: Seating, service: object) -> None:
        """Seat the bot. `service` is what a program needs to be asked."""
        own = replace(seating, streams=seating.streams.for_adviser(), services=service)
        self._bot, self._game = bot, game
        self._player: Any = make_player(bot.cls, own, {})
        self._move: Any = None  # of this turn; None if the bot failed
        self._has_moved = False

    def begin_turn(self) -> None:
        self._move, self._has_moved = None, False

    def observe(self, event: Any) -> None:
        self._player.observe(event)

    def advise(self, questions: Sequence[Position], view: Any) -> str:
        """Return the advice about these questions of a turn."""
        answers, nodes = [self._answer(question, view) for question in questions], [one.node for one in questions]
        if all(answer is None for answer in answers):
            return f"Your adviser, {self._bot.name}, has no advice on this."
        listed = [
            f"{node}: {json.dumps(answer)}" for node, answer in zip(nodes, answers, strict=True) if answer is not None
        ]
        answer = ", ".join(listed) if len(nodes) > 1 else json.dumps(answers[0])
        reason = one_line(str(getattr(self._player, "reason", "") or self._bot.reason), _MAX_REASON)
        because = f" Its reason: {reason}" if reason else ""
        return f"Your adviser, {self._bot.name}, would answer {answer}.{because}\nYou decide whether to follow it."

    def _answer(self, question: Position, view: Any) -> object:
        """Return the bot's answer, or None if it fails. Its one move of a turn answers all questions."""
        try:
            if self._game.has_walk and self._bot.cls.is_program:
                return self._player.ask(question, view)
            if not self._has_moved:
                self._has_moved = True
                self._move = self._player.play(view)
        except RunStopped:
            raise
        # A bot is other people's code. The model then plays without advice, and the prompt says so.
        except Exception:
            return None
        return (
            None
            if self._move is None
            else self._game.answer_in_turn(question.node, self._move, view, self._player.cards)
        )


def adviser_name(player: str) -> str:
    """Return the name under which the advice of a player's program is recorded."""
    return f"{player}'s adviser"


def refuse_adviser(settings: ModelSettings, where: str) -> None:
    """Raise UsageError if a player is asked where no adviser can watch a game."""
    if settings.adviser is not None:
        raise UsageError(f"adviser: {where} cannot have one", hint="leave it out")


def is_program_adviser(settings: ModelSettings) -> bool:
    return isinstance(settings.adviser, dict) and "bot" not in settings.adviser
