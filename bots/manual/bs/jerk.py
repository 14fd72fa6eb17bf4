"""Jerk, which pads its plays with other cards."""

from collections.abc import Sequence

from dubito.games.bs.bot import BSBot
from dubito.games.bs.cards import Card
from dubito.games.bs.table import Table

NUMBERS = 13
ON_A_WHIM = 0.025


class Jerk(BSBot):
    """Adds a random card to its plays; accuses if a number was played too often, and sometimes at random.

    Repaired: the source's way to pad plays is broken. Its win rate is unknown.
    """

    origin = "ImpEmp/bs 3b4643d"

    def __init__(self, id: int) -> None:
        super().__init__(id)
        self.seen = [0] * NUMBERS  # cards of each number that others claimed on this pile
        self.total = 0

    def request_cards(self, number: int, table: Table) -> Sequence[Card]:
        play = self.cards.of(number)
        others = [card for card in self.cards if card.number != number]
        if not play:
            play.append(self.one_of(others))
        if others and len(play) < 3 and len(self.cards) > len(play) + 1:
            play.append(self.one_of(others))
        return play

    def bs(self, seat: int, number: int, n_cards: int, table: Table) -> bool:
        if self.total >= table.pile:
            self.seen = [0] * NUMBERS
            self.total = 0
        self.seen[number] += n_cards
        self.total += n_cards
        if table.hands[seat] == 0 or self.cards.count(number) + n_cards > 4 or self.seen[number] > 5:
            return True
        return self.rng.random() < ON_A_WHIM

    def one_of(self, cards: list[Card]) -> Card:
        """Remove a random card from the list and return it."""
        return cards.pop(int(self.rng.random() * len(cards)))
