"""Outsider: all seats but one know a word. Each says a sentence about it, and votes for a seat that it suspects."""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Any

from dubito.errors import IllegalOutput
from dubito.files import NoRules
from dubito.game import (
    Choice,
    Ending,
    Facts,
    Game,
    GameEvent,
    HousePolicy,
    Measure,
    Node,
    Player,
    Results,
    Text,
    View,
)

if TYPE_CHECKING:
    from games.outsider.words import OutsiderWords

TOPICS = {
    "animals": ("tiger", "penguin", "snail", "horse", "bat", "shark"),
    "food": ("pizza", "soup", "ice cream", "bread", "cheese", "apple"),
    "places": ("beach", "library", "airport", "castle", "forest", "cinema"),
}
SEATS = tuple(f"seat {seat}" for seat in range(6))
HINT = Text(most=120)


@dataclass(frozen=True, slots=True)
class DealEvent(GameEvent):
    topic: str
    seats: int


@dataclass(frozen=True, slots=True)
class WordEvent(GameEvent):
    """The word that a seat knows, or None for the outsider. Bots do not need this event, because they hold the word."""

    silent = True

    word: str | None
    only: int | None


@dataclass(frozen=True, slots=True)
class HintEvent(GameEvent):
    seat: int
    said: str


@dataclass(frozen=True, slots=True)
class EndEvent(GameEvent):
    """The votes by seat, the outsider and the word."""

    votes: tuple[int, ...]
    outsider: int
    word: str


class OutsiderView(View):
    """What the seat to move sees, apart from its word."""

    def __init__(self, state: "State") -> None:
        self.node = "hint" if len(state.said) < state.seats else "vote"
        self.topic, self.words = state.topic, TOPICS[state.topic]
        self.said = tuple(state.said)  # by seat
        self.others = [SEATS[seat] for seat in range(state.seats) if seat != state.seat]

    def legal(self) -> list[str] | None:
        """Return the seats that can be voted for. Sentences cannot be listed."""
        return self.others if self.node == "vote" else None

    def why_illegal(self, output: object) -> str | None:
        if self.node == "vote":
            return super().why_illegal(output)
        if why := HINT.why_not(output):
            return why
        named = next((word for word in self.words if re.search(rf"\b{word}s?\b", str(output).casefold())), None)
        return f"a sentence must not contain a word of the topic: {named}" if named else None


class State:
    """A game between two moves. Each seat says a sentence, then votes. All votes are shown together."""

    def __init__(self, seats: int, chance: Random) -> None:
        self.topic = chance.choice([*TOPICS])
        self.word, self.outsider = chance.choice(TOPICS[self.topic]), chance.randrange(seats)
        self.seats, self.turns_played = seats, 0
        words = [WordEvent(self.cards(seat), only=seat) for seat in range(seats)]
        self.start = [DealEvent(self.topic, seats), *words]
        self.said: list[str] = []
        self.votes: list[int] = []

    @property
    def seat(self) -> int:
        return self.turns_played % self.seats

    @property
    def over(self) -> bool:
        return len(self.votes) == self.seats

    def view(self) -> OutsiderView:
        return OutsiderView(self)

    def cards(self, seat: int, streams: object = None) -> str | None:
        """Return the seat's word, or None for the outsider."""
        return None if seat == self.outsider else self.word

    def apply(self, output: Any, announce: int = 1) -> list[GameEvent]:
        if self.over:
            raise IllegalOutput("the game is over")
        if why := (view := self.view()).why_illegal(output):
            raise IllegalOutput(why)
        seat, self.turns_played = self.seat, self.turns_played + 1
        if view.node == "hint":
            self.said.append(output)
            return [HintEvent(seat, output)]
        self.votes.append(SEATS.index(output))
        return [EndEvent(tuple(self.votes), self.outsider, self.word)] if self.over else []

    def ending(self) -> Ending:
        (most, votes), (_, fewer) = [*Counter(self.votes).most_common(2), (-1, 0)][:2]
        found = most == self.outsider and votes > fewer
        marks = [int((seat == self.outsider) != found) for seat in range(self.seats)]
        counts: list[tuple[int, ...]] = [
            (self.votes.count(seat), int(seat == self.outsider)) for seat in range(self.seats)
        ]
        return Ending(False, (self.turns_played,), marks, counts)


class OutsiderBot(Player):
    """The base class of bots. `self.cards` is the word, or None for the outsider."""

    cards: str | None

    def hint(self, view: OutsiderView) -> str:
        raise NotImplementedError

    def vote(self, view: OutsiderView) -> str:
        raise NotImplementedError


class OutsiderGame(Game[NoRules, State, GameEvent]):
    name = "outsider"
    summary = "Outsider: each says a sentence about a word that one of you does not know, then all vote"
    seats = (3, 6)
    base = OutsiderBot
    fallback = "Mumbler"
    events = (DealEvent, WordEvent, HintEvent, EndEvent)
    nodes = (Node("hint", "hint", HINT), Node("vote", "vote", Choice(SEATS)))
    results = Results(
        buckets=("wins", "losses"),
        endings=("win", "loss"),
        bucket=lambda mark, capped: 1 - mark,
        measures=(Measure("won", "won", "Wins", (1, 0)),),
        equal_share=lambda seats: {},
        seat_counts=("votes_against", "outsider"),
    )

    def deal(self, rules: NoRules, seats: int, chance: Random) -> State:
        return State(seats, chance)

    def deal_to_json(self, state: State) -> dict[str, Any]:
        return {"topic": state.topic, "word": state.word, "outsider": state.outsider}

    @property
    def words(self) -> "OutsiderWords":
        from games.outsider.words import OutsiderWords

        return OutsiderWords(self)

    @property
    def facts(self) -> Facts:
        from games.outsider.facts import OutsiderFacts

        return OutsiderFacts()

    @property
    def fakes(self) -> Mapping[str, HousePolicy]:
        from games.outsider.fake_models import MODELS

        return MODELS


GAME = OutsiderGame()
