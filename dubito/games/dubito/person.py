"""A person at Dubito in the terminal: what they see, and what they type."""

import json
from dataclasses import dataclass
from typing import Final

from pydantic import TypeAdapter, ValidationError

from dubito.errors import UsageError, one_line
from dubito.game.record import Strict, first_fault
from dubito.game.words import Label
from dubito.games.dubito.core_game import Game, Result
from dubito.games.dubito.game_data import JOKER, NUMBERS, TurnOutput
from dubito.games.dubito.record import card_name, cards_in_words
from dubito.games.dubito.rules import why_illegal as refused
from dubito.games.dubito.told import to_me

BOTS: Final = ("ClaudeBot", "AdaptyBoi", "StefaBot")
HARD: Final = ("Sherlock",)
HOW: Final = (
    "Type `doubt` (or `d`), or the cards you put down: `7 7 joker`, also `a k j`, `jack`, `*` for a joker. When you "
    "open a round, say the number you claim: `7 king as 7`; without it, cards of one number are claimed as what they "
    "are. `?` tells the rules, Ctrl-D leaves the table."
)
LEAD: Final = (
    "Dubito, “I doubt it”: put cards face down, claim what they are, and catch the others lying. The first without "
    "cards wins."
)
OPTIONS: Final = (  # what of the rules a page offers: the rule, its label, its values in words, the first the usual one
    ("jokers", "Jokers", ((2, "2"), (1, "1"), (0, "0"))),
    ("win_rule", "Your last card", (("immediate", "wins at once"), ("contested", "may still be doubted"))),
)
_CARDS: Final = {
    **{card_name(card): card for card in (JOKER, *NUMBERS)},
    **{card_name(card, plural=True): card for card in (JOKER, *NUMBERS)},
    **{str(card): card for card in (JOKER, *NUMBERS)},
    "sixes": 6,
    "a": 1,
    "j": 11,
    "q": 12,
    "k": 13,
    "*": JOKER,
}


def sees(game: Game, seat: int, label: Label) -> list[str]:
    """How many cards each holds, the own hand, and the board."""
    counts = [game.player_data(other).n_cards for other in range(len(game.hands))]
    held = [f"{to_me(label(other))} {counts[other]}" for other, place in enumerate(game.places) if place is None]
    lines = [f"Cards held: {', '.join(held)}.", f"Your hand: {cards_in_words(game.hands[seat].cards)}"]
    if not game.number:
        return [*lines, "Your turn. The board is empty: you open a round."]
    assert game.last_player is not None
    last, number = to_me(label(game.last_player)), card_name(game.number, plural=True)
    doubt = "" if game.can_doubt else " (nobody may doubt them)"
    return [
        *lines,
        f"Your turn. On the board: {game.n_cards_played} of {len(game.board)} by {last}, as {number}{doubt}.",
    ]


def read(line: str, game: Game, seat: int) -> TurnOutput:
    """What a person typed in this round."""
    return read_move(line, game.number)


def read_move(line: str, number: int) -> TurnOutput:
    """What a person typed, in a round of that number (0: they open); whether it is legal the engine says.

    Raises UsageError for what cannot be read.
    """
    words = line.casefold().replace(",", " ").split()
    if words in (["doubt"], ["d"]):
        return TurnOutput(True)
    text, claimed, as_what = " ".join(words).partition(" as ")
    cards = [_card(word) for word in text.split()]
    if claimed:
        return TurnOutput(False, _card(as_what), cards)
    own = set(cards) - {JOKER}
    return TurnOutput(False, own.pop() if not number and len(own) == 1 else None, cards)


def _card(word: str) -> int:
    if word not in _CARDS:
        raise UsageError(f"'{one_line(word, 20)}' is no card: type ace, 2 to 10, jack, queen, king, joker, or `doubt`")
    return _CARDS[word]


@dataclass(frozen=True, slots=True)
class _Move(Strict):
    """What the page sends."""

    doubt: bool = False
    cards: list[int] | None = None
    number: int | None = None


_MOVE: Final = TypeAdapter(_Move)


def answered(answer: object, game: Game, seat: int) -> TurnOutput:
    """What a page has sent: a doubt, or cards and where one is to be said a number."""
    try:
        move = _MOVE.validate_json(json.dumps(answer))
    except ValidationError as error:
        raise UsageError(f"this move cannot be read: {first_fault(error, 'the answer')}") from None
    return TurnOutput(move.doubt, move.number, move.cards)


def why_illegal(game: Game, output: object) -> str | None:
    """Why the seat to move may not do this."""
    return refused(output, game.hands[game.seat].counts, game.number, game.can_doubt)


def cheer(game: Game, seat: int) -> str:
    """A win by its kind, or a loss."""
    place = game.places[seat]
    if place is None:
        return "You lose this one." if game.result(seat) is Result.LOSS and game.over else ""
    if place == 1:
        return "\n  ***  A hard win! You are the first to be out of cards.  ***\n"
    return f"\n  **  A soft win! You are out of cards, in place {place}, and have not lost.  **\n"
