"""Player 4, from an answer to the original question."""

from bots.manual.bs.player3 import Player3
from dubito.games.bs.table import Table


class Player4(Player3):
    """Plays like Player3; accuses if more than four cards would exist, or if the mover's hand is empty.

    Verbatim. It won 28.07 ± 0.26 % of its games in the pool of the seven verbatim players.
    """

    origin = "an answer to the question"

    def bs(self, seat: int, number: int, n_cards: int, table: Table) -> bool:
        return self.cards.count(number) + n_cards > 4 or table.hands[seat] == 0
