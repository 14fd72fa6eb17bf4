"""What one seat can derive from the events it observed: all counters (R20-R23), and which cards others must hold.

Every doubt reveals the whole board, so only the cards played in this round are hidden. A card is only listed as held if
this is certain, not if it may be on the board.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, Self

from dubito.games.dubito.cards import COPIES, JOKER, NUMBERS, PlayerData
from dubito.games.dubito.engine import is_honest
from dubito.games.dubito.events import (
    CardsPlayedEvent,
    DiscardEvent,
    DoubtResolvedEvent,
    Event,
    GameStartEvent,
    PlayerWonEvent,
)
from dubito.games.dubito.sentences import card_name, describe_cards, sentence, sort_cards

_VALUES: Final = NUMBERS[-1] + 1


class Witness:
    """The public state of a game after some events, and what one seat knows for certain."""

    def __init__(self, seat: int, copies: int = COPIES) -> None:
        self.seat, self.copies = seat, copies
        self.players: dict[int, PlayerData] = {}  # by seat, winners included
        self.places: dict[int, int] = {}  # winners' places, by seat
        self.board_cards = 0
        self.streak = 0
        self.last_player: int | None = None
        self.sets_gone: list[int] = []  # numbers in the order in which they left the game
        self.jokers_gone = 0
        self.down: dict[int, int] = {}  # cards played in this round, by seat
        self._certain: dict[int, list[int]] = {}  # by seat, at least this many cards of each value when the round began
        self._own_down = [0] * _VALUES  # the seat's own cards on the board, by value

    def active(self) -> list[int]:
        n = len(self.players)
        around = (seat % n for seat in range(self.seat, self.seat + n))
        return [seat for seat in around if seat not in self.places]

    def known_cards(self, seat: int) -> list[int]:
        down, held = self.down.get(seat, 0), self._certain[seat]
        return [n - down if n > down else 0 for n in held] if down else held

    def hand_at_round_start(self, seat: int) -> list[int]:
        return self._certain[seat]

    def count_elsewhere(self, value: int) -> int:
        """Count the cards of a value that cannot be in other players' plays of this round.

        These are the seat's own cards on the board, cards certainly in other hands, and cards out of the game. The
        caller adds the seat's hand.
        """
        gone = self.jokers_gone if value == JOKER else self.copies * (value in self.sets_gone)
        in_hands = 0
        for seat, held in self._certain.items():
            if held[value] and seat not in self.places:
                in_hands += max(0, held[value] - self.down.get(seat, 0))
        return gone + self._own_down[value] + in_hands

    def watch(self, event: Event, own_cards: Sequence[int] = ()) -> None:
        """Process the next event; the first is GameStartEvent.

        If the seat played, `own_cards` are its cards. Raises LookupError for an event with an unknown player.
        """
        match event:
            case CardsPlayedEvent():
                self._watch_play(event, own_cards)
            case DoubtResolvedEvent():
                self._watch_doubt(event)
            case DiscardEvent(player_id=seat, card_number=number):
                self.players[seat].n_cards -= self.copies
                self._certain[seat][number] = 0
                self.sets_gone.append(number)
            case PlayerWonEvent(player_id=seat, position=place):
                self.places[seat] = place
            case GameStartEvent():
                for seat, n in zip(event.player_ids, event.initial_card_counts, strict=True):
                    self.players[seat] = PlayerData(seat, n, 0, 0, 0, 0, 0)
                    self._certain[seat] = [0] * _VALUES

    def _watch_play(self, event: CardsPlayedEvent, own_cards: Sequence[int]) -> None:
        seat, n = event.player_id, event.n_cards
        player = self.players[seat]
        player.turns += 1
        if self.board_cards:
            player.not_first_turns += 1
        player.n_cards -= n
        self.board_cards += n
        self.streak += 1
        self.last_player = seat
        self.down[seat] = self.down.get(seat, 0) + n
        if seat == self.seat:
            for card in own_cards:
                self._own_down[card] += 1

    def _watch_doubt(self, event: DoubtResolvedEvent) -> None:
        doubter, target = self.players[event.doubter_id], self.players[event.target_id]
        doubter.turns += 1
        doubter.not_first_turns += 1
        doubter.doubts += 1
        if event.correct:
            target.dishonest_times += 1
        else:
            target.honest_times += 1
        self.jokers_gone += event.jokers_discarded
        self._reveal(event)
        self.players[event.loser_id].n_cards += len(event.board_cards)
        if event.loser_id != self.seat:
            held = self._certain[event.loser_id]
            for card in event.board_cards:
                held[card] += 1
        self.board_cards = self.streak = 0
        self.last_player = None
        self.down.clear()
        self._own_down = [0] * _VALUES

    def _reveal(self, event: DoubtResolvedEvent) -> None:
        """Remove cards that a doubt shows to have been played from what is known.

        The last play's cards are the target's. A seat can have played at most as many of the older cards as were on the
        board (apart from this seat's own), and at most as many as it played in total.
        """
        latest = [0] * _VALUES
        for card in event.latest_cards:
            latest[card] += 1
        older = [-n for n in latest]
        older[JOKER] += event.jokers_discarded
        for card in event.board_cards:
            older[card] += 1
        mine = [n - (latest[card] if event.target_id == self.seat else 0) for card, n in enumerate(self._own_down)]
        for seat, n in self.down.items():
            if seat == self.seat:
                continue
            last = event.target_id == seat
            down = n - len(event.latest_cards) if last else n
            held = self._certain[seat]
            for card in range(_VALUES):
                if held[card]:
                    shown = min(down, older[card] - mine[card]) + (latest[card] if last else 0)
                    held[card] = max(0, held[card] - shown)


@dataclass(frozen=True, slots=True)
class OwnPlay:
    """One of the seat's own plays: the claimed number and the real cards."""

    number: int
    cards: tuple[int, ...]


class Memory:
    """The public state, what the seat knows for certain, and the history in words."""

    def __init__(self, seat: int, copies: int = COPIES) -> None:
        self.witness = Witness(seat, copies)
        self.history: list[str] = []  # one line per event, with the cards of the seat's own plays
        self.own_moves: list[int] = []  # indices of the seat's own moves in the history
        self.own_plays: list[dict[str, Any]] = []  # in words

    @classmethod
    def of(cls, seat: int, events: Iterable[Event], own_plays: Iterable[OwnPlay], copies: int = COPIES) -> Self:
        """Build the memory of these events and the seat's own plays.

        Raises LookupError for an unknown player, or if `own_plays` is too short.
        """
        memory, own = cls(seat, copies), iter(own_plays)
        for event in events:
            play = next(own, None) if isinstance(event, CardsPlayedEvent) and event.player_id == seat else None
            memory.watch(event, play)
        return memory

    def watch(self, event: Event, own_play: OwnPlay | None) -> None:
        """Process an event. `play` is given if the event is the seat's own play."""
        seat, line = self.witness.seat, _line(event)
        if isinstance(event, CardsPlayedEvent) and event.player_id == seat:
            if own_play is None:
                raise LookupError(f"seat {seat} played more often than own_plays lists")
            number, cards, honest = own_play.number, own_play.cards, is_honest(own_play.cards, own_play.number)
            line += f" Yours: {describe_cards(cards)}, {'honest' if honest else 'a bluff'}."
            self.own_plays.append({"number": card_name(number), "cards": names(sort_cards(cards)), "honest": honest})
        self.witness.watch(event, own_play.cards if own_play else ())
        if _acting_seat(event) == seat:
            self.own_moves.append(len(self.history))
        self.history.append(line)


def _acting_seat(event: Event) -> int | None:
    if isinstance(event, CardsPlayedEvent):
        return event.player_id
    return event.doubter_id if isinstance(event, DoubtResolvedEvent) else None


@lru_cache(maxsize=4096)
def _line(event: Event) -> str:
    line = sentence(event)
    if isinstance(event, DoubtResolvedEvent) and event.board_cards:
        line = f"{line.removesuffix('.')}: {describe_cards(event.board_cards)}."
    return line


def names(cards: Iterable[int]) -> list[str]:
    return [card_name(card) for card in cards]
