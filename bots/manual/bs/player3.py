"""Player 3 of the source's controller."""

from collections.abc import Sequence

from dubito.games.bs.bot import BSBot
from dubito.games.bs.cards import Card
from dubito.games.bs.table import Table


class Player3(BSBot):
    """Plays all its cards of the number, or else its first two cards; never accuses.

    Verbatim. It won 7.72 ± 0.15 % of its games in the pool of the seven verbatim players.
    """

    origin = "prakol16/bs"

    def request_cards(self, number: int, table: Table) -> Sequence[Card]:
        return self.cards.of(number) or self.cards.first(2)

    def bs(self, seat: int, number: int, n_cards: int, table: Table) -> bool:
        return False
