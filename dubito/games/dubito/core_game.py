"""One game between two moves: turn data out, an output in, events out. No clock, no chance, no I/O.

Whoever drives it (bots, a terminal, a replay) repeats `turn_data()` and `apply(output)` until `over`.
An illegal output raises and changes nothing (R13).
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from dubito.errors import IllegalOutput
from dubito.game import Ending
from dubito.game.streams import Loose, SeatStreams, mypyc_attr
from dubito.games.dubito.events import (
    CardsPlayedEvent,
    DiscardEvent,
    DoubtResolvedEvent,
    Event,
    GameStartEvent,
    PlayerWonEvent,
)
from dubito.games.dubito.game_data import JOKER, NUMBERS, PlayerData, TurnData, TurnOutput
from dubito.games.dubito.hand import Hand, HandView
from dubito.games.dubito.rules import Rules, check_players, is_honest, why_illegal


class Result(StrEnum):
    """What a game was for one player (R10, R12); the values are the buckets of a run's results (R30)."""

    HARD_WIN = "hard_wins"
    SOFT_WIN = "soft_wins"
    LOSS = "losses"
    UNFINISHED = "unfinished"


@mypyc_attr(allow_interpreted_subclasses=True, serializable=True)
@dataclass(slots=True)
class SeatCounts:
    """What the game counts for one seat: its public PlayerData, and more (R31).

    Numbers are Loose, as those of PlayerData are, so that compiled code hands them on as they are.
    """

    seat: Loose[int]
    n_cards: Loose[int]
    turns: Loose[int] = 0
    not_first_turns: Loose[int] = 0
    doubts: Loose[int] = 0
    honest_times: Loose[int] = 0
    dishonest_times: Loose[int] = 0
    play_turns: Loose[int] = 0
    cards_played: Loose[int] = 0
    bluffs: Loose[int] = 0
    successful_doubts: Loose[int] = 0

    def public(self) -> PlayerData:
        """What the table knows of the seat, made afresh at each call."""
        return PlayerData(
            self.seat,
            self.n_cards,
            self.turns,
            self.not_first_turns,
            self.doubts,
            self.honest_times,
            self.dishonest_times,
        )


