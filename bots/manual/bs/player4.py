"""Player 4, an answer to the question."""

from bots.manual.bs.player3 import Player3
from dubito.games.bs.table import Table


class Player4(Player3):
    """Plays like Player3; accuses if its own cards and the play are more than four, or the mover's hand is empty.

    Verbatim. It won 28.07 ± 0.26 % of its games in the pool of the seven verbatim players.
    """

    origin = "an answer to the question"

    def bs(self, seat: int, number: int, n_cards: int, table: Table) -> bool:
        return self.cards.count(number) + n_cards > 4 or table.hands[seat] == 0
