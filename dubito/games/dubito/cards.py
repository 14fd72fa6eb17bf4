"""What a Dubito bot sees and answers, the engine's hands, and the view of a hand that bots get.

Field names follow the source project, except for the new `PlayerData.id`, `TurnData.can_doubt` and
`TurnData.last_player_id` (R4, R20). Each turn has new turn data, so a bot that changes it only harms itself. The types
of fields are quoted because pydantic reads them, and the compiler only preserves quoted types as written.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any, Final, cast

from dubito.game.native import Loose, mypyc_attr
from dubito.game.streams import SeatStreams
from dubito.games.dubito.events import CardList

JOKER: Final = 0
NUMBERS: Final = tuple(range(1, 14))
COPIES: Final = 4  # cards of each number, unless the rules set fewer; a hand with all of them has a set (R8)
MAX_PLAY: Final = 3  # cards in one play (R3)


@mypyc_attr(allow_interpreted_subclasses=True, serializable=True)
@dataclass(slots=True)
class PlayerData:
    """What the table knows about a player. Counters exclude the current turn (R20)."""

    id: "Loose[int]"  # its seat, 0 to n-1
    n_cards: "Loose[int]"
    turns: "Loose[int]"  # a doubt and its free turn count as two
    not_first_turns: "Loose[int]"  # turns on a board that was not empty
    doubts: "Loose[int]"
    honest_times: "Loose[int]"  # doubted plays that were honest (R23)
    dishonest_times: "Loose[int]"  # doubted plays that were bluffs (R23)

    def __init__(
        self,
        id: Loose[int],
        n_cards: Loose[int],
        turns: Loose[int],
        not_first_turns: Loose[int],
        doubts: Loose[int],
        honest_times: Loose[int],
        dishonest_times: Loose[int],
    ) -> None:
        self.id = id
        self.n_cards = n_cards
        self.turns = turns
        self.not_first_turns = not_first_turns
        self.doubts = doubts
        self.honest_times = honest_times
        self.dishonest_times = dishonest_times


@mypyc_attr(allow_interpreted_subclasses=True, serializable=True)
@dataclass(slots=True)
class TurnData:
    """What the seat to move sees at the start of its turn (R20-R22)."""

    board_cards: "Loose[int]"
    playing_cards: "Loose[CardList]"  # numbers not yet discarded as a set, ascending, no joker
    current_number: "Loose[int]"  # 0 on an empty board
    n_cards_played: "Loose[int]"  # size of the last play; 0 on an empty board
    streak: "Loose[int]"  # plays on the board since the last doubt (R21)
    n_players: "Loose[int]"  # players still in the game, including one about to win (R9)
    my_n_cards: "Loose[int]"
    me: "Loose[PlayerData]"
    prev: "Loose[PlayerData]"  # the nearest earlier seat that is still in the game
    next: "Loose[PlayerData]"  # the nearest later seat that is still in the game
    can_doubt: "Loose[bool]"  # R4
    last_player_id: "Loose[int | None]"  # the seat that made the last play; None if the board is empty

    def __init__(
        self,
        board_cards: Loose[int],
        playing_cards: Loose[CardList],
        current_number: Loose[int],
        n_cards_played: Loose[int],
        streak: Loose[int],
        n_players: Loose[int],
        my_n_cards: Loose[int],
        me: Loose[PlayerData],
        prev: Loose[PlayerData],
        next: Loose[PlayerData],
        can_doubt: Loose[bool],
        last_player_id: Loose[int | None],
    ) -> None:
        self.board_cards = board_cards
        self.playing_cards = playing_cards
        self.current_number = current_number
        self.n_cards_played = n_cards_played
        self.streak = streak
        self.n_players = n_players
        self.my_n_cards = my_n_cards
        self.me = me
        self.prev = prev
        self.next = next
        self.can_doubt = can_doubt
        self.last_player_id = last_player_id


@mypyc_attr(allow_interpreted_subclasses=True, serializable=True)
@dataclass(slots=True)
class TurnOutput:
    """One turn's decision: a doubt, or one to three cards and, when opening, a number."""

    doubt: "Loose[bool]"
    number: "Loose[int | None]" = None
    cards: "Loose[list[int] | tuple[int, ...] | None]" = None

    def __init__(
        self,
        doubt: Loose[bool],
        number: Loose[int | None] = None,
        cards: Loose[list[int] | tuple[int, ...] | None] = None,
    ) -> None:
        self.doubt = doubt
        self.number = number
        self.cards = cards


