"""Draw and defuse in words for people: what everybody observes; who sees everything reads what was drawn and seen."""

from collections.abc import Iterable, Sequence
from typing import Any, Final

from dubito.game import GameEvent
from dubito.game.words import ME, Label, Line, Marks, Panel
from dubito.games.defuse.cards import HELD, in_words
from dubito.games.defuse.events import (
    DealEvent,
    DrawEvent,
    EndEvent,
    HideEvent,
    LookEvent,
    PlaceEvent,
    PlayEvent,
    TakeEvent,
)
from dubito.games.defuse.rule_text import OBJECTIVE, rule_sentences
from dubito.games.defuse.state import Game

_TO_ME: Final = {
    f": {ME} wins": ": you win",
    f" of {ME};": " of yours;",
    f"{ME} has": "You have",
    **{f"{ME} {verb}s": f"You {verb}" for verb in ("begin", "play", "see", "draw", "put", "win")},
    "You have no defuse card and blows": "You have no defuse card and blow",
    ME: "you",
}


QUESTIONS: Final = {"turn": "What now?", "place": "Where to hide the bomb?"}


def rules(rules: Any, seats: int) -> list[str]:
    """The rules in force."""
    return [OBJECTIVE, *rule_sentences()]


def in_short(rules: Any) -> str:
    """What may be varied."""
    return "There is nothing to vary."


def to_me(text: str) -> str:
    """The sentence with the person spoken to."""
    for words, said in _TO_ME.items():
        text = text.replace(words, said)
    return text


def sentence(event: GameEvent, label: Label) -> str:
    """What observes whoever observes the event."""
    match event:
        case DealEvent():
            return f"{event.hands[0]} cards each; {event.pile} in the pile, with the bomb. {label(0)} begins."
        case PlayEvent():
            then = ": the pile is shuffled" if event.card == "shuffle" else ""
            return f"{label(event.seat)} plays a {event.card} card{then}."
        case LookEvent():
            return f"From the top there lie: {', '.join(event.cards)}."
        case DrawEvent():
            bomb = ": the bomb!" if event.bomb else "."
            return f"{label(event.seat)} draws a card from the {event.end} of the pile{bomb}"
        case TakeEvent():
            return f"It is a {event.card} card."
        case PlaceEvent():
            return f"{label(event.seat)} puts the bomb back into the pile."
        case HideEvent():
            return f"The bomb lies at place {event.place} of the pile; 0 is the top."
        case EndEvent():
            return f"{label(event.loser)} has no defuse card and blows up: {label(1 - event.loser)} wins."
    return ""


class Teller:
    """Tells one game with what nobody at its table knows."""

    def __init__(self, game: Game, label: Label) -> None:
        self._game, self._label = game, label
        self._events: Sequence[GameEvent] = ()

    def holds(self, seat: int) -> str:
        """The cards in a hand."""
        return in_words(_held(self._game.hands[seat]))

    def moved(self, seat: int, output: object, events: Sequence[GameEvent]) -> list[Line]:
        """A line an event; what one seat alone observes is truth beside it."""
        self._events = events
        lines: list[Line] = []
        for event in events:
            told = sentence(event, self._label)
            if event.only is None:
                lines.append(Line(told))
            else:
                lines[-1] = Line(lines[-1].said, told)
        return lines

    def marks(self) -> Marks:
        """Whether the bomb was drawn, or somebody looked into the pile."""
        drawn = any(isinstance(event, DrawEvent) and event.bomb for event in self._events)
        looked = any(isinstance(event, LookEvent) for event in self._events)
        return Marks((*(["bomb"] if drawn else []), *(["look"] if looked else [])))

    def panels(self) -> list[Panel]:
        """The hands, the pile, what was played."""
        game = self._game
        hands = [
            Panel(self._label(seat), count(sum(game.hands[seat].values())), self.holds(seat), seat) for seat in (0, 1)
        ]
        pile = Panel("The pile", f"{count(len(game.pile))}.", f"from the top: {' '.join(reversed(game.pile))}")
        return [*hands, pile, Panel("Played, the last one last", " ".join(game.discard) or "Nothing.")]

    def ending(self) -> list[str]:
        """Who won, and how long it took."""
        game, label = self._game, self._label
        assert game.winner is not None
        loser = 1 - game.winner
        by_mistake = f" by a mistake of {label(loser)};" if game.counts[loser].forfeits else ":"
        turns = game.turns_played + 1
        return [f"The game is over{by_mistake} {label(game.winner)} wins.", f"{turns} turn{'s' * (turns != 1)}"]


def count(n: int) -> str:
    """1 card, 2 cards."""
    return f"{n} card{'s' * (n != 1)}"


def _held(hand: dict[str, int]) -> Iterable[str]:
    return (card for card in HELD for _ in range(hand[card]))
