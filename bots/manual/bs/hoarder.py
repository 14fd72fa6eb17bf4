"""Hoarder, which waits for a hand that it can play out honestly."""

from collections.abc import Sequence

from dubito.games.bs.bot import BSBot
from dubito.games.bs.cards import Card
from dubito.games.bs.table import Table

NUMBERS = 13
SEATS = 4  # a seat's next turn asks for a number this much higher


class Hoarder(BSBot):
    """Plays its whole hand until it could play it out honestly; accuses players who have almost won.

    Verbatim, except for the name of the class. It did not win any of 114,356 games in the pool of the seven verbatim
    players.
    """

    origin = "ImpEmp/bs 3b4643d"

    def request_cards(self, number: int, table: Table) -> Sequence[Card]:
        return self.cards.of(number) if self.could_play_out(number) else list(self.cards)

    def bs(self, seat: int, number: int, n_cards: int, table: Table) -> bool:
        return table.hands[seat] <= n_cards

    def could_play_out(self, number: int) -> bool:
        """Return whether one honest card per turn empties the hand."""
        left = [card.number for card in self.cards]
        while number in left:
            left.remove(number)
            number = (number + SEATS) % NUMBERS
        return not left
