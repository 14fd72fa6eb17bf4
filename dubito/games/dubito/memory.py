"""The state that a seat can derive from its events, updated event by event."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Self

from dubito.games.dubito.game_data import CardsPlayedEvent, DoubtResolvedEvent, Event
from dubito.games.dubito.record import card_name, cards_in_words, in_order, sentence
from dubito.games.dubito.rules import is_honest
from dubito.games.dubito.witness import Witness


@dataclass(frozen=True, slots=True)
class OwnPlay:
    """One of the seat's own plays: the number it claimed, and the cards it really was."""

    number: int
    cards: tuple[int, ...]


class Memory:
    """The public state, what is certain to the seat, and the history in words."""

    def __init__(self, seat: int) -> None:
        self.witness = Witness(seat)
        self.history: list[str] = []  # what the table saw, an event a line, the seat's own cards beside its own plays
        self.own_moves: list[int] = []  # places in it of the seat's own moves
        self.own_plays: list[dict[str, Any]] = []  # in words

    @classmethod
    def of(cls, seat: int, events: Iterable[Event], own_plays: Iterable[OwnPlay]) -> Self:
        """Of all these events, GameStartEvent first, and of the seat's own plays among them, in their order.

        Raises LookupError for events that no game can produce: of an unknown player, or a play too many.
        """
        memory, own = cls(seat), iter(own_plays)
        for event in events:
            play = next(own, None) if isinstance(event, CardsPlayedEvent) and event.player_id == seat else None
            memory.watch(event, play)
        return memory

    def watch(self, event: Event, own_play: OwnPlay | None) -> None:
        """The table saw this, which was the seat's own play if one is given."""
        seat, line = self.witness.seat, _line(event)
        if isinstance(event, CardsPlayedEvent) and event.player_id == seat:
            if own_play is None:
                raise LookupError(f"seat {seat} played more often than its own plays say")
            line += _own_cards(own_play)
            self.own_plays.append(_in_words(own_play))
        self.witness.watch(event, own_play.cards if own_play else ())
        if _moved(event) == seat:
            self.own_moves.append(len(self.history))
        self.history.append(line)


def _moved(event: Event) -> int | None:
    """Whose move it tells of, None if it only follows from one."""
    if isinstance(event, CardsPlayedEvent):
        return event.player_id
    return event.doubter_id if isinstance(event, DoubtResolvedEvent) else None


@lru_cache(maxsize=4096)
def _line(event: Event) -> str:
    line = sentence(event)
    if isinstance(event, DoubtResolvedEvent) and event.board_cards:
        line += f" They are {cards_in_words(event.board_cards)}."
    return line


def _own_cards(play: OwnPlay) -> str:
    kind = "honest" if is_honest(play.cards, play.number) else "a bluff"
    return f" Yours: {cards_in_words(play.cards)}, {kind}."


def _in_words(play: OwnPlay) -> dict[str, Any]:
    return {
        "number": card_name(play.number),
        "cards": names(in_order(play.cards)),
        "honest": is_honest(play.cards, play.number),
    }


def names(cards: Iterable[int]) -> list[str]:
    """Cards as words."""
    return [card_name(card) for card in cards]
