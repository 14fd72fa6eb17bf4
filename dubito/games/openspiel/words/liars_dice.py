"""Liar's dice in words: two players, some dice each, bids that rise until one is called a lie."""

from dataclasses import dataclass
from typing import Any, ClassVar, Final

from dubito.games.openspiel.words.sentences import Line, did, parameters

_KNOWN: Final = {"players", "numdice", "dice_sides", "bidding_rule"}
_NUMBERS: Final = (
    *("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"),
    *("thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen", "twenty"),
)
_MOST_NAMES: Final = 250  # of one game: providers bound how many a choice may have
_LIAR: Final = "liar"


def words(game: Any) -> "LiarsDice | None":
    """The words of this game; None where they have no number for a bid, or there are too many bids to name."""
    given = parameters(game)
    if given.keys() != _KNOWN or given["players"] != 2:
        return None
    dice, sides = given["numdice"], given["dice_sides"]
    if not 1 <= 2 * dice <= len(_NUMBERS) or 2 * dice * sides >= _MOST_NAMES:
        return None
    return LiarsDice(dice, sides, given["bidding_rule"] == "reset-face")


@dataclass(frozen=True)
class LiarsDice:
    """Liar's dice with so many dice each, of so many sides."""

    dice: int
    sides: int
    number_first: bool  # whether a bid is higher by the number of dice first, and then by the face

    title: ClassVar[str] = "liar's dice"

    @property
    def rules(self) -> tuple[str, ...]:
        """The rules in force, a paragraph each."""
        if self.number_first:
            higher = "more dice of any face, or as many dice of a higher face"
        else:
            higher = "any number of dice of a higher face, or more dice of the same face"
        each = "one die" if self.dice == 1 else f"{_NUMBERS[self.dice - 1]} dice"
        return (
            f"Two players sit in seats 0 and 1. Each rolls {each} with the faces 1 to {self.sides}, unseen by the "
            "other. Seat 0 begins, and they take turns.",
            f"In a turn a player makes a bid, or calls the other's last bid a lie. A bid says that of the "
            f"{_NUMBERS[2 * self.dice - 1]} dice of both players together at least so many show a face: {_bid(1, 1)}, "
            f"{_bid(2, self.sides)}. Every {self.sides} is wild: it counts as any face that is bid.",
            f"Each bid must be higher than the one before it: {higher}. No bid is of more than "
            f"{_NUMBERS[2 * self.dice - 1]} dice. The game begins with a bid, not with a call; whoever faces "
            f"the highest of all bids, {_bid(2 * self.dice, self.sides)}, must call.",
            f"When a player calls ({_LIAR}), all dice are looked at and the game is over. If at least as many dice as "
            "were bid show the face or are wild, whoever made the bid wins, otherwise whoever called. The winner's "
            "result is 1, the loser's -1.",
        )

    @property
    def names(self) -> tuple[str, ...]:
        """By action id: the bids from the lowest, and last the call."""
        most = 2 * self.dice
        if self.number_first:
            bids = [_bid(number, face) for number in range(1, most + 1) for face in range(1, self.sides + 1)]
        else:
            bids = [_bid(number, face) for face in range(1, self.sides + 1) for number in range(1, most + 1)]
        return (*bids, _LIAR)

    def holds(self, state: Any, seat: int) -> str:
        """The dice, sorted, and the bid that stands."""
        bids = [entry for entry in state.full_history() if entry.player >= 0]
        bids = [entry for entry in bids if self.names[entry.action] != _LIAR]
        dice = self._dice(state, seat)
        shown = " ".join(map(str, dice)) or "no dice yet"
        if not bids:
            return f"{shown}; no bid yet"
        who = "you" if bids[-1].player == seat else f"seat {bids[-1].player}"
        return f"{shown}; last bid: {self.names[bids[-1].action]}, by {who}"

    def history(self, state: Any, seat: int) -> list[Line]:
        """The roll, the bids and the call."""
        dice = self._dice(state, seat)
        if not dice:
            return []
        lines: list[Line] = [(None, f"The dice are rolled. Yours: {' '.join(map(str, dice))}.")]
        for entry in state.full_history()[2 * self.dice :]:
            name = self.names[entry.action]
            verb, rest = ("call", ": liar") if name == _LIAR else ("bid", f" {name}")
            lines.append(did(entry.player, seat, verb, rest))
        return lines

    def _dice(self, state: Any, seat: int) -> list[int]:
        """The seat's dice, none while they roll; sorted, as the engine shows them: nobody knows which was the first."""
        rolled = [entry.action + 1 for entry in state.full_history() if entry.player < 0]
        return sorted(rolled[seat * self.dice : (seat + 1) * self.dice]) if len(rolled) == 2 * self.dice else []


def _bid(number: int, face: int) -> str:
    return f"{_NUMBERS[number - 1]} {face}{'s' * (number > 1)}"
