"""Sentences about cards and events, for histories, stories, requests and pages."""

from collections.abc import Iterable
from typing import Final

from dubito.errors import number_word, pluralize
from dubito.game import GameEvent
from dubito.game.reader import Reader
from dubito.games.dubito.cards import NUMBERS
from dubito.games.dubito.engine import State
from dubito.games.dubito.events import (
    CardsPlayedEvent,
    DiscardEvent,
    DoubtResolvedEvent,
    GameStartEvent,
    OwnCardsEvent,
    PlayerWonEvent,
)

_NAMES: Final = ("joker", "ace", *map(str, range(2, 11)), "jack", "queen", "king")

_BY_SEAT: Final = Reader()


def card_name(card: int, plural: bool = False) -> str:
    return f"{_NAMES[card]}s" if plural else _NAMES[card]


def card_names(cards: Iterable[int]) -> list[str]:
    return [card_name(card) for card in cards]


def sort_cards(cards: Iterable[int]) -> list[int]:
    return sorted(cards, key=lambda card: card or NUMBERS[-1] + 1)


def describe_cards(cards: Iterable[int]) -> str:
    return " ".join(map(card_name, sort_cards(cards)))


def sentence(event: GameEvent, reader: Reader = _BY_SEAT) -> str:
    """Describe an event in the words used in stories, requests and pages."""
    match event:
        case GameStartEvent():
            dealt = zip(event.player_ids, event.initial_card_counts, strict=True)
            return "The cards are dealt: " + ", ".join(f"{reader.does(seat, 'holds')} {n}" for seat, n in dealt) + "."
        case CardsPlayedEvent():
            played = f"{pluralize(event.n_cards)} as {card_name(event.declared_number, plural=True)}"
            return f"{reader.starts(event.player_id, 'plays')} {played}."
        case DoubtResolvedEvent():
            shown, target = describe_cards(event.latest_cards), reader.name(event.target_id)
            shows = f"{target}, and you show" if reader.is_you(event.target_id) else f"{target}, who shows"
            verdict = "a bluff" if event.correct else "honest"
            text = f"{reader.starts(event.doubter_id, 'doubts')} {shows} {shown}: {verdict}."
            if event.jokers_discarded:
                leave = "leaves" if event.jokers_discarded == 1 else "leave"
                text += f" {pluralize(event.jokers_discarded, 'joker')} {leave} the game."
            return f"{text} {reader.starts(event.loser_id, 'picks')} up {pluralize(len(event.board_cards))}."
        case DiscardEvent():
            cards = f"{number_word(event.n_cards)} {card_name(event.card_number, plural=True)}"
            return f"{reader.starts(event.player_id, 'discards')} the {cards}."
        case PlayerWonEvent():
            kind = "a hard win" if event.position == 1 else "a soft win"
            return f"{reader.starts(event.player_id, 'is')} out of cards: place {event.position}, {kind}."
        case OwnCardsEvent(cards, lie):
            return f"really {describe_cards(cards)}: {'a bluff' if lie else 'honest'}"
    return ""


def ending(state: State, reader: Reader = _BY_SEAT) -> str:
    seats = [seat for seat, place in enumerate(state.places) if place is None]
    losers = " and ".join(map(reader.name, seats))
    if state.capped:
        return f"The game stops after {state.turns} turns, unfinished for {losers}."
    return f"The game is over; {losers} {reader.verb(seats[0], 'loses') if state.rules.duel else 'lose'}."
