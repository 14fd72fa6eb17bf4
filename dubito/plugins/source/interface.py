"""The types of the source project's 2026 version (github.com/isBre/Dubito), so that its bots play unchanged.

In that project the turn data contains the whole history, and the hand is a list from which `pick` removes cards.
`SourceSeat` translates between the two.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from dubito.game.seat_random import draw_from_seat, random
from dubito.games.dubito import events
from dubito.games.dubito.bot import PlayerAI
from dubito.games.dubito.cards import JOKER, MAX_PLAY, TurnOutput
from dubito.games.dubito.cards import TurnData as OurTurnData

INTERFACE: Final = "source interface of 2026"


@dataclass
class GameStartEvent:
    player_ids: list[int]
    initial_card_counts: dict[int, int]


@dataclass
class CardsPlayedEvent:
    player_id: int
    declared_number: int
    n_cards: int


@dataclass
class DoubtResolvedEvent:
    doubter_id: int
    target_id: int
    correct: bool
    latest_cards: list[int]
    board_cards: list[int]
    declared_number: int
    jokers_discarded: int = 0

    @property
    def loser_id(self) -> int:
        return self.target_id if self.correct else self.doubter_id


@dataclass
class DiscardEvent:
    player_id: int
    card_number: int


@dataclass
class PlayerWonEvent:
    player_id: int
    position: int


GameEvent = GameStartEvent | CardsPlayedEvent | DoubtResolvedEvent | DiscardEvent | PlayerWonEvent


@dataclass
class TurnData:
    my_cards: list[int]
    current_number: int
    board_cards: int
    n_cards_played: int
    playing_cards: list[int]
    n_players: int
    player_card_counts: dict[int, int]
    streak: int
    my_player_id: int
    prev_player_id: int
    next_player_id: int
    history: list[GameEvent]


def _list_doubts(history: Sequence[GameEvent]) -> list[DoubtResolvedEvent]:
    return [event for event in history if isinstance(event, DoubtResolvedEvent)]


def honest_times(player_id: int, history: Sequence[GameEvent]) -> int:
    return sum(event.target_id == player_id and not event.correct for event in _list_doubts(history))


def dishonest_times(player_id: int, history: Sequence[GameEvent]) -> int:
    return sum(event.target_id == player_id and event.correct for event in _list_doubts(history))


def doubts_count(player_id: int, history: Sequence[GameEvent]) -> int:
    return sum(event.doubter_id == player_id for event in _list_doubts(history))


def turns_count(player_id: int, history: Sequence[GameEvent]) -> int:
    plays = sum(isinstance(event, CardsPlayedEvent) and event.player_id == player_id for event in history)
    return plays + doubts_count(player_id, history)


class Hand:
    """A hand whose `pick` methods remove cards."""

    def __init__(self, hand: list[int]) -> None:
        self.hand = sorted(hand)

    def __len__(self) -> int:
        return len(self.hand)

    def __iter__(self) -> Iterator[int]:
        return iter(self.hand)

    def __str__(self) -> str:
        return str(self.hand)

    def add(self, cards: list[int]) -> None:
        self.hand = sorted([*self.hand, *cards])

    def count(self, number: int) -> int:
        return self.hand.count(number)

    def count_all(self) -> "Counter[int]":
        return Counter(self.hand)

    def has(self, number: int) -> bool:
        return number in self.hand

    def all_equal(self) -> bool:
        return len(set(self.hand)) <= 1

    def pick(self, card_number: int, card_amount: int) -> list[int]:
        if card_amount > len(self.hand):
            raise ValueError("Card amount exceeds the number of cards in the hand")
        return self._take([card_number] * min(card_amount, self.count(card_number)))

    def pick_all(self, number: int) -> list[int]:
        return self._take([number] * self.count(number))

    def pick_most(self) -> list[int]:
        return self.pick_all(self.count_all().most_common(1)[0][0])

    def pick_idx(self, indexes: list[int]) -> list[int]:
        return self._take([self.hand[index] for index in indexes])

    def pick_random(self, amount: int = 1) -> list[int]:
        return self._take(random.sample(self.hand, min(amount, len(self.hand))))

    def _take(self, cards: list[int]) -> list[int]:
        for card in cards:
            self.hand.remove(card)
        return cards


class Player:
    """The base class of that project's players, with an id and, on the player's turn, a hand."""

    def __init__(self, id: int) -> None:
        self.id, self.cards = id, Hand([])

    def reset(self) -> None:
        """Prepare for another game. In our project every game has new players."""
        self.cards = Hand([])

    def n_cards(self) -> int:
        return len(self.cards)

    def has_no_cards(self) -> bool:
        return not self.cards.hand

    def all_equal(self) -> bool:
        return self.cards.all_equal()

    def add_cards(self, new_cards: list[int]) -> None:
        self.cards.add(new_cards)


class BotBase(Player):
    """That project's `PlayerAI` and `BotBase`. A turn asks the nodes A-E in its order."""

    registry: ClassVar[dict[str, type]] = {}
    origin: ClassVar[str] = PlayerAI.origin

    def __init_subclass__(cls, **settings: Any) -> None:
        super().__init_subclass__(**settings)
        BotBase.registry[cls.__name__] = cls

    def __init__(self, id: int) -> None:
        super().__init__(id)
        self.uncertainty_value = 0.05

    def is_first_turn(self, p: TurnData) -> bool:
        return p.board_cards == 0

    def can_play_truthfully(self, p: TurnData) -> bool:
        return self.cards.has(p.current_number)

    def prev_player_started_turn(self, p: TurnData) -> bool:
        return p.n_cards_played == p.board_cards

    def play(self, p: TurnData) -> TurnOutput:
        return self.play_first_turn(p) if self.is_first_turn(p) else self.play_regular_turn(p)

    def play_first_turn(self, p: TurnData) -> TurnOutput:
        maximize = self.maximize_first_hand(p)
        if self.bluff_first_hand(p):
            return self.bluff(p, first_turn=True, maximize=maximize)
        return self.play_truthfully(p, first_turn=True, maximize=maximize)

    def play_regular_turn(self, p: TurnData) -> TurnOutput:
        return self.doubt(p) if self.should_doubt(p) else self.play_without_doubt(p)

    def play_without_doubt(self, p: TurnData) -> TurnOutput:
        maximize = self.maximize_regular(p)
        if self.can_play_truthfully(p) and not self.bluff_regular(p):
            return self.play_truthfully(p, first_turn=False, maximize=maximize)
        return self.bluff(p, first_turn=False, maximize=maximize)

    def doubt(self, p: TurnData, uncertainty: bool = False) -> TurnOutput:
        if not uncertainty or random.random() > self.uncertainty_value:
            return TurnOutput(True)
        if self.can_play_truthfully(p) and random.choice([True, False]):
            return self.play_truthfully(p, first_turn=False, maximize=False)
        return self.bluff(p, first_turn=False, maximize=False)

    def bluff(self, p: TurnData, first_turn: bool, uncertainty: bool = False, maximize: bool = False) -> TurnOutput:
        if uncertainty and random.random() <= self.uncertainty_value:
            return self.play_truthfully(p, True, maximize=maximize) if first_turn else self.doubt(p)
        cards = self.cards.pick_random(MAX_PLAY if maximize else random.choice([1, 2, 3]))
        return TurnOutput(False, random.choice(p.playing_cards or cards) if first_turn else None, cards)

    def play_truthfully(
        self, p: TurnData, first_turn: bool, uncertainty: bool = False, maximize: bool = False
    ) -> TurnOutput:
        if uncertainty and random.random() <= self.uncertainty_value:
            if not first_turn and random.choice([True, False]):
                return self.doubt(p)
            return self.bluff(p, first_turn, maximize=maximize)
        if first_turn:
            cards = self.cards.pick_most() if maximize else self.cards.pick_random()
            return TurnOutput(False, cards[0], cards)
        held = self.cards.count(p.current_number)
        return TurnOutput(False, None, self.cards.pick(p.current_number, held if maximize else random.randint(1, held)))

    def bluff_first_hand(self, p: TurnData) -> bool:
        raise NotImplementedError("bluff_first_hand is not implemented")

    def maximize_first_hand(self, p: TurnData) -> bool:
        raise NotImplementedError("maximize_first_hand is not implemented")

    def should_doubt(self, p: TurnData) -> bool:
        raise NotImplementedError("should_doubt is not implemented")

    def bluff_regular(self, p: TurnData) -> bool:
        raise NotImplementedError("bluff_regular is not implemented")

    def maximize_regular(self, p: TurnData) -> bool:
        raise NotImplementedError("maximize_regular is not implemented")


