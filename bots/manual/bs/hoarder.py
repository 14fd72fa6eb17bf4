"""Hoarder, who waits for a hand that can be played out."""

from collections.abc import Sequence

from dubito.games.bs.bot import BSBot
from dubito.games.bs.cards import Card
from dubito.games.bs.table import Table

NUMBERS = 13
SEATS = 4  # so far apart are the numbers of one seat's turns


class Hoarder(BSBot):
    """Plays its whole hand, until it could play it out honestly card by card; accuses whoever nearly has won.

    Verbatim, but for its class's name. It won none of 114,356 games in the pool of the seven verbatim players.
    """

    origin = "ImpEmp/bs 3b4643d"

    def request_cards(self, number: int, table: Table) -> Sequence[Card]:
        return self.cards.of(number) if self.could_play_out(number) else list(self.cards)

    def bs(self, seat: int, number: int, n_cards: int, table: Table) -> bool:
        return table.hands[seat] <= n_cards

    def could_play_out(self, number: int) -> bool:
        """Whether one card a turn, each of the number asked then, empties the hand."""
        left = [card.number for card in self.cards]
        while number in left:
            left.remove(number)
            number = (number + SEATS) % NUMBERS
        return not left
