"""Stacks in words for people."""

from typing import Any

from games.stacks.game import DrawnEvent, LaidEvent, State

from dubito.game.reader import Reader
from dubito.game.words import Line, Panel, Teller, Words


class StacksTeller(Teller):
    def describe_hand(self, seat: int) -> str:
        return " ".join(map(str, self.state.hands[seat]))

    def describe_move(self, seat: int, output: list[int], events: Any) -> list[Line]:
        return [Line(f"{self.reader.starts(seat, 'lays')} a card.", f"a {output[0]}")]

    def panels(self) -> list[Panel]:
        return [Panel(self.reader.starts(seat), f"{len(stack)} cards laid") for seat, stack in enumerate(self.state.stacks)]

    def ending(self) -> list[str]:
        marks = self.state.ending().marks
        return [" ".join(f"{self.reader.starts(seat, 'wins')}." for seat, mark in enumerate(marks) if mark)]


class StacksWords(Words):
    TELLER = StacksTeller

    def sentence(self, event: Any, reader: Reader) -> str:
        if isinstance(event, DrawnEvent):
            return f"{reader.starts(event.only or 0, 'draws')} a {event.card}."
        return f"{reader.starts(event.seat, 'lays')} a card." if isinstance(event, LaidEvent) else "Each seat is dealt three cards."
