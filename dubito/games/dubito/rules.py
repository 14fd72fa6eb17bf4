"""The rules as data and as one predicate: what may be varied, how cards are dealt, why a move is refused."""

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, ClassVar, Final, Literal, get_args

from dubito.errors import UsageError
from dubito.game import Lie
from dubito.game.streams import mypyc_attr
from dubito.games.dubito.game_data import COPIES, JOKER, MOST, NUMBERS, TurnOutput
from dubito.games.dubito.hand import Hand

WinRule = Literal["immediate", "contested"]

MIN_PLAYERS: Final = 3
MAX_PLAYERS: Final = 8
MAX_JOKERS: Final = 2


@mypyc_attr(native_class=False)
@dataclass(frozen=True, slots=True)
class Rules:
    """The rules in force: R1 (jokers), R9 (when an empty hand wins), R12 (cap on turns)."""

    # Where records are read. Its type is quoted, as below: the compiler keeps only those as they are written.
    __pydantic_config__: "ClassVar[dict[str, object]]" = {"extra": "forbid", "strict": True}  # noqa: RUF008

    jokers: int = 2
    win_rule: "WinRule" = "immediate"
    max_turns: int = 1000

    @property
    def in_force(self) -> "Rules":
        """These, as those that a config says have it too."""
        return self

    def __post_init__(self) -> None:
        if not 0 <= self.jokers <= MAX_JOKERS:
            raise UsageError(f"jokers: {self.jokers} is not between 0 and {MAX_JOKERS}")
        if self.win_rule not in get_args(WinRule):
            raise UsageError(f"win_rule: {self.win_rule!r} is neither 'immediate' nor 'contested'")
        if self.max_turns < 1:
            raise UsageError(f"max_turns: {self.max_turns} is not at least 1")


def check_players(n: int) -> None:
    """Refuse a table that Dubito cannot be played at (R1)."""
    if not MIN_PLAYERS <= n <= MAX_PLAYERS:
        raise UsageError(f"Dubito needs {MIN_PLAYERS} to {MAX_PLAYERS} players, not {n}")


def deal_hands(rng: Random, n_players: int, rules: Rules) -> list[Hand]:
    """Shuffle and deal card by card from seat 0, again and again until no hand holds a set (R1, R2)."""
    check_players(n_players)
    deck = [*NUMBERS] * COPIES + [JOKER] * rules.jokers
    while True:
        _shuffle(deck, rng)
        hands = [Hand(deck[seat::n_players]) for seat in range(n_players)]
        if not any(hand.has_set for hand in hands):
            return hands


def _shuffle(deck: list[int], rng: Random) -> None:
    """As `Random.shuffle` does it, draw by draw, in half the time; what is no plain `Random` shuffles by itself."""
    if type(rng) is not Random:
        rng.shuffle(deck)
        return
    draw = rng.getrandbits
    for last in range(len(deck) - 1, 0, -1):
        bits = (last + 1).bit_length()
        place = draw(bits)
        while place > last:
            place = draw(bits)
        deck[last], deck[place] = deck[place], deck[last]


def last_play_is_dishonest(board: Sequence[int], n: int, number: int | None) -> bool | None:
    """The truth of what a doubt would turn over, the last `n` cards of the board (R5); None on an empty board."""
    return not is_honest(board[-n:], number) if number in NUMBERS else None


def is_honest(cards: Sequence[int], number: int) -> bool:
    """Whether each card is the declared number or a joker (R5)."""
    for card in cards:  # noqa: SIM110, a generator costs twice as much
        if card != number and card != JOKER:
            return False
    return True


def lie_told(cards: Sequence[int] | None, declared: int | None, number: int, held: Sequence[int]) -> Lie | None:
    """What bluff a play is in a round of this number, 0 to open one, by a hand with so many of each value (R5, R25).

    Who opens can always be honest; later only who holds the number can, since jokers do not count (R22).
    """
    if not cards or is_honest(cards, declared or number):
        return None
    return "chosen" if not number or held[number] else "forced"


def why_illegal(output: object, held: list[int], number: int, can_doubt: bool) -> str | None:
    """Why the seat to move may not do this, or None if it may (R3, R4, R13).

    `held` counts the seat's own cards by value, `number` is the round's (0 on an empty board). Runs no
    code of the bot's: types are compared exactly, and only their names are quoted.
    """
    if type(output) is not TurnOutput:
        return f"the output is {_kind(output)}, not a TurnOutput"
    cards: Any = output.cards
    if output.doubt is True:
        if cards is not None and not _is_empty(cards):
            return "a doubt comes without cards"
        if can_doubt:
            return _why_number_illegal(output.number, number)
        return "there is no doubting on an empty board" if number == 0 else "the player to doubt has left the game"
    if output.doubt is not False:
        return f"doubt is {_kind(output.doubt)}, not True or False"
    cards = [*cards] if type(cards) is tuple else cards
    if type(cards) is not list:
        return f"cards is {_kind(cards)}, not a list of 1 to {MOST} cards"
    n = len(cards)
    if not 1 <= n <= MOST:
        return f"{n} cards were played; play 1 to {MOST}"
    for card in cards:  # all, before any is compared: no code of a card runs
        if type(card) is not int or not 0 <= card <= 13:
            return f"there is no card {_shown(card)}"
    for card in cards:
        if held[card] < n and held[card] < cards.count(card):
            return f"the hand holds {held[card]} of card {card}, not {cards.count(card)}"
    return None if output.number is None and number else _why_number_illegal(output.number, number)


def _why_number_illegal(declared: object, number: int) -> str | None:
    if number == 0:
        if type(declared) is int and 1 <= declared <= NUMBERS[-1]:
            return None
        return f"an opening declares a number from 1 to {NUMBERS[-1]}, not {_shown(declared)}"
    if declared is None or (type(declared) is int and declared == number):
        return None
    return f"the number of this round is {number}; declare it or None"


def _is_empty(cards: object) -> bool:
    return (type(cards) is list or type(cards) is tuple) and not cards


def _shown(value: object) -> str:
    """A whole number of everyday size as itself, anything else by its type."""
    return str(value) if type(value) is int and abs(value) < 10**6 else _kind(value)


def _kind(value: object) -> str:
    """The value's type in words: its own text could be anything."""
    return "None" if value is None else f"of type {type(value).__name__}"
