"""Outsider in words for people. Messages are quoted, so that a player cannot imitate another one."""

from collections.abc import Sequence
from typing import Any

from dubito.game.reader import Reader
from dubito.game.speech import quoted
from dubito.game.words import Line, Panel, Teller, Words
from games.outsider.facts import RULES
from games.outsider.game import SEATS, DealEvent, EndEvent, HintEvent, State


def sentence(event: Any, reader: Reader) -> str:
    if isinstance(event, HintEvent):
        return f"{reader.starts(event.seat, 'says')}: {quoted(event.said)}"
    if isinstance(event, EndEvent):
        votes = ", ".join(f"{reader.name(seat)} for {reader.name(vote)}" for seat, vote in enumerate(event.votes))
        return f"The votes: {votes}. The word is {event.word}, and {reader.does(event.outsider, 'is')} the outsider."
    if isinstance(event, DealEvent):
        return f"The topic is {event.topic}. All seats but one know the word."
    return ""


class OutsiderTeller(Teller):
    def describe_hand(self, seat: int) -> str:
        return self.state.cards(seat, None) or "nothing: the outsider"

    def describe_move(self, seat: int, output: object, events: Sequence[Any]) -> list[Line]:
        lines = [Line(sentence(event, self.reader)) for event in events]
        if self.state.votes:  # the vote stays hidden until all have voted
            votes = self.reader.starts(seat, "votes")
            lines.insert(0, Line(f"{votes}.", f"{votes} for {self.reader.name(SEATS.index(output))}."))
        return lines

    def panels(self) -> list[Panel]:
        hints = [*map(quoted, self.state.said), *[""] * self.state.seats][: self.state.seats]
        return [Panel(self.reader.name(seat), hint, self.describe_hand(seat), seat) for seat, hint in enumerate(hints)]

    def ending(self) -> list[str]:
        outsider, reader = self.state.outsider, self.reader
        if self.state.ending().marks[outsider]:
            return [f"{reader.starts(outsider, 'wins')} undetected."]
        return [f"{reader.starts(outsider, 'is')} detected: all others win."]


class OutsiderWords(Words):
    BOTS = ("Listener", "Echo", "Mumbler")
    QUESTIONS = {"hint": "What do you say about the word?", "vote": "Which seat is the outsider?"}

    def teller(self, state: State, reader: Reader) -> Teller:
        return OutsiderTeller(self, state, reader)

    def rules(self, rules: Any, seats: int) -> list[str]:
        return [RULES]

    def sentence(self, event: Any, reader: Reader) -> str:
        return sentence(event, reader)

    def describe_view(self, state: State, seat: int, reader: Reader) -> list[str]:
        view, word = state.view(), state.cards(seat, None)
        secret = f"The word is {word}." if word else "You are the outsider: you do not know the word."
        named = ", ".join(f"{vote} is {reader.name(SEATS.index(vote))}" for vote in view.legal() or [])
        question = f"{self.QUESTIONS[view.node]} ({named})" if named else self.QUESTIONS[view.node]
        return [f"The topic is {view.topic}: {', '.join(view.words)}.", secret, question]
