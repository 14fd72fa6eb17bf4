"""Cups in words for people."""

from typing import Any

from games.cups.game import CallEvent, RolledEvent, State, TurnEvent

from dubito.game.reader import Reader
from dubito.game.words import Line, Panel, Teller, Words


def sentence(event: Any, reader: Reader) -> str:
    if isinstance(event, RolledEvent):
        return f"{reader.starts(event.only or 0, 'rolls')} {event.dice}."
    if isinstance(event, CallEvent):
        return f"{reader.starts(event.seat, 'calls')}: {event.dice}."
    return f"{reader.starts(event.seat, 'moves')}." if isinstance(event, TurnEvent) else "Two dice are under each cup."


class CupsTeller(Teller):
    def describe_hand(self, seat: int) -> str:
        return str(self.state.dice[seat])

    def describe_move(self, seat: int, output: str, events: Any) -> list[Line]:
        return [Line(sentence(events[0], self.reader), f"{output}: {self.state.dice[seat]}")]

    def panels(self) -> list[Panel]:
        seats = range(len(self.state.dice))
        return [Panel(self.reader.name(seat), "two dice", self.describe_hand(seat), seat) for seat in seats]

    def ending(self) -> list[str]:
        marks = self.state.ending().marks
        if not any(marks):
            return ["Nobody has called."]
        return [" ".join(f"{self.reader.starts(seat, 'wins')}." for seat, mark in enumerate(marks) if mark)]


class CupsWords(Words):
    TELLER = CupsTeller

    def sentence(self, event: Any, reader: Reader) -> str:
        return sentence(event, reader)

    def describe_view(self, state: State, seat: int, reader: Reader) -> list[str]:
        return [f"Turn {state.turns_played + 1}.", f"Your dice: {state.dice[seat]}.", "What do you do?"]
