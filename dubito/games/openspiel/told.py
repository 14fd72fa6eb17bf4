"""OpenSpiel's games in words for people: each seat reads what it has observed, who sees everything reads all."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dubito.game import GameEvent, Spec
from dubito.game.words import ME, Label, Line, Panel
from dubito.games.openspiel.events import DealEvent, SeenEvent
from dubito.games.openspiel.rule_text import objective, rule_sentences
from dubito.games.openspiel.sight import words_of
from dubito.games.openspiel.spec import engine_of
from dubito.games.openspiel.state import Game


@dataclass(frozen=True)
class OpenSpielTold:
    """The words of one game."""

    spec: Spec

    @property
    def Teller(self) -> type["Teller"]:  # noqa: N802, a class
        """By a game just dealt."""
        return Teller

    def rules(self, rules: Any, seats: int) -> list[str]:
        """The rules in force."""
        engine = engine_of(self.spec)
        return [*rule_sentences(engine), f"Objective: {objective(engine)}"]

    def in_short(self, rules: Any) -> str:
        """What may be varied."""
        return "Its parameters stand in brackets behind its name."

    def to_me(self, text: str) -> str:
        """The sentence with the person spoken to."""
        return text.replace(ME, "you")

    def sentence(self, event: GameEvent, label: Label) -> str:
        """What observes whoever observes the event."""
        match event:
            case DealEvent():
                return "The game begins."
            case SeenEvent(entries):
                return " ".join(_sentence(entry.text) for entry in entries)
        return ""


of = OpenSpielTold  # by the game


class Teller:
    """Tells one game with what nobody at its table knows."""

    def __init__(self, game: Game, label: Label) -> None:
        self._game, self._label = game, label

    def holds(self, seat: int) -> str:
        """What a seat sees, in our words; none where we have none, since the engine's string tells more than that."""
        return self._game.hand(seat) or ""

    def moved(self, seat: int, output: object, events: Sequence[GameEvent]) -> list[Line]:
        """The action, which is public in the games that we have words for; of the others, nobody says."""
        if words_of(self._game.engine):
            return [Line(f"{self._label(seat)}: {output}")]
        return [Line(f"{self._label(seat)} moves.", str(output))]

    def panels(self) -> list[Panel]:
        """What each seat sees, and the whole state."""
        game = self._game
        seen = [
            Panel(self._label(seat), "", game.hand(seat) or game.sees(seat), seat) for seat in range(len(game.moves))
        ]
        return [*seen, Panel("The whole state", "", str(game.state))]

    def ending(self) -> list[str]:
        """The returns."""
        gains = ", ".join(f"{self._label(seat)} {gain:g}" for seat, gain in enumerate(self._game.state.returns()))
        return [f"The game is over. Returns: {gains}.", f"{self._game.turns_played} moves"]


def _sentence(text: str) -> str:
    """With a capital and a full stop, where it has neither."""
    text = text[:1].upper() + text[1:]
    return text if text[-1:] in ".!?" or "\n" in text else f"{text}."
