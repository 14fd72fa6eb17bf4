"""Cups in words for people."""

from typing import Any

from games.cups.game import CallEvent, RolledEvent, State, TurnEvent

from dubito.game.words import ME, Label, Line, Panel, Teller, Words


def sentence(event: Any, label: Label) -> str:
    if isinstance(event, RolledEvent):
        return f"{label(event.only or 0)} rolls {event.dice}."
    if isinstance(event, CallEvent):
        return f"{label(event.seat)} calls: {event.dice}."
    return f"{label(event.seat)} moves." if isinstance(event, TurnEvent) else "Two dice are under each cup."


class CupsTeller(Teller):
    def describe_hand(self, seat: int) -> str:
        return str(self.state.dice[seat])

    def describe_move(self, seat: int, output: str, events: Any) -> list[Line]:
        return [Line(sentence(events[0], self.label), f"{output}: {self.state.dice[seat]}")]

    def panels(self) -> list[Panel]:
        seats = range(len(self.state.dice))
        return [Panel(self.label(seat), "two dice", self.describe_hand(seat), seat) for seat in seats]

    def ending(self) -> list[str]:
        marks = self.state.ending().marks
        if not any(marks):
            return ["Nobody has called."]
        return [f"{' and '.join(self.label(seat) for seat, mark in enumerate(marks) if mark)} wins."]


class CupsWords(Words):
    SECOND_PERSON = {f"{ME} moves": "You move", f"{ME} rolls": "You roll", f"{ME} calls": "You call", ME: "you"}

    def teller(self, state: State, label: Label) -> Teller:
        return CupsTeller(self, state, label)

    def sentence(self, event: Any, label: Label) -> str:
        return sentence(event, label)

    def describe_view(self, state: State, seat: int, label: Label) -> list[str]:
        return [f"Turn {state.turns_played + 1}.", f"Your dice: {state.dice[seat]}.", "What do you do?"]
