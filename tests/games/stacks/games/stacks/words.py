"""Stacks in words for people."""

from typing import Any

from games.stacks.game import DrawnEvent, LaidEvent, State

from dubito.game.words import ME, Label, Line, Panel, Words


class Teller:
    """Narrates one game to people who see every card."""

    def __init__(self, state: State, label: Label) -> None:
        self._state, self._label = state, label

    def describe_hand(self, seat: int) -> str:
        return " ".join(map(str, self._state.hands[seat]))

    def describe_move(self, seat: int, output: list[int], events: Any) -> list[Line]:
        return [Line(f"{self._label(seat)} lays a card.", f"a {output[0]}")]

    def panels(self) -> list[Panel]:
        return [Panel(self._label(seat), f"{len(stack)} cards laid") for seat, stack in enumerate(self._state.stacks)]

    def ending(self) -> list[str]:
        marks = self._state.ending().marks
        return [f"{' and '.join(self._label(seat) for seat, mark in enumerate(marks) if mark)} wins."]


class StacksWords(Words):
    SECOND_PERSON = {f"{ME} lays": "You lay", f"{ME} draws": "You draw", ME: "you"}

    def teller(self, state: State, label: Label) -> Teller:
        return Teller(state, label)

    def sentence(self, event: Any, label: Label) -> str:
        if isinstance(event, DrawnEvent):
            return f"{label(event.only or 0)} draws a {event.card}."
        return f"{label(event.seat)} lays a card." if isinstance(event, LaidEvent) else "Each seat is dealt three cards."
