"""A BS bot to start from: copy this file to bots/manual/bs/my_bot.py, then change what it answers.

File and class have one name (my_bot.py, MyBot); files that start with _ are no bots. Everything is
explained in docs/writing-a-bs-bot.md.
"""

from collections.abc import Sequence

from dubito.games.bs.bot import BSBot
from dubito.games.bs.cards import Card
from dubito.games.bs.table import Table


class Trusting(BSBot):
    """One sentence for `dubito bots`: plays all it has of the number asked, accuses as its setting `trust` says."""

    origin = "your name"

    def __init__(self, id: int, trust: int = 4) -> None:
        super().__init__(id)
        self.trust = trust  # a setting: another value can be given in a config

    def request_cards(self, number: int, table: Table) -> Sequence[Card]:
        """Your turn: at least one card of your hand. A card of another number than asked is a lie."""
        return self.cards.of(number) or self.cards.first(1)

    def bs(self, seat: int, number: int, n_cards: int, table: Table) -> bool:
        """A seat has played n_cards, said to be of this number. True: that was a lie."""
        return table.hands[seat] == 0 or self.cards.count(number) + n_cards > self.trust

    # Also there: initialize(table) before the first turn, update(table) after each round, self.rng.random() (never
    # the module random), self.cards (iterate it, count, of, first), table.pile, table.hands, table.order, table.round.