# Compiled classes have no __slots__, but pydantic needs them.
for _class in (PlayerData, TurnData, TurnOutput):
    cast(Any, _class).__slots__ = tuple(field.name for field in fields(_class))


@mypyc_attr(allow_interpreted_subclasses=True, serializable=True)
class Hand:
    """The cards and the count of each value 0-13. Both lists are the same objects for the whole game."""

    __slots__ = ("cards", "copies", "counts", "has_set")

    def __init__(self, cards: Sequence[int], copies: int = COPIES) -> None:
        """Initialise the hand. `copies` cards of a number form a set."""
        self.cards: list[int] = []
        self.counts = [0] * (len(NUMBERS) + 1)
        self.copies = copies
        self.has_set = False  # whether it holds a set; only `add` can set this (R8)
        self.add(cards)

    def add(self, cards: Sequence[int]) -> None:
        counts, copies = self.counts, self.copies
        self.cards += cards
        for card in cards:
            held = counts[card] + 1
            counts[card] = held
            if held == copies and card != JOKER:
                self.has_set = True

    def remove(self, cards: list[int]) -> None:
        counts = self.counts
        for card in cards:
            self.cards.remove(card)
            counts[card] -= 1

    def discard_sets(self) -> list[int]:
        """Discard complete sets (R8) and return their numbers in ascending order."""
        if not self.has_set:
            return []
        self.has_set = False
        counts, copies = self.counts, self.copies
        sets = [number for number in NUMBERS if counts[number] == copies]
        self.cards[:] = [card for card in self.cards if card == JOKER or counts[card] < copies]
        for number in sets:
            counts[number] = 0
        return sets


@mypyc_attr(allow_interpreted_subclasses=True, serializable=True)
class HandView:
    """A bot's view of its hand. The `pick_` methods return lists and do not change the hand."""

    __slots__ = ("_cards", "_counts", "_streams")

    def __init__(self, hand: "Hand | HandView", streams: SeatStreams) -> None:
        """View a hand, or another view's hand. Random draws use the given streams."""
        if isinstance(hand, Hand):
            self._cards, self._counts = hand.cards, hand.counts
        else:
            self._cards, self._counts = hand._cards, hand._counts
        self._streams = streams

    def __len__(self) -> int:
        return len(self._cards)

    def __iter__(self) -> Iterator[int]:
        return iter(tuple(self._cards))

    def __repr__(self) -> str:
        return f"HandView({sorted(self._cards)})"

    def count(self, number: Loose[int]) -> int:
        return self._counts[number] if 0 <= number <= 13 else 0

    def count_all(self) -> "Counter[int]":
        return Counter(self._cards)

    def has(self, number: Loose[int]) -> bool:
        return 0 <= number <= 13 and self._counts[number] > 0

    def all_equal(self) -> bool:
        return len(set(self._cards)) <= 1

    def most_common(self) -> int:
        """Return the most common value: the lowest of several that tie, where a joker counts as 0 (R25)."""
        counts, most, common = self._counts, self._counts[JOKER], JOKER
        for number in range(1, len(counts)):
            if counts[number] > most:
                most, common = counts[number], number
        return common

    def pick_most(self) -> list[int]:
        return self.pick(self.most_common(), MAX_PLAY)

    def pick_all(self, number: Loose[int]) -> list[int]:
        return self.pick(number, MAX_PLAY)

    def pick(self, number: Loose[int], k: Loose[int]) -> list[int]:
        held = self._counts[number] if 0 <= number <= 13 else 0
        return [number] * (k if k < held else held)

    def pick_random(self, n: Loose[int]) -> list[int]:
        """Draw up to `n` random cards from the hand, using the framework's stream."""
        pool = self._cards[:]
        remaining = len(pool)
        if n >= remaining:
            return pool
        draw = self._streams.framework.random
        picked = []
        for size in range(remaining, remaining - n, -1):
            picked.append(pool.pop(int(draw() * size)))  # noqa: PERF401, a comprehension costs a call more
        return picked
