"""Gin rummy in words: one hand of it, as OpenSpiel's engine plays it (its gin_rummy.cc and gin_rummy_utils.cc).

Left unsaid: where two arrangements of a hand leave equally few points, the engine counts by the first one it finds.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, ClassVar, Final

from dubito.games.openspiel.words.sentences import Line, did, parameters

_RANKS: Final = "A23456789TJQK"
_SUITS: Final = "scdh"
_CARDS: Final = tuple(rank + suit for suit in _SUITS for rank in _RANKS)  # by number
_KNOWN: Final = {
    "oklahoma",
    "knock_card",
    "gin_bonus",
    "undercut_bonus",
    "num_ranks",
    "num_suits",
    "hand_size",
}
_DRAWS: Final = ("draw upcard", "draw stock")
_UPCARD, _STOCK, _PASS, _KNOCK, _MELDS = range(52, 57)  # action ids; below them cards, from the last on melds
_LEFT: Final = 2  # cards of the stock that are never drawn
_MOST_UPCARDS: Final = 50


def words(game: Any) -> "GinRummy | None":
    """The words of this game; None for Oklahoma, a deck that lacks cards, and bonuses that cost."""
    given = parameters(game)
    if given.keys() != _KNOWN or given["oklahoma"] or (given["num_ranks"], given["num_suits"]) != (13, 4):
        return None
    if min(given["gin_bonus"], given["undercut_bonus"]) < 0:
        return None
    return GinRummy(given["hand_size"], given["knock_card"], given["gin_bonus"], given["undercut_bonus"])


@dataclass(frozen=True)
class GinRummy:
    """A hand of gin rummy of so many cards each."""

    size: int
    knock: int  # with how much deadwood one may
    gin: int
    undercut: int

    title: ClassVar[str] = "gin rummy"

    @property
    def rules(self) -> tuple[str, ...]:
        """The rules in force, a paragraph each."""
        stock = len(_CARDS) - 2 * self.size - 1
        return (
            "Two players sit in seats 0 and 1 and play one hand. A card is written as its rank and its suit, Ts or 4h; "
            f"the ranks are, from the lowest, {' '.join(_RANKS)}, the suits {' '.join(_SUITS)} (spades, clubs, "
            f"diamonds, hearts), 52 cards. Each player is dealt {self.size}, unseen by the other; the next one is "
            f"turned up, the upcard; the other {stock} are the stock, face down.",
            "A meld is three or four cards of one rank, or three to five cards of one suit that follow each other in "
            "rank; the ace is low only, and a card is in one meld at most. Cards in no meld are deadwood: an A counts "
            "1 point, a T, J, Q or K 10, every other card its number.",
            "Seat 0 may take the first upcard or pass; if it passes, seat 1 may take it or pass; if both pass, seat 0 "
            "draws from the stock. From then on they take turns.",
            "In a turn a player draws the upcard, or the top card of the stock, which the other does not see, and then "
            "discards a card of its hand, which is the new upcard, or knocks. When a card is drawn from the stock, the "
            "upcard that was left goes to the discard pile, out of play.",
            f"A player may knock if its deadwood is at most {self.knock}, counted so: its melds take as many "
            f"points of its {self.size + 1} cards as they can, and of the other cards the highest is not counted.",
            f"Whoever knocks discards a card onto the discard pile, so that at most {self.knock} points can be left, "
            f"then lays its melds, one at a time, and passes when it lays no more; at most {self.knock} points may be "
            "left in its hand.",
            "Then the other player may lay off cards, one at a time, on the knocker's melds (the fourth card of a "
            "rank, the next card at either end of a sequence, but at most two at each end) and passes; then it lays "
            "melds of its own, one at a time, and passes, which ends the hand. If the knocker has no deadwood, which "
            "is gin, nothing can be laid off. What either has not laid counts as deadwood, even if it could be a meld.",
            "The result of the knocker is the other's deadwood less its own. For gin it gets "
            f"{self.gin} more. If its deadwood is higher than the other's, it loses {self.undercut} more. The other's "
            "result is the same number with the opposite sign.",
            f"When a discard leaves {_LEFT} cards in the stock, the other player may only knock, taking the upcard "
            "into its hand if with it its deadwood allows a knock, or pass; after a pass nobody wins, and both results "
            "are 0.",
            "Both results are 0 too when a player draws the upcard and discards the same card at once and the "
            "other does so in turn; and when the upcard is drawn for the "
            f"{_MOST_UPCARDS}th time, not counting the first upcard.",
        )

    @property
    def names(self) -> tuple[str, ...]:
        """By action id: the cards, the four acts, the melds."""
        return _NAMES

    def holds(self, state: Any, seat: int) -> str:
        """The hand with its deadwood, the upcard, the stock, the discards, and what is known of the other's hand."""
        hand = sorted(state.hands()[seat])
        knocked, other = any(state.knocked()), 1 - seat
        points = sum(map(_points, hand)) if knocked else state.deadwood()[seat]
        upcard = _CARDS[state.upcard()] if state.upcard() is not None else "none"
        parts = [
            f"{_listed(hand)} ({len(hand)} cards, deadwood {points})",
            f"upcard: {upcard}",
            f"stock: {state.stock_size()} cards",
            f"discard pile, the last one last: {_listed(state.discard_pile())}",
            f"known in the hand of seat {other}: {_listed(state.known_cards()[other])}",
        ]
        if knocked:
            who = "you" if state.knocked()[seat] else f"seat {other}"
            parts += [f"{who} knocked", f"melds that you have laid: {self._melds(state, seat)}"]
            parts += [f"melds of seat {other}: {self._melds(state, other)}", f"laid off: {_listed(state.layoffs())}"]
        return "; ".join(parts)

    def history(self, state: Any, seat: int) -> list[Line]:
        """The deal, the draws, the discards, and all that follows a knock."""
        entries = state.full_history()
        dealt = 2 * self.size + 1
        if len(entries) < dealt:
            return []
        replay = state.get_game().new_initial_state()
        for entry in entries[:dealt]:
            replay.apply_action(entry.action)
        cards = _listed(sorted(replay.hands()[seat]))
        lines: list[Line] = [(None, f"The cards are dealt. Yours: {cards}. The upcard is {_CARDS[replay.upcard()]}.")]
        drawer = None
        for entry in entries[dealt:]:
            if entry.player < 0:
                assert drawer is not None
                what = _CARDS[entry.action] if drawer == seat else "a card"
                lines.append(did(drawer, seat, "draw", f" {what} from the stock"))
            elif entry.action == _STOCK:
                drawer = entry.player
            else:
                lines.append(did(entry.player, seat, *self._act(replay, entry.action)))
            replay.apply_action(entry.action)
        return lines

    def _act(self, state: Any, action: int) -> tuple[str, str]:
        """An act that is about to be done: the verb, and the rest of the sentence."""
        phase = state.current_phase().name
        if action == _UPCARD:
            return "draw", f" the upcard {_CARDS[state.upcard()]}"
        if action == _KNOCK:
            return "knock", f" with the upcard {_CARDS[state.upcard()]}" if phase == "WALL" else ""
        if action >= _MELDS:
            return "lay", f" the meld {self.names[action]}"
        if action == _PASS:
            return "pass", self._what_passed(state, phase)
        return ("lay", f" off {_CARDS[action]}") if phase == "LAYOFF" else ("discard", f" {_CARDS[action]}")

    def _what_passed(self, state: Any, phase: str) -> str:
        if phase == "FIRST_UPCARD":
            return f" on the upcard {_CARDS[state.upcard()]}"
        if phase == "WALL":
            return ", and the hand is over"
        return ": no more melds" if phase == "KNOCK" or state.finished_layoffs() else ": no more cards to lay off"

    def _melds(self, state: Any, seat: int) -> str:
        return ", ".join(self.names[_MELDS + meld] for meld in state.layed_melds()[seat]) or "none"


def _melds_by_number() -> Iterable[Sequence[int]]:
    """All melds in the engine's order: by rank those of three, by the suit that is missing, and that of four; then
    sequences by length, suit and lowest rank."""
    for rank in range(13):
        four = range(rank, 52, 13)
        yield from reversed([*combinations(four, 3)])
        yield four
    for length in (3, 4, 5):
        for suit in range(4):
            for low in range(14 - length):
                yield range(13 * suit + low, 13 * suit + low + length)


def _points(card: int) -> int:
    return min(10, card % 13 + 1)


def _cards(numbers: Iterable[int]) -> list[str]:
    return [_CARDS[number] for number in numbers]


def _listed(numbers: Iterable[int]) -> str:
    return " ".join(_cards(numbers)) or "none"


_NAMES: Final = (*_CARDS, *_DRAWS, "pass", "knock", *("".join(_cards(meld)) for meld in _melds_by_number()))
