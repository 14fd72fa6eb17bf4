"""A bot for BS: change its answers.

It is known by the name of its class. docs/writing-a-bs-bot.md explains what it is asked.
"""

from collections.abc import Sequence

from dubito.games.bs.bot import BSBot
from dubito.games.bs.cards import Card
from dubito.games.bs.table import Table


class MyBot(BSBot):
    """Plays all its cards of the number; accuses if more than `trust` would exist (`dubito bots` shows this)."""

    origin = "your name"

    def __init__(self, id: int, trust: int = 4) -> None:
        super().__init__(id)
        self.trust = trust  # a setting, which a config can change

    def request_cards(self, number: int, table: Table) -> Sequence[Card]:
        """Return at least one card of your hand. A card of another number makes the play a lie."""
        return self.cards.of(number) or self.cards.first(1)

    def bs(self, seat: int, number: int, n_cards: int, table: Table) -> bool:
        """Return whether to accuse the seat, which played n_cards claimed to be of this number."""
        return table.hands[seat] == 0 or self.cards.count(number) + n_cards > self.trust

    # Also available: initialize(table) before the first turn, update(table) after each round, self.rng.random() (never
    # the module random), self.cards (iterate it, count, of, first), table.pile, table.hands, table.order, table.round.
