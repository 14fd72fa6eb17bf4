"""What one Dubito seat knows: all counters (R20-R23), its own cards, and which cards others must hold.

Every doubt reveals the whole board, so only the cards played in this round are hidden. A card is only listed as held if
this is certain, not if it may be on the board.
"""

from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final

from dubito.game.events import AnswerEvent, GameEvent
from dubito.games.dubito.cards import JOKER, NUMBERS, PlayerData, TurnData
from dubito.games.dubito.engine import Rules
from dubito.games.dubito.events import (
    CardList,
    CardsPlayedEvent,
    DiscardEvent,
    DoubtResolvedEvent,
    GameStartEvent,
    HandDealtEvent,
    OwnCardsEvent,
    PlayerWonEvent,
)
from dubito.games.dubito.rules import DubitoRules
from dubito.games.dubito.sentences import card_name, card_names, describe_cards, sentence, sort_cards

_VALUES: Final = NUMBERS[-1] + 1


class Knowledge:
    """A fold over the log of a seat (see `dubito.game.log`)."""

    def __init__(self, rules: Rules | DubitoRules, seat: int) -> None:
        self.seat, self.rules = seat, rules.engine_rules
        self.hand = Counter[int]()
        self.players: dict[int, PlayerData] = {}  # by seat, winners included
        self.places: dict[int, int] = {}  # winners' places, by seat
        self.board_cards = 0
        self.number = 0  # of the round; 0 on an empty board
        self.last_play = 0  # cards of the last play
        self.streak = 0
        self.last_player: int | None = None
        self.sets_gone: list[int] = []  # numbers in the order in which they left the game
        self.jokers_gone = 0
        self.down: dict[int, int] = {}  # cards played in this round, by seat
        self.answers: dict[str, bool] = {}  # of this turn
        self.history: list[str] = []  # one line per event that everyone sees, with the cards of the seat's own plays
        self.own_moves: list[int] = []  # indices of the seat's own moves in the history
        self.own_plays: list[dict[str, Any]] = []  # in words
        self.certain: dict[int, list[int]] = {}  # by seat, at least this many cards of each value when the round began
        self._own_down = [0] * _VALUES  # the seat's own cards on the board, by value

    def turn(self) -> TurnData:
        """Return the seat's turn data (R20-R22)."""
        active = self.active()
        me, before, after = (self.players[seat] for seat in (self.seat, active[-1], active[1 % len(active)]))
        return TurnData(
            self.board_cards,
            CardList(number for number in NUMBERS[: self.rules.ranks] if number not in self.sets_gone),
            self.number,
            self.last_play,
            self.streak,
            len(active),
            me.n_cards,
            me,
            before,
            after,
            self.number > 0 and self.last_player not in self.places,
            self.last_player,
        )

    def active(self) -> list[int]:
        n = len(self.players)
        around = (seat % n for seat in range(self.seat, self.seat + n))
        return [seat for seat in around if seat not in self.places]

    def known_cards(self, seat: int) -> list[int]:
        down, held = self.down.get(seat, 0), self.certain[seat]
        return [n - down if n > down else 0 for n in held] if down else held

    def count_elsewhere(self, value: int) -> int:
        """Count the cards of a value that cannot be in other players' plays of this round.

        These are the seat's own cards on the board, cards certainly in other hands, and cards out of the game. The
        caller adds the seat's hand.
        """
        gone = self.jokers_gone if value == JOKER else self.rules.copies * (value in self.sets_gone)
        in_hands = 0
        for seat, held in self.certain.items():
            if held[value] and seat not in self.places:
                in_hands += max(0, held[value] - self.down.get(seat, 0))
        return gone + self._own_down[value] + in_hands

    def see(self, event: GameEvent) -> None:
        self._tell(event)
        match event:
            case CardsPlayedEvent(player_id=seat, n_cards=n):
                player = self.players[seat]
                player.turns += 1
                if self.board_cards:
                    player.not_first_turns += 1
                player.n_cards -= n
                self.board_cards += n
                self.number, self.last_play, self.last_player = event.declared_number, n, seat
                self.streak += 1
                self.down[seat] = self.down.get(seat, 0) + n
                self.answers = {}
            case OwnCardsEvent(cards, lie):
                self._see_own_cards(cards, lie)
            case DoubtResolvedEvent():
                self._see_doubt(event)
            case DiscardEvent(player_id=seat, card_number=number):
                self.players[seat].n_cards -= self.rules.copies
                self.certain[seat][number] = 0
                self.sets_gone.append(number)
                if seat == self.seat:
                    del self.hand[number]
            case PlayerWonEvent(player_id=seat, position=place):
                self.places[seat] = place
            case GameStartEvent():
                for seat, n in zip(event.player_ids, event.initial_card_counts, strict=True):
                    self.players[seat] = PlayerData(seat, n, 0, 0, 0, 0, 0)
                    self.certain[seat] = [0] * _VALUES
            case HandDealtEvent(cards):
                self.hand = Counter(cards)
            case AnswerEvent(node, answer):
                self.answers[node] = answer

    def _tell(self, event: GameEvent) -> None:
        mover = None
        if isinstance(event, CardsPlayedEvent):
            mover = event.player_id
        elif isinstance(event, DoubtResolvedEvent):
            mover = event.doubter_id
        if mover == self.seat:
            self.own_moves.append(len(self.history))
        if event.only is None:
            self.history.append(_line(event))

    def _see_own_cards(self, cards: Sequence[int], lie: bool) -> None:
        self.hand -= Counter(cards)
        for card in cards:
            self._own_down[card] += 1
        self.history[-1] += f" Yours: {describe_cards(cards)}, {'a bluff' if lie else 'honest'}."
        played = card_names(sort_cards(cards))
        self.own_plays.append({"number": card_name(self.number), "cards": played, "honest": not lie})

    def _see_doubt(self, event: DoubtResolvedEvent) -> None:
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
        if event.loser_id == self.seat:
            self.hand.update(event.board_cards)
        else:
            held = self.certain[event.loser_id]
            for card in event.board_cards:
                held[card] += 1
        self.board_cards = self.number = self.last_play = self.streak = 0
        self.last_player = None
        self.down.clear()
        self._own_down = [0] * _VALUES
        self.answers = {}

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
            held = self.certain[seat]
            for card in range(_VALUES):
                if held[card]:
                    shown = min(down, older[card] - mine[card]) + (latest[card] if last else 0)
                    held[card] = max(0, held[card] - shown)


@lru_cache(maxsize=4096)
def _line(event: GameEvent) -> str:
    line = sentence(event)
    if isinstance(event, DoubtResolvedEvent) and event.board_cards:
        line = f"{line.removesuffix('.')}: {describe_cards(event.board_cards)}."
    return line