@mypyc_attr(allow_interpreted_subclasses=True, serializable=True)
class Game:
    """The state of one game. Read its attributes freely; change it only through `apply`."""

    def __init__(self, rules: Rules, hands: list[Hand]) -> None:
        """A game that seat 0 opens; the hands become the game's own, and none may hold a set (R2)."""
        n = len(hands)
        check_players(n)
        self.rules = rules
        self.hands = hands
        self.counts = [SeatCounts(seat, len(hand.cards)) for seat, hand in enumerate(hands)]
        self.places: list[int | None] = [None] * n  # 1, 2, ... for who has won (R10)
        self.n_players = n  # still seated
        self.seat = 0  # whose turn it is
        self.board: list[int] = []
        self.number = 0  # the round's; 0 on an empty board
        self.n_cards_played = 0
        self.last_player: int | None = None
        self.streak = 0
        self.can_doubt = False
        self.playing_cards = NUMBERS
        self.turns = 0  # finished ones, free turns not counted (R12, R32)
        self.free_turns = 0
        self.over = False
        self.capped = False  # over because of the cap: who is still seated is unfinished
        self._before = [seat - 1 for seat in range(n)]
        self._before[0] = n - 1
        self._after: list[int] = [*range(1, n), 0]
        self._bluffed = False  # the last play was not honest (R5)
        self._free = False  # this turn is a free one (R7)
        self._pending: int | None = None  # contested: who played the last card it held (R9)
        self._events: list[Event] | None = None

    def view(self) -> TurnData:
        """What the seat to move sees, made afresh at each call."""
        seat, counts = self.seat, self.counts
        me = counts[seat]
        return TurnData(
            len(self.board),
            self.playing_cards,
            self.number,
            self.n_cards_played,
            self.streak,
            self.n_players,
            me.n_cards,
            me.public(),
            counts[self._before[seat]].public(),
            counts[self._after[seat]].public(),
            self.can_doubt,
            self.last_player,
        )

    def turn_data(self) -> TurnData:
        """The same, in the game's own word."""
        return self.view()

    def cards(self, seat: int, streams: SeatStreams) -> HandView:
        """What a seat holds, as its bot sees it."""
        return HandView(self.hands[seat], streams)

    def copy_of(self, output: TurnOutput) -> TurnOutput:
        """An output that was applied, with a list of its own."""
        return TurnOutput(output.doubt, output.number, None if output.cards is None else list(output.cards))

    @property
    def start(self) -> GameStartEvent:
        """The event before the first turn; asked for while no card has moved."""
        counts = tuple(len(hand.cards) for hand in self.hands)
        return GameStartEvent(tuple(range(len(counts))), counts)

    @property
    def turns_played(self) -> int:
        """Finished turns, free ones included."""
        return self.turns + self.free_turns

    def player_data(self, seat: int) -> PlayerData:
        """What the table knows of one seat now."""
        return self.counts[seat].public()

    def result(self, seat: int) -> Result:
        """What the finished game was for this seat."""
        place = self.places[seat]
        if place is not None:
            return Result.HARD_WIN if place == 1 else Result.SOFT_WIN
        return Result.UNFINISHED if self.capped else Result.LOSS

    def ending(self) -> Ending:
        """What the finished game came to, in the order of `results.RESULTS` (R31)."""
        counts: list[tuple[int, ...]] = [
            (
                own.n_cards,
                own.bluffs,
                own.dishonest_times,
                own.doubts,
                own.successful_doubts,
                own.cards_played,
                own.play_turns,
                own.not_first_turns,
            )
            for own in self.counts
        ]
        return Ending(self.capped, (self.turns, self.free_turns), [place or 0 for place in self.places], counts)

    def apply(self, output: Loose[TurnOutput], announce: bool = True) -> list[Event]:
        """Make the move of the seat to move and return what the table observes of it, in order (R26).

        With `announce` off no event is built. Raises IllegalOutput, the game untouched, if the rules
        refuse the output.
        """
        if self.over:
            raise IllegalOutput("the game is over")
        seat = self.seat
        reason = why_illegal(output, self.hands[seat].counts, self.number, self.can_doubt)
        if reason is not None:
            raise IllegalOutput(reason)
        events: list[Event] = []
        self._events = events if announce else None
        counts = self.counts[seat]
        counts.turns += 1
        if self.number:
            counts.not_first_turns += 1
        earned = False
        if output.doubt:
            earned = self._doubt(seat)
        else:
            cards: Any = output.cards
            self._play(seat, cards if type(cards) is list else [*cards], output.number or self.number)
        if self._free:
            self.free_turns += 1
        else:
            self.turns += 1
        self._free = earned
        if not earned:
            self.seat = self._after[seat]
            if self.turns >= self.rules.max_turns and not self.over:
                self.over = self.capped = True  # R12: a free turn that was earned is still played
        return events

    def _play(self, seat: int, cards: list[int], number: int) -> None:
        n = len(cards)
        self.hands[seat].remove(cards)
        self.board += cards
        self.number = number
        self.n_cards_played = n
        self.last_player = seat
        self.streak += 1
        self.can_doubt = True
        counts = self.counts[seat]
        counts.play_turns += 1
        counts.cards_played += n
        self._bluffed = not is_honest(cards, number)
        if self._bluffed:
            counts.bluffs += 1
        counts.n_cards -= n
        if self._events is not None:
            self._events.append(CardsPlayedEvent(seat, number, n))
        if self._pending is not None:
            self._place_pending()
        if counts.n_cards == 0 and not self.over:
            if self.rules.win_rule == "contested":
                self._pending = seat
            else:
                self._win(seat)
                self.can_doubt = False

    def _doubt(self, seat: int) -> bool:
        """Resolve the doubt and say whether it caught a bluff."""
        target = self.last_player
        assert target is not None  # why_illegal saw to it
        latest = self.board[-self.n_cards_played :]
        counts = self.counts
        counts[seat].doubts += 1
        if self._bluffed:
            counts[seat].successful_doubts += 1
            counts[target].dishonest_times += 1
            loser, picked_up = target, self.board
            if self._pending == target:
                self._pending = None
        else:
            counts[target].honest_times += 1
            older = self.board[: -self.n_cards_played]
            loser, picked_up = seat, older + [card for card in latest if card != JOKER]
        self.hands[loser].add(picked_up)
        if self._events is not None:
            jokers = len(self.board) - len(picked_up)
            self._events.append(
                DoubtResolvedEvent(seat, target, self._bluffed, tuple(latest), tuple(picked_up), self.number, jokers)
            )
        self._clear_board()
        self._discard_sets(loser)
        if self._pending is not None:
            self._place_pending()
        if counts[loser].n_cards == 0 and not self.over:
            self._win(loser)
        return self._bluffed

    def _clear_board(self) -> None:
        self.board = []
        self.number = self.n_cards_played = self.streak = 0
        self.last_player = None
        self.can_doubt = False

    def _discard_sets(self, seat: int) -> None:
        """Only the hand that just grew can hold a set (R8)."""
        hand = self.hands[seat]
        sets = hand.discard_sets()
        self.counts[seat].n_cards = len(hand.cards)
        if sets:
            self.playing_cards = tuple(number for number in self.playing_cards if number not in sets)
            if self._events is not None:
                self._events.extend(DiscardEvent(seat, number) for number in sets)

    def _place_pending(self) -> None:
        """A pending winner whom nobody caught has won, before anybody else is placed (R9)."""
        assert self._pending is not None
        self._win(self._pending)
        self._pending = None

    def _win(self, seat: int) -> None:
        """Give the next place; with two players left the game is over (R10)."""
        place = len(self.places) - self.n_players + 1
        self.places[seat] = place
        self.n_players -= 1
        before, after = self._before[seat], self._after[seat]
        self._after[before] = after
        self._before[after] = before
        if self._events is not None:
            self._events.append(PlayerWonEvent(seat, place))
        if self.n_players == 2:
            self.over = True
