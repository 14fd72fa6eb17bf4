"""Outsider in words for people; what is said is quoted, so that nobody can speak in another's name."""

from typing import Any

from games.outsider.facts import RULES
from games.outsider.game import SEATS, DealEvent, EndEvent, HintEvent, State

from dubito.game.speech import quoted
from dubito.game.words import ME, Label, Line, Panel, Teller, Words


def sentence(event: Any, label: Label) -> str:
    if isinstance(event, HintEvent):
        return f"{label(event.seat)} says: {quoted(event.said)}"
    if isinstance(event, EndEvent):
        votes = ", ".join(f"{label(seat)} for {label(vote)}" for seat, vote in enumerate(event.votes))
        return f"The votes: {votes}. The word is {event.word}, and {label(event.outsider)} is the outsider."
    if isinstance(event, DealEvent):
        return f"The topic is {event.topic}. All seats but one are told the word."
    return ""


class OutsiderTeller(Teller):
    def describe_hand(self, seat: int) -> str:
        return self.state.cards(seat, None) or "nothing: the outsider"

    def describe_move(self, seat: int, output: str, events: list[Any]) -> list[Line]:
        told, mover = [Line(sentence(event, self.label)) for event in events], self.label(seat)
        if self.state.votes:  # nobody is told for whom, until all have voted
            told.insert(0, Line(f"{mover} votes.", f"{mover} votes for {self.label(SEATS.index(output))}."))
        return told

    def panels(self) -> list[Panel]:
        hints = [*map(quoted, self.state.said), *[""] * self.state.seats][: self.state.seats]
        return [Panel(self.label(seat), hint, self.describe_hand(seat), seat) for seat, hint in enumerate(hints)]

    def ending(self) -> list[str]:
        won = self.state.ending().marks[self.state.outsider]
        return [f"{self.label(self.state.outsider)} {'wins, not found.' if won else 'is found: all others win.'}"]


class OutsiderWords(Words):
    BOTS = ("Listener", "Echo", "Mumbler")
    QUESTIONS = {"hint": "What do you say of the word?", "vote": "Who is the outsider?"}
    SECOND_PERSON = {
        f"{ME} says": "You say",
        f"{ME} votes": "You vote",
        f"{ME} is found": "You are found",
        f"{ME} wins": "You win",
        f"{ME} is": "you are",
        ME: "you",
    }

    def teller(self, state: State, label: Label) -> Teller:
        return OutsiderTeller(self, state, label)

    def rules(self, rules: Any, seats: int) -> list[str]:
        return [RULES]

    def sentence(self, event: Any, label: Label) -> str:
        return sentence(event, label)

    def describe_view(self, state: State, seat: int, label: Label) -> list[str]:
        view, word = state.view(), state.cards(seat, None)
        secret = f"The word is {word}." if word else "You are the outsider: you do not know the word."
        named = ", ".join(f"{vote} is {label(SEATS.index(vote))}" for vote in view.legal() or [])
        question = f"{self.QUESTIONS[view.node]} ({named})" if named else self.QUESTIONS[view.node]
        return [f"The topic is {view.topic}: {', '.join(view.words)}.", secret, question]
