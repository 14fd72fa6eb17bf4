from collections.abc import Sequence

from dubito.games.bs.bot import BSBot
from dubito.games.bs.cards import Card
from dubito.games.bs.table import Table


class MyBot(BSBot):
    """Honest when it can be; accuses plays that cannot be honest, and whoever would win."""

    def request_cards(self, number: int, table: Table) -> Sequence[Card]:
        return self.cards.of(number) or self.cards.first(1)

    def bs(self, seat: int, number: int, n_cards: int, table: Table) -> bool:
        return n_cards + self.cards.count(number) > 4 or table.hands[seat] == 0
