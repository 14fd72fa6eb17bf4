"""Stacks in words for people."""

from typing import Any

from games.stacks.game import DrawnEvent, LaidEvent, State

from dubito.game.words import ME, Label, Line, Panel, Teller, Words


class StacksTeller(Teller):
    def describe_hand(self, seat: int) -> str:
        return " ".join(map(str, self.state.hands[seat]))

    def describe_move(self, seat: int, output: list[int], events: Any) -> list[Line]:
        return [Line(f"{self.label(seat)} lays a card.", f"a {output[0]}")]

    def panels(self) -> list[Panel]:
        return [Panel(self.label(seat), f"{len(stack)} cards laid") for seat, stack in enumerate(self.state.stacks)]

    def ending(self) -> list[str]:
        marks = self.state.ending().marks
        return [f"{' and '.join(self.label(seat) for seat, mark in enumerate(marks) if mark)} wins."]


class StacksWords(Words):
    SECOND_PERSON = {f"{ME} lays": "You lay", f"{ME} draws": "You draw", ME: "you"}

    def teller(self, state: State, label: Label) -> Teller:
        return StacksTeller(self, state, label)

    def sentence(self, event: Any, label: Label) -> str:
        if isinstance(event, DrawnEvent):
            return f"{label(event.only or 0)} draws a {event.card}."
        return f"{label(event.seat)} lays a card." if isinstance(event, LaidEvent) else "Each seat is dealt three cards."