class SourceSeat(PlayerAI):
    """The seat of a bot from the source project. It keeps the history and translates turns and answers."""

    source: ClassVar[type[BotBase]]
    interface: ClassVar[str] = INTERFACE

    def __init__(self, id: int, **settings: Any) -> None:
        super().__init__(id)
        self._history = list[GameEvent]()
        self._counts = dict[int, int]()
        self.bot = self.source(id, **settings)

    def play(self, p: OurTurnData) -> TurnOutput:
        data = TurnData(
            my_cards=sorted(self.cards),
            current_number=p.current_number,
            board_cards=p.board_cards,
            n_cards_played=p.n_cards_played,
            playing_cards=list(p.playing_cards),
            n_players=p.n_players,
            player_card_counts=dict(self._counts),
            streak=p.streak,
            my_player_id=self.id,
            prev_player_id=p.prev.id,
            next_player_id=p.next.id,
            history=list(self._history),
        )
        output = self._ask(self.bot.play, data)
        # In the source project, a winner's last cards may still be doubted.
        if output.doubt and p.board_cards and not p.can_doubt:
            output = self._ask(self.bot.play_without_doubt, data)
        if not p.board_cards and not output.doubt:
            real = next((card for card in output.cards or () if card != JOKER), None)
            output.number = output.number or real or random.choice(p.playing_cards or [1])
        elif p.board_cards:
            output.number = None
        return output

    def _ask(self, play: Callable[[TurnData], TurnOutput], data: TurnData) -> TurnOutput:
        self.bot.cards = Hand(self.cards)  # type: ignore[arg-type]
        return play(data)

    def observe(self, event: events.Event) -> None:
        counts = self._counts
        match event:
            case events.GameStartEvent(ids, dealt):
                counts.update(zip(ids, dealt, strict=True))
                self._history.append(GameStartEvent(list(ids), dict(counts)))
            case events.CardsPlayedEvent(seat, number, n):
                counts[seat] -= n
                self._history.append(CardsPlayedEvent(seat, number, n))
            case events.DoubtResolvedEvent():
                counts[event.loser_id] += len(event.board_cards)
                latest, board = list(event.latest_cards), list(event.board_cards)
                facts = (event.doubter_id, event.target_id, event.correct, latest, board, event.declared_number)
                self._history.append(DoubtResolvedEvent(*facts, event.jokers_discarded))
            case events.DiscardEvent(seat, number, n):
                counts[seat] -= n
                self._history.append(DiscardEvent(seat, number))
            case events.PlayerWonEvent(seat, position):
                del counts[seat]
                self._history.append(PlayerWonEvent(seat, position))


draw_from_seat(SourceSeat)
