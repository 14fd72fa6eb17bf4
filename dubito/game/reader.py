"""Readers of sentences about a game. A player who reads is addressed as "you"."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final

from dubito.errors import one_line

YOU: Final = "you"
A_PERSON, THE_PERSON = "a person", "the person"  # how others see the person at the table: as a name, and in the story
_IRREGULAR: Final = {"is": "are", "was": "were", "has": "have", "does": "do", "goes": "go"}  # verbs with "you"


def seat_label(seat: int) -> str:
    """Return the label used in stories, because names may change but seats do not."""
    return f"seat {seat}"


@dataclass(frozen=True, eq=False, slots=True)
class Reader:
    """Names the seats in sentences for one reader: "Anna plays" for most, "you play" for Anna.

    `label` names the other seats, and `called` the seat `me`, which is addressed if that is "you".
    """

    label: Callable[[int], str] = seat_label
    me: int | None = None
    called: str = YOU

    def is_you(self, seat: int) -> bool:
        return seat == self.me and self.called == YOU

    def name(self, seat: int) -> str:
        """Return the seat's name: "Anna" or "you"."""
        return self.called if seat == self.me else self.label(seat)

    def names(self, seats: int) -> list[str]:
        return [*map(self.name, range(seats))]

    def verb(self, seat: int, verb: str) -> str:
        """Return a verb in the third person so that it agrees with the seat's name: "plays" or "play"."""
        return second_person(verb) if self.is_you(seat) else verb

    def does(self, seat: int, verb: str) -> str:
        """Return the seat's name and the verb within a sentence: "Anna plays" or "you play"."""
        return f"{self.name(seat)} {self.verb(seat, verb)}"

    def starts(self, seat: int, verb: str = "") -> str:
        """Return the seat's name and the verb, if any, at the start of a sentence: "Anna plays" or "You play"."""
        text = self.does(seat, verb) if verb else self.name(seat)
        return f"{text[:1].upper()}{text[1:]}" if seat == self.me else text


def second_person(verb: str) -> str:
    """Return the form of a verb in the third person that follows "you"."""
    if verb in _IRREGULAR:
        return _IRREGULAR[verb]
    if verb.endswith("ies") and len(verb) > len("dies"):
        return f"{verb[:-3]}y"
    return verb[:-2] if verb.endswith(("sses", "shes", "ches", "xes", "zzes")) else verb.removesuffix("s")


def table_reader(players: Sequence[str], me: int | None = None, called: str = YOU) -> Reader:
    """Return a reader who sees the players' names.

    Adds the seat if a name is not unique or could mean the person at the seat `me`.
    """

    def label(seat: int) -> str:
        name = one_line(players[seat])
        mistaken = me is not None and name.casefold() in (YOU, A_PERSON, THE_PERSON)
        return f"{name} {seat}" if mistaken or players.count(players[seat]) > 1 else name

    return Reader(cache(label), me, called)  # cached because a story names its seats hundreds of times


def name_seats(players: Sequence[str], me: int | None, called: str = "You") -> list[str]:
    """Return the names of all seats, with `called` as the person's name."""
    return table_reader(players, me, called).names(len(players))
